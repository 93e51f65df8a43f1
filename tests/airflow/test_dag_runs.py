"""Whole DAG runs in one process, on SQLite: sync with two batches, verify, restore; and a run of several runs where one fails."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.timezone import utcnow

from tests.airflow.conftest import CHECKOUT
from tests.airflow.tasks import Hand, new_hand
from tests.protect.command_line import RUN
from tests.protect.little_site import tree

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("database")]
MIB = 1 << 20


@pytest.fixture
def hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hand]:
    hand = new_hand(tmp_path, batch_bytes=MIB)
    monkeypatch.setenv("AIRFLOW__SEAWALL__CONFIG", str(hand.desk.config))
    yield hand


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(dag_folder=str(CHECKOUT / "dags"))


def states(run: Any) -> dict[str, list[str]]:
    """Task → states of its instances."""
    found: dict[str, list[str]] = {}
    for task in sorted(run.get_task_instances(), key=lambda task: (task.task_id, task.map_index)):
        found.setdefault(task.task_id, []).append(str(task.state))
    return found


def test_sync_verify_restore(hand: Hand, bag: DagBag, tmp_path: Path) -> None:
    source = hand.desk.save(100, {f"shard-{number}.raw": os.urandom(700_000) for number in range(2)})
    synced = bag.dags["seawall_sync"].test(run_conf={}, logical_date=utcnow())
    assert states(synced) == {
        "runs": ["success"],
        "plan": ["success"],
        "batches": ["success"],
        "seal": ["success", "success"],
        "sealings": ["success"],
        "commit": ["success"],
        "lacking": ["success"],
        "fill": ["skipped"],
        "failed": ["skipped"],
    }
    assert str(synced.state) == "success"
    proved = bag.dags["seawall_verify"].test(run_conf={}, logical_date=utcnow())
    assert states(proved)["verify"] == ["success", "success"]
    assert str(proved.state) == "success"
    form = {"run": RUN, "target": str(tmp_path / "back"), "level": "L3"}
    restored = bag.dags["seawall_restore"].test(run_conf=form, logical_date=utcnow())
    assert str(restored.state) == "success"
    assert tree(tmp_path / "back") == tree(source)


def test_a_run_that_fails_holds_up_no_other_and_is_seen(hand: Hand, bag: DagBag) -> None:
    text = hand.desk.config.read_text()
    # Configured, but nobody opened its log.
    more = {"early": hand.desk.folder / "early"}
    more["early"].mkdir()
    (more["early"] / "step_1").mkdir()
    (more["early"] / "step_1" / "w.raw").write_bytes(b"x")
    (more["early"] / "step_1" / "_COMMITTED").write_text('{"step": 1}')
    tables = "".join(f"\n[runs.{name}]\npaths = {{ a = {json.dumps(str(path))} }}\ncopies = ['a', 'c']\n" for name, path in more.items())
    hand.desk.config.write_text(text + tables)
    hand.desk.save(1)
    run = bag.dags["seawall_sync"].test(run_conf={}, logical_date=utcnow())
    found = states(run)
    assert sorted(found["plan"]) == ["failed", "success"]
    assert (found["commit"], found["failed"], str(run.state)) == (["success"], ["failed"], "failed")
    assert hand.desk("copies", RUN, "--json").json["total"] == 1
