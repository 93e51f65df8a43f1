"""The commit mark of a checkpoint, ``_COMMITTED``: JSON that is written last and appears by one rename.

From the first byte of a save until that rename the folder holds ``_COMMITTED-unfinished``, which every reader of seawall takes for
"somebody is still writing or removing this" (a name that ends so is NeMo's mark of it, NVIDIA-NeMo/Speech pull 7952). The same file,
filled and made durable, becomes the mark: so there is no instant at which neither is there, and DCP's own ``.metadata`` alone, which
comes a moment before the mark, never makes a checkpoint without an epoch.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seawall.errors import CorruptError, IncompleteError

MARK = "_COMMITTED"
"""The name that ``[runs.*] commit_mark`` of seawall.toml has by default."""
UNFINISHED = MARK + "-unfinished"
MAX_MARK = 1 << 20
"""Bytes; the bound that the readers of marks have."""
MAX_NUMBER = (1 << 63) - 1
"""What readers take for an epoch or a step."""


@dataclass(frozen=True)
class CommitMark:
    """What the mark says. Loss and gradient norm are the shortest text that gives the same float again, ``nan`` and ``inf`` included.

    ``tensor_sums`` is the digest of all ranks' sums (:func:`seawall.checkpoint.sums_file.joint_digest`), None in marks of older versions.
    """

    epoch: int
    step: int
    saved_at: str
    world_size: int
    loss: str | None
    gradient_norm: str | None
    host: str
    torch: str
    tensor_sums: str | None = None

    def encode(self) -> bytes:
        """The bytes of the file."""
        return json.dumps(asdict(self), allow_nan=False).encode() + b"\n"


def begin(folder: Path) -> None:
    """Say that the checkpoint in ``folder``, which exists, is being written. Durable when this returns."""
    descriptor = os.open(folder / UNFINISHED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(folder)
    sync_folder(folder.parent)


def commit(folder: Path, mark: CommitMark) -> None:
    """Turn what :func:`begin` left into the mark. Durable when this returns; before the rename nothing is committed."""
    # Without O_CREAT: if another process took the folder over, there is nothing to fill and nothing is committed.
    descriptor = os.open(folder / UNFINISHED, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    with open(descriptor, "wb") as file:
        file.write(mark.encode())
        file.flush()
        os.fsync(file.fileno())
    # The names of the checkpoint's files go to disk before the name of the mark.
    sync_folder(folder)
    os.rename(folder / UNFINISHED, folder / MARK)
    sync_folder(folder)


def withdraw(folder: Path) -> None:
    """Take the mark back before anything else of the checkpoint is removed. Durable when this returns."""
    if (folder / MARK).exists():
        os.rename(folder / MARK, folder / UNFINISHED)
        sync_folder(folder)


def read_mark(folder: Path) -> CommitMark:
    """The mark of a committed checkpoint. :class:`IncompleteError` without one, :class:`CorruptError` for one that says nothing."""
    where = str(folder / MARK)
    try:
        with open(where, "rb") as file:
            raw = file.read(MAX_MARK + 1)
    except FileNotFoundError:
        raise IncompleteError("the checkpoint has no commit mark", where=where, why="its save has not finished") from None
    try:
        said = json.loads(raw) if len(raw) <= MAX_MARK else None
    except ValueError as error:
        raise CorruptError("the commit mark cannot be read", where=where, why=str(error)) from None
    if not isinstance(said, dict):
        raise CorruptError("the commit mark cannot be read", where=where, why="it is no JSON object of at most 1 MiB")
    return CommitMark(
        epoch=_count(said, "epoch", where),
        step=_count(said, "step", where),
        saved_at=_text(said, "saved_at") or "",
        world_size=_count(said, "world_size", where),
        loss=_text(said, "loss"),
        gradient_norm=_text(said, "gradient_norm"),
        host=_text(said, "host") or "",
        torch=_text(said, "torch") or "",
        tensor_sums=_text(said, "tensor_sums"),
    )


def _count(said: dict[str, Any], field: str, where: str) -> int:
    value = said.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_NUMBER:
        raise CorruptError(f"the commit mark has no usable {field}", where=where, why=repr(value)[:80])
    return value


def _text(said: dict[str, Any], field: str) -> str | None:
    value = said.get(field)
    return value if isinstance(value, str) else None


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable (fsync(2): that of a file does not cover its folder's entry)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
