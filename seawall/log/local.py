"""Small files of a run's local state: private, replaced whole, and worth nothing when damaged.

They are caches and a floor, never authority. Each begins with the SHA-256 of the rest, so that a torn or edited file
is seen and passed over.
"""

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seawall.vault.identity import checked_run
from seawall.vault.signing import PublicKey

_DIGEST_CHARACTERS = 64


def local_file(state_dir: Path, kind: str, run: str, root: PublicKey, store_id: str = "") -> Path:
    """Where ``kind`` of ``run`` lies; one name can stand for different runs under different trust roots.

    ``store_id`` is given where there is one file for each store that is read.
    """
    store = f".{store_id[:16]}" if store_id else ""
    return state_dir / kind / f"{checked_run(run)}.{root.key_id[:16]}{store}.json"


def write_local(path: Path, content: dict[str, Any]) -> None:
    """Replace ``path`` atomically, mode 0600, its folder 0700. ``OSError`` if that is not possible."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    body = json.dumps(content, separators=(",", ":"), sort_keys=True).encode("ascii")
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(body).hexdigest().encode("ascii") + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_local(path: Path) -> dict[str, Any] | None:
    """What :func:`write_local` wrote; None if it is absent, unreadable or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    stated, body = data[:_DIGEST_CHARACTERS], data[_DIGEST_CHARACTERS + 1 :]
    if hashlib.sha256(body).hexdigest().encode("ascii") != stated:
        return None
    content = json.loads(body)
    return content if isinstance(content, dict) else None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time for ``path``, through a lock file beside it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
