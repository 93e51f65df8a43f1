"""Loading a checkpoint into training: one that was saved here, or one that ``seawall restore`` brought back."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch.distributed.checkpoint import state_dict_loader  # noqa: TID253 -- this package is imported by training code, which has torch loaded
from torch.distributed.checkpoint.api import CheckpointException  # noqa: TID253 -- as above
from torch.distributed.checkpoint.filesystem import FileSystemReader  # noqa: TID253 -- as above

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Inspection, Verdict
from seawall.checkpoint.tensor_sums import NamedPiece, summed_pieces
from seawall.errors import CorruptError, HostileError, IncompleteError, SeawallError, UnknownLayoutError
from seawall.training.dcp_failure import first_failure
from seawall.training.ranks import Ranks
from seawall.training.stored_sums import check_stored
from seawall.training.whole_load import WholeLoadPlanner

_ERRORS = {
    Verdict.UNKNOWN: UnknownLayoutError,
    Verdict.INCOMPLETE: IncompleteError,
    Verdict.CORRUPT: CorruptError,
    Verdict.HOSTILE: HostileError,
}


@dataclass(frozen=True)
class Resumed:
    """The checkpoint that training goes on from."""

    step: int
    epoch: int | None
    """Epoch that it was saved in; training goes on in its own."""
    path: str
    world_size: int | None
    """Number of ranks that wrote it, as far as files tell."""
    warnings: tuple[str, ...]


def find(folder: str | os.PathLike[str], ranks: Ranks | None = None) -> Resumed:
    """The checkpoint that :func:`load` would take, judged and not loaded: for what has to be known before the state is built."""
    return (ranks or Ranks()).first_does(lambda: _judge(inspect(folder)))


def load(
    folder: str | os.PathLike[str],
    state: dict[str, Any],
    *,
    leave: Sequence[str] = (),
    ranks: Ranks | None = None,
    check_sums: bool = True,
) -> Resumed:
    """Load the checkpoint in ``folder`` (a step's, or a run's: then the newest complete one) into ``state``, in place.

    The number of ranks may be another than at the save; DCP reshards. ``state`` must name everything that the checkpoint holds,
    but what begins with one of ``leave``, such as ``random.`` for the random states of ranks that are no more. ``ranks`` saves making
    a process group again: a checkpointer has one. ``check_sums``: read the stored tensors first and compare them with the sums that the
    checkpointer took of them in memory, each rank its share; a second reading, mostly from the page cache.

    The stock loader unpickles, so it is let near nothing but a checkpoint that was inspected and found ok, or ok with warnings:
    :class:`IncompleteError`, :class:`CorruptError`, :class:`HostileError` or :class:`UnknownLayoutError` otherwise, before anything
    is loaded. :class:`UsageError` when names are left out, :class:`CorruptError` when DCP cannot load it; ``state`` is then not to be
    trained on. Every rank raises the same. What was restored was verified byte by byte by the restore; a copy that came another way
    is only as good as the way.
    """
    ranks = ranks or Ranks()
    pieces: list[NamedPiece] = []

    def judge() -> Resumed:
        found = inspect(folder)
        pieces.extend(summed_pieces(found.tensors))
        return _judge(found)

    resumed = ranks.first_does(judge)
    if check_sums:
        check_stored(resumed.path, pieces, ranks)
    try:
        state_dict_loader.load(
            state,
            storage_reader=FileSystemReader(resumed.path),
            planner=WholeLoadPlanner(leave),
            process_group=ranks.group,
            no_dist=ranks.group is None,
        )
    except CheckpointException as error:
        raise _typed(error, resumed.path) from error
    return resumed


def _judge(found: Inspection) -> Resumed:
    if found.verdict > Verdict.WARN:
        worst = next(reason for reason in found.reasons if reason.verdict == found.verdict)
        raise _ERRORS[found.verdict](
            f"the checkpoint is {found.verdict.word} and is not loaded",
            where=" ".join(part for part in (found.path, worst.file, worst.tensor) if part),
            why=worst.text,
            do="look with `seawall inspect --deep`; `seawall restore` brings back a whole one",
        )
    if found.layout != "dcp":
        raise UnknownLayoutError("this is no distributed checkpoint", where=found.path, why=f"its layout is {found.layout}")
    if found.step is None:
        raise CorruptError("nothing says which step this is", where=found.path, do="load it by hand, and save it under its step")
    warnings = tuple(f"{reason.file}: {reason.text}" for reason in found.reasons if reason.verdict == Verdict.WARN)
    return Resumed(found.step, found.epoch, found.path, found.world_size, warnings)


def _typed(error: CheckpointException, path: str) -> SeawallError:
    rank, failure = first_failure(error)
    if isinstance(failure, SeawallError):
        return failure
    return CorruptError(
        "the checkpoint could not be loaded",
        where=f"{path} rank {rank}",
        why=f"{type(failure).__name__}: {failure}"[:2000],
        do="does the state have the names and shapes that were saved?",
    )
