"""Where bytes live. A store is a small protocol (base.py); behaviour is added by wrapping it."""
