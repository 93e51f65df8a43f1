"""Capabilities in and out of JSON, so that what a probe found can be kept beside the store's settings."""

from dataclasses import asdict, fields
from typing import Any

from seawall.errors import ConfigurationError
from seawall.stores.base import Capabilities


def capabilities_as_json(capabilities: Capabilities) -> dict[str, Any]:
    """A flat object of truth values and the list ``reasons``."""
    return {**asdict(capabilities), "reasons": list(capabilities.reasons)}


def capabilities_from_json(kept: Any) -> Capabilities:
    """Back from :func:`capabilities_as_json`; ``ConfigurationError`` for anything else, also for one truth value too many."""
    flags = {entry.name for entry in fields(Capabilities)} - {"reasons"}
    if not isinstance(kept, dict) or kept.keys() - {"reasons"} != flags or not all(isinstance(kept[name], bool) for name in flags):
        raise ConfigurationError(
            "these are no capabilities of a store", why=f"expected {', '.join(sorted(flags))}", do="validate the store again"
        )
    reasons = kept.get("reasons", [])
    if not isinstance(reasons, list) or not all(isinstance(reason, str) for reason in reasons):
        raise ConfigurationError("these are no capabilities of a store", why="reasons is no list of texts", do="validate the store again")
    return Capabilities(reasons=tuple(reasons), **{name: kept[name] for name in flags})
