"""Recalling objects from S3's archive classes, where they cannot be read until a copy was brought back.

Which class an object is in and how far its recall has come stand in the headers of its HEAD answer: ``x-amz-storage-class``,
``x-amz-archive-status`` (Intelligent-Tiering) and ``x-amz-restore``
(docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html, API_RestoreObject.html).
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from seawall.errors import StoreRefusedError, StoreUnavailableError
from seawall.stores.s3_control import call

if TYPE_CHECKING:
    from seawall.stores.s3 import S3Store

_Result = TypeVar("_Result")

DAYS = 7
"""How long the recalled copy stays readable: a restore that is interrupted goes on for days, and every day of it is paid for."""
POLL_SECONDS = 60.0
"""Recalls take hours (AWS: 3 to 5 for a standard one from Flexible Retrieval, up to 12 from Deep Archive)."""
_ARCHIVE_CLASSES = ("GLACIER", "DEEP_ARCHIVE")
_AT_ONCE = 16


class Readiness(Enum):
    """Whether an object can be read now."""

    READABLE = "readable"
    COMING = "coming"
    ARCHIVED = "archived"


def readiness(headers: Mapping[str, str]) -> Readiness:
    """From the headers of a HEAD answer, names in lower case."""
    archived = headers.get("x-amz-storage-class") in _ARCHIVE_CLASSES or "x-amz-archive-status" in headers
    recalled = headers.get("x-amz-restore", "")
    if 'ongoing-request="true"' in recalled:
        return Readiness.COMING
    if not archived or 'ongoing-request="false"' in recalled:
        return Readiness.READABLE
    return Readiness.ARCHIVED


def warm(store: "S3Store", keys: Sequence[str]) -> None:
    """Ask for every archived object of ``keys`` that nobody asked for yet. One request an object, two for those."""

    def one(key: str) -> None:
        if _state(store, key) is not Readiness.ARCHIVED:
            return
        try:
            wanted = {"Days": DAYS, "GlacierJobParameters": {"Tier": "Standard"}}
            call(store.wire, "restore_object", "other", store.where(key), {**store.name(key), "RestoreRequest": wanted}, has_body=False)
        except StoreRefusedError as error:
            # Asked for by somebody else in between.
            if "RestoreAlreadyInProgress" not in error.why:
                raise

    _each(one, keys)


def wait_warm(store: "S3Store", keys: Sequence[str], timeout_seconds: float) -> None:
    """Return once all of ``keys`` can be read. Raises :class:`StoreUnavailableError` after ``timeout_seconds``, and
    :class:`StoreRefusedError` for an object that nobody has asked for."""
    clock = store.session.clock
    deadline = clock.monotonic() + timeout_seconds
    pending = list(keys)
    while True:
        states = _each(lambda key: _state(store, key), pending)
        cold = [key for key, state in zip(pending, states, strict=True) if state is Readiness.ARCHIVED]
        if cold:
            raise StoreRefusedError("an archived object was not asked for", where=store.where(cold[0]), do="recall it first")
        pending = [key for key, state in zip(pending, states, strict=True) if state is Readiness.COMING]
        if not pending:
            return
        left = deadline - clock.monotonic()
        if left <= 0:
            raise StoreUnavailableError(
                "objects are still on their way from the archive",
                where=store.where(pending[0]),
                why=f"{len(pending)} are not readable after {timeout_seconds:.0f} s",
                do="run it again: what was asked for keeps coming",
            )
        clock.sleep(min(POLL_SECONDS, left))


def _state(store: "S3Store", key: str) -> Readiness:
    return readiness(store.wire.request("head_object", store.name(key), "read", store.where(key), {}, needs="content-length").headers)


def _each(one: Callable[[str], _Result], keys: Sequence[str]) -> list[_Result]:
    with ThreadPoolExecutor(min(_AT_ONCE, max(1, len(keys))), "recall") as pool:
        return list(pool.map(one, keys))
