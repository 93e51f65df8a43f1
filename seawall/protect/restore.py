"""Restore: rebuild a checkpoint from one copy, byte for byte, in a fresh folder that appears only when it is whole.

Files are rebuilt under a temporary name next to the target; a restore that was killed goes on with the files that are
missing. The target appears by one rename at the end.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from seawall.errors import BusyError, SeawallError, UsageError
from seawall.protect.assignment import Progress
from seawall.vault.inventory import Inventory
from seawall.vault.rebuild import finish_tree, rebuild_files
from seawall.vault.sealing import Sealing

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore gave."""

    path: str
    step: int
    files: int
    plaintext_bytes: int
    kept: int
    """Files that an earlier, killed restore had finished."""


def restore(
    sealing: Sealing,
    inventory: Inventory,
    data_key: bytes,
    target: Path,
    *,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
) -> Restored:
    """Rebuild the checkpoint at ``target``, which must not exist or be an empty folder.

    For frameworks that find their step by a pointer file, the restored one names this step. Raises :class:`UsageError`
    for a target that is in use, :class:`BusyError` when another process restores to it, :class:`CorruptError`
    (naming file and record) when the copy is damaged; then nothing appears at ``target``.
    """
    target = Path(os.path.abspath(target))
    _check_target(target)
    staging = target.parent / f".{target.name}.seawall-restore-{inventory.sealing.hex()[:12]}"
    total = sum(file.size for file in inventory.files)
    with _locked(staging, target):
        tree = staging / "tree"
        tree.mkdir(exist_ok=True)
        done = _finished(tree, inventory)
        done_bytes = sum(inventory.files[number].size for number in done)
        _check_room(target.parent, total - done_bytes)
        progress(done_bytes, len(done))
        missing = [number for number in range(len(inventory.files)) if number not in done]
        rebuild_files(sealing, inventory, missing, data_key, tree, transfers=transfers, progress=progress)
        finish_tree(tree, inventory)
        for folder, _, _ in os.walk(tree):
            _sync_folder(Path(folder))
        # Checked again: what was free at the start may be in use by now, and rename would replace an empty folder only.
        _check_target(target)
        os.rename(tree, target)
        _sync_folder(target.parent)
        shutil.rmtree(staging, ignore_errors=True)
    return Restored(str(target), inventory.step, len(inventory.files), total, len(done))


def _check_target(target: Path) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError("the target is there already and is no folder", where=str(target), do="choose a path that does not exist")
    if target.exists() and any(target.iterdir()):
        raise UsageError(
            "the target is not empty", where=str(target), why="a restore never mixes with what is there", do="choose a fresh path"
        )
    if not target.parent.is_dir():
        raise UsageError("the folder above the target does not exist", where=str(target.parent), do="create it first")


@contextmanager
def _locked(staging: Path, target: Path) -> Iterator[None]:
    """One restore to a target at a time; the lock goes with the process, so a kill leaves none."""
    try:
        staging.mkdir(mode=0o700, exist_ok=True)
        _refuse_anothers(staging)
        descriptor = os.open(staging / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError("nothing can be written next to the target", where=str(target.parent), why=error.strerror or "") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise _busy(target) from None
    try:
        if not _is_still_there(descriptor, staging / "lock"):
            # Another restore ended between the open and the lock: this file is removed by now, and keeps nobody out.
            raise _busy(target)
        yield
    finally:
        os.close(descriptor)


def _refuse_anothers(staging: Path) -> None:
    """:class:`UsageError` for a folder that somebody else put there, as anybody may beside a target in /tmp: links in it would be
    written through. Owners are compared with that of a new file, because a server may make root nobody."""
    own = staging / f"owner-{os.getpid()}"
    folder = os.lstat(staging)
    if stat.S_ISDIR(folder.st_mode):
        own.unlink(missing_ok=True)
        descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        owner = os.fstat(descriptor).st_uid
        os.close(descriptor)
        os.unlink(own)
        if owner == folder.st_uid:
            return
    raise UsageError(
        "somebody else made the folder that the restore would build in", where=str(staging), do="remove it, or choose another target"
    )


def _busy(target: Path) -> BusyError:
    return BusyError("another process restores to this target", where=str(target), do="wait for it, or choose another target")


def _is_still_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _finished(tree: Path, inventory: Inventory) -> set[int]:
    """Files that an earlier restore finished: they have their name, size and digest."""
    done = set()
    for number, file in enumerate(inventory.files):
        path = tree / file.name
        # One that may not be read is built again: it can be any user's mode, and this one need not be who sealed it.
        with suppress(PermissionError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size == file.size and _digest(path) == file.plaintext_digest:
                done.add(number)
    return done


def _digest(path: Path) -> bytes:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
    return digest.digest()


def _check_room(folder: Path, nbytes: int) -> None:
    facts = os.statvfs(folder)
    free = facts.f_bavail * facts.f_frsize
    if free < nbytes:
        raise SeawallError(
            "there is not enough room for the checkpoint", where=str(folder), why=f"{nbytes} bytes are needed, {free} are free"
        )


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
