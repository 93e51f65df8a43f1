"""The protocol that every place for copies fulfils, and the facts that it reports.

Keys are relative, ``/``-separated, without empty, ``.`` or ``..`` parts; a store refuses others with ``UsageError``.
Stored objects are never changed: ``put`` and ``begin`` create a key or raise :class:`~seawall.errors.ObjectExistsError`.
``replace`` is for repair only. All sizes are bytes, all moments UTC.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from seawall.errors import UsageError

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a store really does, as probed or known; nothing here is assumed from a brand name."""

    conditional_put: bool
    """Create-if-absent has exactly one winner."""
    object_lock: bool = False
    """A lock refuses deletion until its date."""
    full_object_crc: bool = False
    """The store computes CRC-64/NVME of whole objects, checks it at upload and reports it at head."""
    server_time: bool = False
    """Moments reported by the store come from the store's clock."""
    versions: bool = False
    """An overwritten or deleted object stays readable by version id."""
    needs_warmup: bool = False
    """Objects must be recalled before they can be read (tape, deep archive)."""
    reasons: tuple[str, ...] = ()
    """For a person: why a capability is absent, for example what the probe saw."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One stored object as its store describes it."""

    key: str
    size: int
    crc64: int | None = None
    """CRC-64/NVME of the whole object as computed by the store, where it does that."""
    version: str | None = None
    modified: datetime | None = None
    """The store's time of arrival."""
    locked_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Leftover:
    """An upload that began and neither finished nor was aborted."""

    key: str
    upload: str
    began: datetime


class Upload(Protocol):
    """A multipart upload. Parts may be sent from several threads; nothing is visible before ``finish``."""

    def part(self, number: int, start: int, data: Buffer, crc64: int) -> None:
        """Send part ``number`` (from 1), which begins at byte ``start`` of the object. ``crc64`` is CRC-64/NVME of the part.

        Parts hold whole records, so their lengths differ; all but the last are at least 5 MiB (S3's smallest).
        Parts may arrive in any order and a part may be sent again after a failure.
        """
        ...

    def finish(self, crc64: int, size: int) -> Stored:
        """Make the object visible, or raise ``ObjectExistsError`` and leave nothing. ``crc64`` covers the whole object."""
        ...

    def abort(self) -> None:
        """Forget the upload and free its bytes. Safe to call twice and after a failed ``finish``."""
        ...


class Store(Protocol):
    """A place for copies. All methods may be called from several threads at once."""

    url: str

    @property
    def capabilities(self) -> Capabilities: ...

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        """Create ``key`` from the buffers in order. ``crc64`` (of the whole) is verified by stores that can.

        ``lock_until`` locks the object as it arrives; ``StoreRefusedError`` where the store has no ``object_lock``.
        """
        ...

    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        """Start a multipart upload for a new object, locked as it becomes visible if ``lock_until`` is given."""
        ...

    def extend_lock(self, key: str, until: datetime, version: str | None = None) -> None:
        """Lock an object, or one version of it, until a later moment than now. ``StoreRefusedError`` where that would shorten a lock, or
        the store has none."""
        ...

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        """Bytes ``start`` to ``start + length`` (to the end without ``length``); fewer only at the object's end."""
        ...

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        """Fill ``buffer`` from ``start`` on; returns the number of bytes, smaller only at the object's end."""
        ...

    def head(self, key: str, version: str | None = None) -> Stored:
        """Facts without the bytes; ``NoSuchObjectError`` when there is none."""
        ...

    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        """Objects whose key begins with ``prefix``, in key order, from the first key greater than ``after``."""
        ...

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Names directly under ``prefix`` (which is empty or ends in ``/``) that have objects below them."""
        ...

    def replace(self, key: str, data: Buffer | Sequence[Buffer], damaged_version: str | None, crc64: int | None = None) -> Stored:
        """Repair only: put the whole, verified, identical object in place of the damaged one, if that is still what is there.

        ``damaged_version`` is what ``head`` reported. On versioned stores this adds a version.
        """
        ...

    def delete(self, key: str, version: str | None = None) -> None:
        """Remove one object (one version where there are versions). Only the deletion plan of DESIGN law 7 calls this."""
        ...

    def server_time(self) -> datetime | None:
        """The store's own clock, or None where it has none."""
        ...

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        """Unfinished uploads below ``prefix``."""
        ...

    def abort_leftover(self, leftover: Leftover) -> None:
        """Remove one of them."""
        ...

    def warm(self, keys: Sequence[str]) -> None:
        """Ask for objects to be made readable; returns at once. A no-op where nothing needs it."""
        ...

    def wait_warm(self, keys: Sequence[str], timeout_seconds: float) -> None:
        """Wait until they are, or raise ``StoreUnavailableError``."""
        ...

    def close(self) -> None:
        """Give back connections."""
        ...


def checked_key(key: str) -> str:
    """``key`` itself, or ``UsageError``: keys come from files and from people, and must not leave the root.

    ``//`` is refused because SeaweedFS stores such a key and lists it under another name.
    """
    parts = key.split("/")
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        raise UsageError("a store key must be valid Unicode", where=repr(key)) from None
    if not key or any(part in ("", ".", "..") for part in parts) or "\0" in key or length > 1000:
        raise UsageError("a store key must be a relative path without empty, '.' or '..' parts", where=repr(key))
    return key
