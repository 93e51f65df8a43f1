"""A limit on the bits per second that a store moves, over all threads, each direction by itself."""

import threading
from collections.abc import Sequence
from datetime import datetime

from seawall.clock import Clock
from seawall.errors import UsageError
from seawall.stores.base import Buffer, Store, Stored, Upload
from seawall.stores.buffers import as_views
from seawall.stores.wrapper import WrappedUpload, Wrapper


class TokenBucket:
    """Bits become available at a constant rate; up to ``burst_seconds`` worth of them are saved up while nothing moves."""

    def __init__(self, bits_per_second: int, clock: Clock, burst_seconds: float = 1.0) -> None:
        if bits_per_second <= 0:
            raise UsageError("a bandwidth limit is above zero bits per second", where=str(bits_per_second))
        self._rate = bits_per_second
        self._clock = clock
        self._burst = burst_seconds
        self._paid_until = clock.monotonic() - burst_seconds
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> None:
        """Wait until this many bytes may move. Whoever asks first goes first, whatever the sizes."""
        with self._lock:
            now = self._clock.monotonic()
            self._paid_until = max(self._paid_until, now - self._burst) + nbytes * 8 / self._rate
            wait = self._paid_until - now
        if wait > 0:
            self._clock.sleep(wait)


class ThrottleStore(Wrapper):
    """Uploads and downloads share nothing: a verification does not slow the next sync down."""

    def __init__(self, inner: Store, bits_per_second: int, clock: Clock) -> None:
        super().__init__(inner)
        self.up = TokenBucket(bits_per_second, clock)
        self.down = TokenBucket(bits_per_second, clock)

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        self.up.take(_length(data))
        return self.inner.put(key, data, crc64, lock_until=lock_until)

    def replace(self, key: str, data: Buffer | Sequence[Buffer], damaged_version: str | None, crc64: int | None = None) -> Stored:
        self.up.take(_length(data))
        return self.inner.replace(key, data, damaged_version, crc64)

    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        return _ThrottledUpload(self, key, self.inner.begin(key, lock_until=lock_until))

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        data = self.inner.get(key, start, length, version)
        self.down.take(len(data))
        return data

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        got = self.inner.read_into(key, start, buffer, version)
        self.down.take(got)
        return got


class _ThrottledUpload(WrappedUpload):
    def __init__(self, wrapper: ThrottleStore, key: str, inner: Upload) -> None:
        super().__init__(wrapper, key, inner)
        self._up = wrapper.up

    def part(self, number: int, start: int, data: Buffer, crc64: int) -> None:
        self._up.take(_length(data))
        self.inner.part(number, start, data, crc64)


def _length(data: Buffer | Sequence[Buffer]) -> int:
    return sum(view.nbytes for view in as_views(data))
