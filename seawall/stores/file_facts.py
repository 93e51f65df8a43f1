"""What ``stat`` of a file says, as a store says it."""

import os
from datetime import UTC, datetime, timedelta

from seawall.stores.base import Stored

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(nanoseconds: int) -> datetime:
    """A time stamp of the file system. Integers all the way: a float cannot hold nanoseconds since 1970."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def version_of(facts: os.stat_result) -> str:
    """Changes whenever somebody writes into the file or puts another in its place."""
    return f"{facts.st_mtime_ns}-{facts.st_ino}"


def stored(key: str, facts: os.stat_result) -> Stored:
    """The object behind one plain file."""
    return Stored(key, facts.st_size, version=version_of(facts), modified=moment(facts.st_mtime_ns))
