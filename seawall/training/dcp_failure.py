"""DCP's exception, which carries what each rank raised. It is no ``Exception``: ``except Exception`` in a trainer would not see it."""

from torch.distributed.checkpoint.api import CheckpointException  # noqa: TID253 -- this package is imported by training code, which has torch loaded


def first_failure(error: CheckpointException) -> tuple[int, BaseException]:
    """The lowest rank that failed, and what it raised."""
    rank = min(error.failures)
    return rank, error.failures[rank][0]
