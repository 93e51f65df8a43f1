"""The tasks of retention: they plan every day, and delete only what a person approved and what has cooled off."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from seawall.clock import SystemClock
from seawall.operators.retention import PlanRetentionOperator, RunRetentionOperator
from tests.airflow.tasks import Hand, context, new_hand
from tests.protect.command_line import RUN

LAX = "\n[retention]\nkeep_last = 1\ndaily = 0\nweekly = 0\nmonthly = 0\nlocal_clock = true\n"


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    """Three proved checkpoints, of which no rule keeps the middle one."""
    hand = new_hand(tmp_path)
    hand.desk.config.write_text(hand.desk.config.read_text() + LAX)
    for step in (100, 200, 300):
        hand.desk.save(step)
        hand.desk("sync", RUN)
    hand.desk("verify", RUN, "--all")
    return hand


def plan(hand: Hand) -> Any:
    return hand.run(PlanRetentionOperator, run=RUN)


def delete(hand: Hand) -> Any:
    return hand.run(RunRetentionOperator, run=RUN)


def sealings(hand: Hand) -> dict[str, bytes]:
    return {name: raw for name, raw in hand.desk.stored().items() if "/sealings/" in name}


def test_only_what_was_approved_and_has_cooled_off_is_deleted(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sealings(hand)
    planned = plan(hand)
    assert (planned["status"], planned["copies"], planned["approved"]) == ("planned", 2, False)
    assert plan(hand) == {**planned, "status": "unchanged"}, "a plan a day starts no new cooling-off"
    now = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + timedelta(hours=25))
    assert delete(hand)["plan"] is None, "cooled off, and nobody approved it"
    monkeypatch.setattr(SystemClock, "now", now)
    hand.desk("retention approve", RUN, planned["plan"])
    assert delete(hand) == {"run": RUN, "plan": None, "outcomes": {}, "stopped": []}, "approved, and it has not cooled off"
    assert sealings(hand) == before
    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + timedelta(hours=25))
    assert delete(hand)["outcomes"] == {"deleted": 2}
    assert delete(hand)["outcomes"] == {}, "asked twice, done once"
    copies = hand.desk("copies", RUN, "--json").json
    assert {row["step"] for row in copies["checkpoints"] if all(c["state"] != "deleted" for c in row["copies"].values())} == {100, 300}


def test_a_hold_stops_it_and_is_named(hand: Hand) -> None:
    hand.desk("log hold", RUN, "--reason", "an audit")
    planned = plan(hand)
    assert (planned["plan"], planned["stopped"]) == (None, ["the run is on hold: an audit"])


def test_without_a_clock_that_decides_it_fails_and_says_what_to_do(hand: Hand) -> None:
    hand.desk.config.write_text(hand.desk.config.read_text().replace("local_clock = true\n", ""))
    with pytest.raises(AirflowFailException, match="nobody can say what time it is"):
        plan(hand)


def test_the_past_is_not_deleted(hand: Hand) -> None:
    before = hand.desk.stored()
    filling = context(dag_run=SimpleNamespace(run_type="backfill", run_after=None))
    for operator in (PlanRetentionOperator, RunRetentionOperator):
        with pytest.raises(AirflowSkipException, match="acts on nothing"):
            operator(task_id="task", run=RUN, seawall_config=str(hand.desk.config)).execute(filling)
    assert hand.desk.stored() == before
