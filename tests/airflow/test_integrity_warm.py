"""What the API server keeps of a run between two pages: as long as it is true, for so many runs, and for a minute at most."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seawall.cli.site import Site
from seawall.plugins.warm import KEPT_FOR, WarmRun, WarmRuns
from seawall.stores.base import Store
from seawall.testing.counting import CountingStore
from seawall.testing.fake_clock import FakeClock
from seawall.verify.matrix import Verdict
from tests.airflow.long_run import LongRun, write_long_run
from tests.protect.command_line import RUN, Desk, new_desk

CHECKPOINTS = 40


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return new_desk(tmp_path / "desk")


@pytest.fixture
def run(desk: Desk) -> LongRun:
    return write_long_run(desk, CHECKPOINTS, datetime.now(UTC) - timedelta(minutes=5))


def look(runs: WarmRuns, desk: Desk, clock: FakeClock) -> WarmRun:
    """As every page does: with a new site."""
    site = Site(desk.config, clock)
    problems: list[str] = []
    try:
        found = runs.run(site, RUN, problems)
    finally:
        site.close()
    assert problems == []
    return found


def test_verdicts_are_kept_for_a_minute_and_until_something_is_said(desk: Desk, run: LongRun) -> None:
    runs, clock = WarmRuns(), FakeClock(datetime.now(UTC))
    first = look(runs, desk, clock)
    assert len(first.copies) == 2 * CHECKPOINTS
    clock.sleep(KEPT_FOR.total_seconds() - 1)
    assert look(runs, desk, clock) is first
    clock.sleep(1)
    second = look(runs, desk, clock)
    assert second is not first and second.at > first.at
    desk("log quarantine", RUN, str(run.step(0)), "--reason", "odd")
    third = look(runs, desk, clock)
    assert third is not second and third.at == second.at
    text = desk.config.read_text()
    desk.config.write_text(f"{text}\n[verify.max_age_days]\nL2 = 1\n")
    stricter = look(runs, desk, clock)
    assert stricter.counts[None][Verdict.OK] < third.counts[None][Verdict.OK]


def test_a_clock_that_went_back_is_not_answered_from_the_future(desk: Desk, run: LongRun) -> None:
    runs, now = WarmRuns(), datetime.now(UTC)
    later = look(runs, desk, FakeClock(now))
    assert look(runs, desk, FakeClock(now - timedelta(seconds=30))).at < later.at


def test_so_many_runs_are_kept(tmp_path: Path) -> None:
    desks = [new_desk(tmp_path / name) for name in "abc"]
    runs, clock = WarmRuns(kept_runs=2), FakeClock(datetime.now(UTC))
    first, second, third = (look(runs, desk, clock) for desk in desks)
    assert look(runs, desks[2], clock) is third and look(runs, desks[1], clock) is second
    assert look(runs, desks[0], clock) is not first, "the one that was asked for longest ago went"
    assert look(runs, desks[1], clock) is second


class CountedSite(Site):
    """Counts what its stores are asked."""

    def __init__(self, desk: Desk, clock: FakeClock) -> None:
        super().__init__(desk.config, clock)
        self.counted: dict[str, CountingStore] = {}

    def store(self, name: str) -> Store:
        if name not in self.counted:
            self.counted[name] = CountingStore(super().store(name))
        return self.counted[name]


def test_a_page_costs_the_same_requests_however_long_the_run_is(tmp_path: Path) -> None:
    costs = []
    for count in (12, 120):
        desk = new_desk(tmp_path / f"{count}")
        write_long_run(desk, count, datetime.now(UTC) - timedelta(minutes=5))
        runs, clock = WarmRuns(), FakeClock(datetime.now(UTC))
        look(runs, desk, clock)
        site = CountedSite(desk, clock)
        assert len(runs.run(site, RUN, []).copies) == 2 * count
        costs.append({name: dict(store.calls) for name, store in site.counted.items()})
        site.close()
    assert costs[0] == costs[1]
    asked = sum(sum(calls.values()) for calls in costs[0].values())
    print(f"a page that has everything folded asks its two stores {asked} times")
    assert asked < 40
