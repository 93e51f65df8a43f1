"""What a check asks of its store: counted, and read at the versions that make up the copy."""

import threading
from collections.abc import Callable, Mapping

from seawall.clock import Clock
from seawall.stores.base import Store
from seawall.stores.wrapper import Result, Wrapper
from seawall.verify import evidence


class Meter(Wrapper):
    """Counts requests and the bytes that came back. A listing counts once, however long it is."""

    def __init__(self, inner: Store, clock: Clock | None = None) -> None:
        super().__init__(inner)
        self._clock = clock
        self._lock = threading.Lock()
        self._requests = 0
        self._bytes = 0
        self._since = clock.monotonic() if clock else 0.0

    def around(self, method: str, key: str, action: Callable[[], Result]) -> Result:
        if method not in ("capabilities", "server_time"):
            with self._lock:
                self._requests += 1
        return action()

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        return self._came(super().get(key, start, length, version), len)

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        return self._came(super().read_into(key, start, buffer, version), int)

    def _came(self, result: Result, size: Callable[[Result], int]) -> Result:
        with self._lock:
            self._bytes += size(result)
        return result

    def cost(self) -> dict[str, str]:
        """Evidence of what was asked since the last call of this, or the beginning."""
        with self._lock:
            found = {evidence.REQUESTS: str(self._requests), evidence.READ_BYTES: str(self._bytes)}
            self._requests = self._bytes = 0
        if self._clock is not None:
            now = self._clock.monotonic()
            found[evidence.SECONDS] = f"{now - self._since:.3f}"
            self._since = now
        return found


class AtVersions(Wrapper):
    """Reads objects at given versions. ``head`` and ``list`` still tell what is current."""

    def __init__(self, inner: Store, versions: Mapping[str, str]) -> None:
        """``versions`` has the version id of each key that has one."""
        super().__init__(inner)
        self._versions = versions

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        return self.inner.get(key, start, length, version or self._versions.get(key))

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        return self.inner.read_into(key, start, buffer, version or self._versions.get(key))
