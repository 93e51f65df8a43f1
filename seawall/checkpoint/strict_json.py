"""JSON from strangers: no duplicate keys, bounded nesting, typed errors."""

import json
from typing import Any

from seawall.errors import CorruptError


class _DuplicateKeyError(ValueError):
    """A key stands twice in one object: two readers may take different values."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(f"the key {key[:80]!r} stands twice in one object")
            seen.add(key)
    return found


def parse(raw: bytes, file: str, what: str = "it") -> Any:
    """The value, or ``CorruptError``. Bare ``NaN`` is let through: trainers write it when a run diverges."""
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise CorruptError(f"{what} is not UTF-8", where=file, why=f"at byte {error.start}") from error
    except RecursionError as error:
        raise CorruptError(f"{what} is nested too deeply", where=file) from error
    except ValueError as error:
        raise CorruptError(f"{what} is not valid JSON", where=file, why=str(error)[:200]) from error


def parse_object(raw: bytes, file: str, what: str = "it") -> dict[str, Any]:
    """The same for what must be an object."""
    value = parse(raw, file, what)
    if not isinstance(value, dict):
        raise CorruptError(f"{what} must be a JSON object", where=file)
    return value
