"""A run that has a past: days of checkpoints that were committed and proved while a clock stood where it is told to.

A `file:` store on a local disk has its host's clock. Here both are one that is set, for every command in this process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from seawall.stores.file import FileStore
from seawall.testing.fake_clock import FakeClock
from tests.protect.command_line import Desk
from tests.protect.little_site import write_checkpoint

FIRST_DAY = datetime(2025, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@contextmanager
def driven(clock: FakeClock, of_stores: FakeClock) -> Iterator[None]:
    """``clock`` is the clock of every command in this process, ``of_stores`` that of its file stores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seawall.cli.site.SystemClock", lambda: clock)
        patch.setattr(FileStore, "server_time", lambda store: of_stores.now())
        yield


@dataclass
class Past:
    """A run of its own on a desk. ``run`` begins the day before the first."""

    desk: Desk
    run: str = "past"
    clock: FakeClock = field(default_factory=lambda: FakeClock(FIRST_DAY - DAY))
    stores_behind: timedelta = timedelta(0)
    """By how much the stores' clock is slow."""

    @property
    def folder(self) -> Path:
        """Where the run wrote its checkpoints."""
        return self.desk.folder / f"{self.run}-checkpoints"

    def begin(self) -> None:
        self.folder.mkdir()
        self("run open", "--path", self.folder)

    def at(self, day: int, hour: float) -> None:
        """Set the clock to an hour of a day, both from 0."""
        self.clock.set_wall(FIRST_DAY + day * DAY + timedelta(hours=hour))

    def __call__(self, command: str, *arguments: object, code: int | None = 0) -> Any:
        """A command about the run, at the time that it is; its JSON."""
        with driven(self.clock, FakeClock(self.clock.now() - self.stores_behind)):
            return self.desk(command, self.run, *arguments, "--json", code=code).json

    def commit(self, step: int) -> None:
        """Training finished a checkpoint, and it is synced."""
        write_checkpoint(self.folder / f"step_{step}", step)
        self("sync")

    def live(self, days: int) -> dict[int, bytes]:
        """Days on each of which a checkpoint is committed at 10:00 and verified at 11:00, and the report of the day before made at
        07:00; the reports as stored, by day."""
        for day in range(days + 1):
            if day:
                self.at(day, 7)
                self.report(day - 1)
            self.at(day, 10)
            self.commit(day)
            self.at(day, 11)
            self("verify")
        return {day: self.report_path(day).read_bytes() for day in range(days)}

    def end(self) -> None:
        """Nobody trains it any more: a sync of all runs leaves it alone."""
        lines = self.desk.config.read_text().splitlines(keepends=True)
        kept = [line for line in lines if str(self.folder) not in line]
        assert len(kept) == len(lines) - 1
        self.desk.config.write_text("".join(kept))

    def report(self, day: int, *more: object, code: int | None = 0) -> Any:
        start = FIRST_DAY + day * DAY
        return self("audit", "--start", f"{start:%Y-%m-%d}", "--end", f"{start + DAY:%Y-%m-%d}", *more, code=code)

    def report_path(self, day: int) -> Path:
        """Where the report of a day is stored."""
        return self.desk.store("c") / f"runs/{self.run}/records/audit/{FIRST_DAY + day * DAY:%Y-%m-%dT%H-%M-%SZ}.json"
