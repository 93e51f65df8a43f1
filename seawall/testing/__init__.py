"""Public conformance kits and fault injection for people who write stores, layouts and keys."""
