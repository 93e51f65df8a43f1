"""Names and paths of format 1: sealing ids, and where a run's objects lie in a store."""

import re
from hashlib import sha256

from seawall.errors import UsageError

_RUN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
SEALING_BYTES = 16


def checked_run(run: str) -> str:
    """``run`` itself, or :class:`UsageError`: run names become part of keys in every store."""
    if not _RUN.fullmatch(run):
        raise UsageError("a run name is letters, digits, '.', '_' and '-', at most 100, not beginning with a dot or dash", where=repr(run))
    return run


def sealing_id(run: str, epoch: int, step: int, mark_digest: bytes, attempt: int) -> bytes:
    """Who seals the same checkpoint again gets the same 16 bytes; a changed source is a new attempt."""
    name = run.encode()
    text = b"".join(
        (
            b"seawall/1/sealing",
            len(name).to_bytes(2, "big"),
            name,
            epoch.to_bytes(8, "big"),
            step.to_bytes(8, "big"),
            mark_digest,
            attempt.to_bytes(4, "big"),
        )
    )
    return sha256(text).digest()[:SEALING_BYTES]


def sealing_folder(run: str, sealing: bytes) -> str:
    """The key prefix of a sealing's objects, ending in ``/``."""
    return f"runs/{run}/sealings/{sealing.hex()}/"
