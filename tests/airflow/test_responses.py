"""Operators of the integrity matrix: what they set in motion, what they do, and when they do nothing."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from seawall.operators.base import SeawallOperator
from seawall.operators.matrix import MatrixOperator, SettleOperator
from seawall.operators.respond import HealOperator, RespondOperator
from seawall.operators.sync import CommitOperator, PlanSyncOperator
from seawall.operators.verify import CertifyOperator
from seawall.operators.window import is_past
from seawall.operators.work import copies_to_heal, copies_to_prove, runs_to_mark, runs_to_settle, syncs_to_start
from tests.airflow.tasks import Hand, context, new_hand
from tests.protect.command_line import RUN


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    return new_hand(tmp_path)


def save(hand: Hand, step: int = 100) -> Path:
    return hand.desk.save(step, {"shard.raw": os.urandom(9000)})


def proved(hand: Hand, step: int = 100) -> None:
    """A checkpoint in both stores, proved."""
    save(hand, step)
    hand.sync()
    look(hand)


def look(hand: Hand) -> None:
    hand.certify(hand.check(hand.due(step="newest")))


def matrix(hand: Hand) -> Any:
    return hand.run(MatrixOperator, run=RUN)


def settle(hand: Hand, **more: Any) -> Any:
    return hand.run(SettleOperator, run=RUN, **more)


def records(hand: Hand, kind: str) -> list[dict[str, Any]]:
    """Bodies of the run's records of a kind."""
    import base64

    found = [raw for name, raw in hand.desk.stored().items() if f"/records/{kind}/" in name]
    return [json.loads(base64.b64decode(json.loads(raw)["payload"]))["body"] for raw in found]


def test_where_all_is_well_nothing_is_called_for(hand: Hand) -> None:
    proved(hand)
    before = hand.desk.stored()
    found = matrix(hand)
    assert (found["heal"], found["mark"], found["catch_up"]) == ([], False, "")
    for turn in (copies_to_heal, runs_to_mark, syncs_to_start, runs_to_settle):
        assert turn([found, None]) == []
    assert settle(hand)["run"] == RUN
    assert hand.desk.stored() == before


def test_a_damaged_copy_is_healed_once_and_proved_again(hand: Hand) -> None:
    proved(hand)
    hand.desk.damage("a", "file-1.sea", 5000)
    look(hand)
    found = matrix(hand)
    (copy,) = copies_to_heal([found])
    assert (copy["run"], copy["store"], runs_to_settle([found])) == (RUN, "a", [{"run": RUN, "marked": False}])
    with pytest.raises(AirflowFailException, match="no response mended it"):
        settle(hand)
    healed = [hand.run(HealOperator, **copy) for _ in range(2)]
    assert [(done["status"], done["objects"], done["receipt"]) for done in healed] == [("done", 1, 2), ("nothing to do", 0, None)]
    with pytest.raises(AirflowFailException, match="no response mended it"):
        settle(hand)
    hand.certify(hand.check(copies_to_prove(healed[:1])))
    assert settle(hand)["run"] == RUN
    assert matrix(hand)["heal"] == []
    assert len(records(hand, "response")) == len(records(hand, "outcome")) == 1


def test_a_task_that_was_told_a_lie_heals_nothing(hand: Hand) -> None:
    """Whoever writes into Airflow's database names a good copy as damaged: it is read, and left alone."""
    proved(hand)
    (sealing,) = {copy["sealing"] for copy in hand.due(step="newest")}
    before = hand.desk.stored()
    assert hand.run(HealOperator, run=RUN, sealing=sealing, store="a")["status"] == "nothing to do"
    hand.run(RespondOperator, run=RUN)
    assert hand.desk.stored() == before


def test_what_no_copy_has_is_an_incident_and_overwrites_nothing(hand: Hand) -> None:
    proved(hand)
    for name in ("a", "c"):
        hand.desk.damage(name, "file-1.sea", 5000)
    look(hand)
    before = hand.desk.stored()
    found = matrix(hand)
    assert (copies_to_heal([found]), runs_to_mark([found])) == ([], [RUN])
    for _ in range(2):
        (answer,) = hand.run(RespondOperator, run=RUN)["answers"]
        assert (answer["response"], answer["step"]) == ("incident", 100)
    assert len(records(hand, "incident")) == 1, "asked twice, said once"
    after = hand.desk.stored()
    assert {name: after[name] for name in before} == before
    with pytest.raises(AirflowFailException, match="no response mended it"):
        settle(hand, marked=True)


def test_a_heal_that_finds_no_other_copy_fails_at_once_and_says_so(hand: Hand) -> None:
    proved(hand)
    for name in ("a", "c"):
        hand.desk.damage(name, "file-1.sea", 5000)
    (sealing,) = {copy["sealing"] for copy in hand.due(step="newest")}
    with pytest.raises(AirflowFailException, match="HealError"):
        hand.run(HealOperator, run=RUN, sealing=sealing, store="a")
    assert [body["severity"] for body in records(hand, "incident")] == ["highest"]


def test_a_sync_is_asked_for_once_while_the_same_is_late(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.cli.site.SystemClock.now", lambda clock: datetime.now(UTC) + timedelta(hours=1))
    proved(hand)
    save(hand, 200)
    monkeypatch.setattr("seawall.cli.site.SystemClock.now", lambda clock: datetime.now(UTC) + timedelta(hours=2))
    (first,) = syncs_to_start([matrix(hand)])
    assert first["conf"] == {"run": RUN} and first["trigger_run_id"].startswith("catch_up__")
    assert syncs_to_start([matrix(hand)]) == [first], "Airflow starts a run of this id once"
    save(hand, 300)
    monkeypatch.setattr("seawall.cli.site.SystemClock.now", lambda clock: datetime.now(UTC) + timedelta(hours=4))
    (second,) = syncs_to_start([matrix(hand)])
    assert second["trigger_run_id"] != first["trigger_run_id"], "another checkpoint is late"
    hand.sync()
    assert syncs_to_start([matrix(hand)]) == []


def acting(hand: Hand) -> list[SeawallOperator]:
    """One of each that writes something."""
    config = {"seawall_config": str(hand.desk.config)}
    sealing = "00" * 16
    return [
        PlanSyncOperator(task_id="plan", run=RUN, **config),
        CommitOperator(task_id="commit", run=RUN, sealing=sealing, **config),
        CertifyOperator(task_id="certify", run=RUN, results=[], **config),
        HealOperator(task_id="heal", run=RUN, sealing=sealing, store="a", **config),
        RespondOperator(task_id="respond", run=RUN, **config),
        MatrixOperator(task_id="matrix", run=RUN, **config),
        SettleOperator(task_id="settle", run=RUN, **config),
    ]


def test_a_backfill_and_a_run_of_long_ago_act_on_nothing(hand: Hand) -> None:
    save(hand)
    hand.sync()
    hand.desk.damage("a", "file-1.sea", 5000)
    before = hand.desk.stored()
    now = datetime.now(UTC)
    old = {"data_interval_start": now - timedelta(days=5), "data_interval_end": now - timedelta(days=4)}
    filling = context(dag_run=SimpleNamespace(run_type="backfill", run_after=None))
    for operator in acting(hand):
        for about in (filling, context(**old), context(dag_run=SimpleNamespace(run_type="scheduled", run_after=now), **old)):
            with pytest.raises(AirflowSkipException, match="acts on nothing"):
                operator.execute(about)
    assert hand.desk.stored() == before


def test_a_run_of_last_night_may_be_run_again(hand: Hand) -> None:
    """The control of the test above."""
    save(hand)
    now = datetime.now(UTC)
    night = {"data_interval_start": now - timedelta(days=2), "data_interval_end": now - timedelta(days=1)}
    plan = PlanSyncOperator(task_id="plan", run=RUN, seawall_config=str(hand.desk.config)).execute(context(**night))
    assert plan["status"] == "planned"
    week = context(data_interval_start=now - timedelta(days=13), data_interval_end=now - timedelta(days=6))
    assert not is_past(week, now), "what a person starts is about the last week that is over"
    assert is_past(week, now + timedelta(days=4))
