"""Time as an argument: nothing below the command line reads the wall clock by itself."""

import time
from datetime import UTC, datetime
from typing import Protocol

CENTURY_DAYS = 36_525
"""The longest age or wait, in days, that a configuration may name: no moment leaves the calendar by it."""


class Clock(Protocol):
    """Wall time for information, monotonic time for waiting."""

    def now(self) -> datetime:
        """The current moment, always in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def utc_text(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, the one form of time in everything that seawall writes."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_utc(text: str) -> datetime:
    """Back from :func:`utc_text`; ``ValueError`` for anything else."""
    if len(text) == _LENGTH and text[10::16] == "TZ" and text[13:20:3] == "::.":
        # ISO 8601 has many forms; in one of this length with these signs the other places can only be digits and hyphens. It is read
        # fifteen times as fast as by a format, and every proof of a run has a moment.
        return datetime.fromisoformat(text)
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


_LENGTH = len("2026-01-01T00:00:00.000000Z")
