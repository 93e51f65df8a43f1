"""One save's folder: made ready before the ranks write, committed after."""

import errno
import fcntl
import os
import socket
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import torch  # noqa: TID253 -- this package is imported by training code, which has torch loaded
from torch.distributed.checkpoint.metadata import Metadata  # noqa: TID253 -- as above

from seawall.checkpoint.sums_file import TensorSum, encode_sums, joint_digest, sums_name
from seawall.clock import Clock, utc_text
from seawall.errors import BusyError, SeawallError, UsageError
from seawall.training.committed import Committed
from seawall.training.mark import MARK, UNFINISHED, CommitMark, begin, commit, sync_folder
from seawall.training.parts import missing_part
from seawall.training.removal import remove_step
from seawall.training.steps import step_folder

LOCK = ".training.lock"


def make_ready(folder: Path, step: int) -> Path:
    """An empty folder for ``step``, known as unfinished.

    What a killed save of the same step left is removed. A committed one of the same step, which a run that went back to an earlier
    step comes to a second time, is set aside under a hidden name and not removed: it may be the only copy of what it holds.
    :class:`UsageError` when somebody else's files are there.
    """
    path = step_folder(folder, step)
    folder.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        if (path / MARK).exists():
            _set_aside(path)
        elif (path / UNFINISHED).exists() or not any(path.iterdir()):
            remove_step(path)
    try:
        path.mkdir()
    except FileExistsError:
        raise UsageError(
            "something else is where the step would be saved",
            where=str(path),
            why="it was not written by this checkpointer",
            do="move it away, or give the run a folder of its own",
        ) from None
    begin(path)
    return path


def _set_aside(path: Path) -> None:
    for number in range(1, 10_000):
        aside = path.with_name(f".replaced-{number:04d}-{path.name}")
        if not os.path.lexists(aside):
            os.rename(path, aside)
            sync_folder(path.parent)
            return
    raise UsageError("this step was saved and replaced ten thousand times", where=str(path), do="remove the .replaced- folders beside it")


def write_sums(path: Path, rank: int, sums: Sequence[TensorSum]) -> bytes:
    """Write this rank's tensor sums beside its tensors, durable but for the folder's entry; the SHA-256 of the file."""
    raw = encode_sums(rank, sums)
    descriptor = os.open(path / sums_name(rank), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    with open(descriptor, "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    return sha256(raw).digest()


def finish(
    path: Path,
    metadata: Metadata,
    *,
    step: int,
    epoch: int,
    sums: Sequence[bytes],
    loss: str | None,
    gradient_norm: str | None,
    clock: Clock,
) -> Committed:
    """Commit what all ranks have made durable. ``sums``: the digest that each rank's :func:`write_sums` gave, in order of ranks."""
    missing = missing_part(path, metadata)
    if missing:
        raise SeawallError("the checkpoint is not whole, so it is not committed", where=str(path), why=missing)
    saved_at = utc_text(clock.now())
    host, world_size = socket.gethostname(), len(sums)
    commit(path, CommitMark(epoch, step, saved_at, world_size, loss, gradient_norm, host, str(torch.__version__), joint_digest(sums)))
    return Committed(step, epoch, path, world_size, saved_at)


def lock_folder(folder: Path) -> int:
    """Keep a second trainer of this host out of a run's folder (several nodes saving to one path: apex issue 886).

    The lock goes with the process; its descriptor is returned. It is a record lock (fcntl(2)), which a forked data loader that outlives a
    killed trainer does not inherit, and which NFS knows. Where the file system has no locks, the epoch is what keeps a second trainer out.
    :class:`BusyError` when another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(descriptor)
        raise BusyError(
            "another process saves into this folder", where=str(folder), do="stop it, or give this run its own folder"
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            os.close(descriptor)
            raise
    return descriptor
