"""The processes that save one checkpoint together: all ranks of the default process group, or this one alone."""

import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import torch.distributed as dist  # noqa: TID253 -- this package is imported by training code, which has torch loaded

from seawall.errors import SeawallError

T = TypeVar("T")

DEFAULT_TIMEOUT = timedelta(minutes=30)
"""torch's own for gloo. A rank that died while saving holds the others up for this long."""


class Ranks:
    """Rank, number of ranks, and small messages between them.

    They have a gloo group of their own: an asynchronous save talks in the background, and on training's group its messages and
    training's would be taken for each other.
    """

    def __init__(self, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        """Every rank makes one, in the same order, after ``init_process_group``."""
        # One process that saves alone does so on purpose.
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        self.group: dist.ProcessGroup | None = None
        self.rank, self.size = 0, 1
        if dist.is_available() and dist.is_initialized():
            self.group = dist.new_group(backend="gloo", timeout=timeout)
            self.rank, self.size = dist.get_rank(), dist.get_world_size()

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which alone writes marks and removes steps."""
        return self.rank == 0

    def share(self, value: T) -> T:
        """Rank 0's value, on every rank."""
        if self.group is None:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self.group)
        return box[0]

    def scatter(self, values: list[T]) -> T:
        """To each rank its own of rank 0's ``values``, one a rank. What the others pass is not looked at."""
        if self.group is None:
            return values[0]
        box: list[T | None] = [None]
        dist.scatter_object_list(box, values if self.first else None, src=0, group=self.group)
        [mine] = box
        return mine  # type: ignore[return-value]  # rank 0 gave one to each

    def gather(self, value: T) -> list[T]:
        """Every rank's value, on every rank, in order of ranks."""
        if self.group is None:
            return [value]
        box: list[T] = [value] * self.size
        dist.all_gather_object(box, value, group=self.group)
        return box

    def first_does(self, act: Callable[[], T]) -> T:
        """Rank 0 acts; every rank gets what came of it, or raises the same :class:`SeawallError`."""
        outcome: list[T] = []
        failure: SeawallError | None = None
        if self.first:
            try:
                outcome.append(act())
            except SeawallError as error:
                failure = error
            except OSError as error:
                # The others wait for an answer; without one they would do so for half an hour.
                failure = SeawallError("a file operation failed", where=str(error.filename or ""), why=error.strerror or str(error))
        outcome, failure = self.share((outcome, failure))
        if failure is not None:
            raise failure
        return outcome[0]
