"""Everything that is written is locked as it comes, so that not even its writer can take it back.

What belongs to a sealing gets a short lock: a sealing that is given up must go some day, and a committed one is locked for longer by
whoever commits it. The rest (log, proofs, records) is never deleted and gets the long one at once.
"""

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

from seawall.clock import Clock
from seawall.errors import StoreRefusedError
from seawall.stores.base import Buffer, Store, Stored, Upload
from seawall.stores.wrapper import WrappedUpload, Wrapper

_ASK_AGAIN_SECONDS = 600.0
"""How long the store's time is counted on from one answer. Locks are hours and days; this host's seconds are good enough for minutes."""


class LockStore(Wrapper):
    """``at_put`` is the lock of a sealing's objects before the commit, ``kept`` that of everything else."""

    def __init__(self, inner: Store, at_put: timedelta, kept: timedelta, clock: Clock) -> None:
        super().__init__(inner)
        self._at_put = at_put
        self._kept = kept
        self._clock = clock
        self._lock = threading.Lock()
        self._known: tuple[datetime, float] | None = None

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        until = lock_until or self._until(key)
        return self.around("put", key, lambda: self.inner.put(key, data, crc64, lock_until=until))

    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        until = lock_until or self._until(key)
        return WrappedUpload(self, key, self.around("begin", key, lambda: self.inner.begin(key, lock_until=until)))

    def _until(self, key: str) -> datetime:
        parts = key.split("/")
        of_sealing = len(parts) > 3 and parts[0] == "runs" and parts[2] == "sealings"
        return self._store_now() + (self._at_put if of_sealing else self._kept)

    def _store_now(self) -> datetime:
        with self._lock:
            passed = self._clock.monotonic() - self._known[1] if self._known is not None else None
            if self._known is None or passed is None or passed > _ASK_AGAIN_SECONDS:
                moment = self.inner.server_time()
                if moment is None:
                    raise StoreRefusedError("a lock needs the store's time", where=self.url, why="the store has no clock")
                self._known, passed = (moment, self._clock.monotonic()), 0.0
            return self._known[0] + timedelta(seconds=passed)
