"""Names of what proofs carry as evidence: counts as decimal text, digests as hex. Nothing here tells a name, a value or a loss."""

from collections.abc import Mapping
from datetime import datetime

from seawall.clock import parse_utc

OBJECTS = "objects"
STORED_BYTES = "stored_bytes"
"""Of all objects in the objects table."""
READ_BYTES = "read_bytes"
REQUESTS = "requests"
SECONDS = "seconds"
"""What the check cost: bytes asked of the store, requests sent, seconds by the verifier's clock with three decimals."""
WRAPS = "wraps"
"""Recipients of the newest version of the wrapped keys: ``kind id`` joined by ``, ``; both are public."""
WHOLE_AT = "whole_at"
"""The store's own time in the newest receipt: when the copy was whole."""
LOCKED_UNTIL = "locked_until"
"""The earliest end of a lock among the objects, as the store said."""
UNLOCKED = "unlocked"
"""Objects that no lock protects, in a store that has locks."""
UNRECORDED = "unrecorded"
"""Why there is no structure to compare with; only there when there is none."""
KEYS = "keys"
"""Entries of the state dict: distinct names of tensors."""
KEYS_MISSING = "keys_missing"
KEYS_NEW = "keys_new"
"""Names that the checkpoint before had and this one lacks, and the other way round."""
COMPARED_WITH = "compared_with"
"""Sealing id of the checkpoint before, that the two counts above refer to."""
FLOATS = "floats"
"""Floating-point values that were looked at."""
NONFINITE = "nonfinite"
"""NaN and infinities among them; tensors of zeros and minus infinities are attention masks and do not count."""
ZEROS = "zeros"
SATURATED = "saturated"
"""Values at the largest finite magnitude of their type (65504 in half precision)."""

TASK = "task"
"""The Airflow task that made the check, as :class:`seawall.operators.task_name.TaskName` writes it; only there when one did."""


def count_of(evidence: Mapping[str, str], name: str) -> int | None:
    """A count, or None where it was not recorded or is no count: evidence is what somebody wrote."""
    text = evidence.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 19 else None


def moment_of(evidence: Mapping[str, str], name: str) -> datetime | None:
    """A moment, or None where it was not recorded or is none."""
    try:
        return parse_utc(evidence.get(name, ""))
    except ValueError:
        return None
