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


def verified(bag: DagBag) -> Any:
    """A run of seawall_verify that looks at everything."""
    return bag.dags["seawall_verify"].test(run_conf={"step": "newest"}, logical_date=utcnow())


RESPONSES = ("mend.heal", "mend.prove", "mend.sign", "mark.respond", "catch_up.sync", "settle", "failed")


def test_a_damaged_record_is_found_healed_and_proved_again(hand: Hand, bag: DagBag) -> None:
    hand.desk.save(100, {"shard.raw": os.urandom(9000)})
    hand.sync()
    whole = hand.desk.objects("a", "file-1.sea")[0].read_bytes()
    hand.desk.damage("a", "file-1.sea", 5000)
    run = verified(bag)
    found = states(run)
    assert [task for task in RESPONSES if found[task] == ["success"]] == ["mend.heal", "mend.prove", "mend.sign", "settle"]
    assert [task for task in RESPONSES if found[task] == ["skipped"]] == ["mark.respond", "catch_up.sync", "failed"]
    assert str(run.state) == "success"
    assert hand.desk.objects("a", "file-1.sea")[0].read_bytes() == whole
    (row,) = hand.desk("copies", RUN, "--json").json["checkpoints"]
    assert [copy["level"] for copy in row["copies"].values()] == ["L4", "L4"]
    # Where all is well, nothing responds.
    again = states(verified(bag))
    assert {state for task in RESPONSES for state in again[task]} == {"skipped"}


def test_what_no_copy_has_is_an_incident_and_nothing_is_overwritten(hand: Hand, bag: DagBag) -> None:
    hand.desk.save(100, {"shard.raw": os.urandom(9000)})
    hand.sync()
    for name in ("a", "c"):
        hand.desk.damage(name, "file-1.sea", 5000)
    before = {name: raw for name, raw in hand.desk.stored().items() if "/sealings/" in name}
    run = verified(bag)
    found = states(run)
    assert (found["mend.heal"], found["mark.respond"], found["settle"], str(run.state)) == (["skipped"], ["success"], ["failed"], "failed")
    stored = hand.desk.stored()
    assert {name: raw for name, raw in stored.items() if "/sealings/" in name} == before
    assert [name for name in stored if "/records/incident/" in name]


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
