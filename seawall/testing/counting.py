"""Counting what a store is asked, and what is really sent."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from seawall.stores.base import Buffer, Store, Stored
from seawall.stores.buffers import as_views
from seawall.stores.wrapper import Result, Wrapper


class CountingStore(Wrapper):
    """Counts calls by method and the bytes of ``put``, ``get`` and ``read_into``. A list counts once, however long it is."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.calls: Counter[str] = Counter()
        self.bytes_up = 0
        self.bytes_down = 0
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        """All calls."""
        return self.calls.total()

    def around(self, method: str, key: str, action: Callable[[], Result]) -> Result:
        with self._lock:
            self.calls[method] += 1
        return action()

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        stored = super().put(key, data, crc64, lock_until=lock_until)
        with self._lock:
            self.bytes_up += sum(view.nbytes for view in as_views(data))
        return stored

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        data = super().get(key, start, length, version)
        with self._lock:
            self.bytes_down += len(data)
        return data

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        got = super().read_into(key, start, buffer, version)
        with self._lock:
            self.bytes_down += got
        return got


class RequestCounter:
    """For ``on_request`` of an S3 store: HTTP requests by operation, retries and probes included."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, operation: str) -> None:
        with self._lock:
            self.requests[operation] += 1

    @property
    def total(self) -> int:
        """All requests."""
        return self.requests.total()
