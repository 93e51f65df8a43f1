"""DCP's two ways of writing, as the checkpointer uses them."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed as dist  # noqa: TID253 -- this package is imported by training code, which has torch loaded
from torch.distributed.checkpoint.filesystem import FileSystemWriter  # noqa: TID253 -- as above
from torch.distributed.checkpoint.metadata import Metadata  # noqa: TID253 -- as above
from torch.distributed.checkpoint.staging import StagingOptions  # noqa: TID253 -- as above
from torch.distributed.checkpoint.state_dict_saver import async_save, save  # noqa: TID253 -- as above

from seawall.checkpoint.sums_file import TensorSum
from seawall.training.summing import SummingPlanner, SummingStager

State = dict[str, Any]
"""What DCP saves: names → tensors, objects, and dictionaries of them."""


@dataclass(frozen=True)
class Written:
    """What one rank's write gave: DCP's map of all ranks' files, and the sums of the tensors that this rank wrote."""

    metadata: Metadata
    sums: list[TensorSum]


def write_now(path: Path, state: State, group: dist.ProcessGroup | None) -> Written:
    """Write this rank's part, each file durable, and on rank 0 the map of all of them. Returns when every rank has."""
    planner = SummingPlanner()
    try:
        writer = FileSystemWriter(path, overwrite=False)
        metadata: Metadata = save(state, storage_writer=writer, planner=planner, process_group=group, no_dist=group is None)
        return Written(metadata, planner.sums())
    finally:
        planner.close()


def write_in_background(path: Path, state: State, group: dist.ProcessGroup | None) -> Callable[[], Written]:
    """Copy the state and begin to write the copy. What is returned waits for the end, and is called once.

    The stager is our own: given a FileSystemWriter alone, DCP lets that one stage, which is not made for tensors that are on the CPU
    already (changed under the writer: pytorch issue 144657).
    """
    options = StagingOptions(use_pinned_memory=False, use_shared_memory=False, use_async_staging=False, use_non_blocking_copy=False)
    stager = SummingStager(options)
    planner = SummingPlanner(stager.taken)

    def close() -> None:
        stager.close()
        planner.close()

    try:
        writer = FileSystemWriter(path, overwrite=False)
        future = async_save(state, storage_writer=writer, planner=planner, process_group=group, async_stager=stager, no_dist=group is None)
    except BaseException:
        close()
        raise

    def written() -> Written:
        try:
            # A stager that stages at once gets a plain future; the other kind of answer belongs to one that does not.
            assert isinstance(future, Future)
            metadata: Metadata = future.result()
            return Written(metadata, planner.sums())
        finally:
            close()

    return written
