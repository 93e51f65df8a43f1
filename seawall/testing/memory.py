"""A store in this process's memory, for tests that need many stores or many requests quickly.

It keeps the promises of the protocol: create-if-absent has one winner, checksums are verified, keys are checked. It
counts requests by method name, because what a verb costs is part of what tests check.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from seawall.clock import Clock, SystemClock
from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreRefusedError
from seawall.kernels.crc64 import crc64 as crc_of_part
from seawall.stores.base import Buffer, Capabilities, Leftover, Stored, Upload, checked_key
from seawall.stores.buffers import as_views, crc_of


class MemoryStore:
    """See the module. ``requests`` counts calls; ``objects`` may be read and, to play a damaged store, written by a test."""

    def __init__(self, name: str = "memory", clock: Clock | None = None) -> None:
        self.url = f"memory:{name}"
        self.objects: dict[str, bytes] = {}
        self.requests: Counter[str] = Counter()
        self._clock = clock or SystemClock()
        self._arrived: dict[str, tuple[datetime, int]] = {}
        self._changes = 0
        self._locks: dict[str, datetime] = {}
        self._uploads: dict[str, MemoryUpload] = {}
        self._lock = threading.RLock()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(conditional_put=True, server_time=True, object_lock=True)

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        self._count("put")
        return self._create(key, self._joined(key, data, crc64), lock_until)

    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        self._count("begin")
        upload = MemoryUpload(self, checked_key(key), self._clock.now(), lock_until)
        with self._lock:
            self._changes += 1
            upload.id = str(self._changes)
            self._uploads[upload.id] = upload
        return upload

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        self._count("get")
        data = self._data(key)
        return data[start:] if length is None else data[start : start + length]

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        self._count("read_into")
        view = buffer.cast("B")
        found = self._data(key)[start : start + view.nbytes]
        view[: len(found)] = found
        return len(found)

    def head(self, key: str, version: str | None = None) -> Stored:
        self._count("head")
        self._data(key)
        return self._stored(key)

    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        self._count("list")
        with self._lock:
            keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        for key in keys:
            if key in self.objects:
                yield self._stored(key)

    def list_folders(self, prefix: str) -> Iterator[str]:
        self._count("list_folders")
        with self._lock:
            rests = [key.removeprefix(prefix) for key in self.objects if key.startswith(prefix)]
        yield from sorted({rest.partition("/")[0] for rest in rests if "/" in rest})

    def replace(self, key: str, data: Buffer | Sequence[Buffer], damaged_version: str | None, crc64: int | None = None) -> Stored:
        self._count("replace")
        whole = self._joined(key, data, crc64)
        with self._lock:
            if key not in self.objects:
                return self._create(key, whole)
            if self._stored(key).version != damaged_version:
                raise StoreRefusedError("the object is not the damaged one any more", where=key)
            return self._set(key, whole)

    def delete(self, key: str, version: str | None = None) -> None:
        self._count("delete")
        with self._lock:
            if key in self.objects and version is not None and self._stored(key).version != version:
                raise StoreRefusedError("the object has another version", where=key)
            locked = self._locks.get(key)
            if key in self.objects and locked is not None and self._clock.now() < locked:
                raise StoreRefusedError("the object is locked", where=key, why=f"until {locked.isoformat()}")
            self._locks.pop(key, None)
            self.objects.pop(checked_key(key), None)

    def extend_lock(self, key: str, until: datetime, version: str | None = None) -> None:
        self._count("extend_lock")
        with self._lock:
            self._data(key)
            known = self._locks.get(key)
            if (version is not None and self._stored(key).version != version) or (known is not None and until < known):
                raise StoreRefusedError("the object has another version or a longer lock", where=key)
            self._locks[key] = until

    def server_time(self) -> datetime | None:
        self._count("server_time")
        return self._clock.now()

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        self._count("leftovers")
        with self._lock:
            uploads = list(self._uploads.values())
        for upload in uploads:
            if upload.key.startswith(prefix):
                yield Leftover(upload.key, upload.id, upload.began)

    def abort_leftover(self, leftover: Leftover) -> None:
        self._count("abort_leftover")
        with self._lock:
            self._uploads.pop(leftover.upload, None)

    def warm(self, keys: Sequence[str]) -> None:
        """Nothing has to be recalled."""

    def wait_warm(self, keys: Sequence[str], timeout_seconds: float) -> None:
        """Nothing has to be recalled."""

    def close(self) -> None:
        """There is nothing to give back."""

    def _count(self, name: str) -> None:
        with self._lock:
            self.requests[name] += 1

    def _joined(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None) -> bytes:
        checked_key(key)
        views = as_views(data)
        if crc64 is not None and crc_of(views) != crc64:
            raise StoreRefusedError("the checksum does not fit the bytes", where=key)
        return b"".join(views)

    def _create(self, key: str, whole: bytes, lock_until: datetime | None = None) -> Stored:
        with self._lock:
            if key in self.objects:
                raise ObjectExistsError("the key is taken", where=f"{self.url} {key}")
            if lock_until is not None:
                self._locks[key] = lock_until
            return self._set(key, whole)

    def _set(self, key: str, whole: bytes) -> Stored:
        self._changes += 1
        self.objects[key] = whole
        self._arrived[key] = (self._clock.now(), self._changes)
        return self._stored(key)

    def _data(self, key: str) -> bytes:
        with self._lock:
            try:
                return self.objects[checked_key(key)]
            except KeyError:
                raise NoSuchObjectError("there is no such object", where=f"{self.url} {key}") from None

    def _stored(self, key: str) -> Stored:
        with self._lock:
            modified, change = self._arrived.get(key, (datetime.fromtimestamp(0, UTC), 0))
            return Stored(key, len(self.objects[key]), version=str(change), modified=modified, locked_until=self._locks.get(key))


class MemoryUpload:
    """Parts in a table until they are all there."""

    def __init__(self, store: MemoryStore, key: str, began: datetime, lock_until: datetime | None = None) -> None:
        self.key = key
        self.began = began
        self.id = ""
        self._store = store
        self._lock_until = lock_until
        self._parts: dict[int, tuple[int, bytes]] = {}

    def part(self, number: int, start: int, data: Buffer, crc64: int) -> None:
        """As the protocol says."""
        view = memoryview(data).cast("B")
        if crc_of_part(view) != crc64:
            raise StoreRefusedError("the checksum of a part does not fit its bytes", where=self.key)
        with self._store._lock:
            self._parts[number] = (start, bytes(view))

    def finish(self, crc64: int, size: int) -> Stored:
        """As the protocol says."""
        parts = [self._parts[number] for number in sorted(self._parts)]
        whole = b"".join(data for _, data in parts)
        expected = 0
        for start, data in parts:
            if start != expected:
                raise StoreRefusedError("the parts do not join", where=self.key)
            expected += len(data)
        if len(whole) != size or crc_of_part(whole) != crc64:
            raise StoreRefusedError("the object is not what was announced", where=self.key)
        self.abort()
        return self._store._create(self.key, whole, self._lock_until)

    def abort(self) -> None:
        """As the protocol says."""
        with self._store._lock:
            self._store._uploads.pop(self.id, None)
