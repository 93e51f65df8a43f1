"""A clock for tests: a wait of half an hour takes no time."""

import threading
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Moves only when told to, or when somebody sleeps: a sleep jumps to its end at once.

    Sleeps add up, also those of different threads, so a test of simultaneous waits uses one thread.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._start = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._elapsed = 0.0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._elapsed += max(0.0, seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._elapsed += seconds

    def set_wall(self, moment: datetime) -> None:
        """Step the wall clock, also backwards, as NTP or an operator would; monotonic time goes on."""
        with self._lock:
            self._start = moment - timedelta(seconds=self._elapsed)
