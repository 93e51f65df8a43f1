"""The archive's operators without a scheduler: in parts, twice, after a loss, and when there is nothing to do."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.timezone import utcnow

from seawall.operators.archive import ArchiveOperator, ArchivePartOperator, PlanArchiveOperator
from seawall.operators.verify import VerifyOperator
from seawall.operators.work import archived_to_prove, parts_to_archive, sealings_to_archive
from tests.airflow.tasks import Hand, new_hand
from tests.protect.command_line import RUN

MIB = 1 << 20


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    """A run with one checkpoint of several batches, proved in its two stores, and an archive without it."""
    hand = new_hand(tmp_path, batch_bytes=MIB, stores=("a", "c", "cold"))
    text = hand.desk.config.read_text()
    assert 'copies = ["a", "c", "cold"]' in text
    hand.desk.config.write_text(text.replace('copies = ["a", "c", "cold"]', 'copies = ["a", "c", "cold"]\narchive = "cold"'))
    hand.desk.save(100, {f"shard-{number}.raw": bytes([number]) * 700_000 for number in range(3)})
    hand.sync()
    hand.certify(hand.check(hand.due()))
    return hand


def archive(hand: Hand) -> tuple[Any, list[Any], Any]:
    plan = hand.run(PlanArchiveOperator, run=RUN)
    parts = [hand.run(ArchivePartOperator, **part) for part in parts_to_archive([plan])]
    (done,) = [hand.run(ArchiveOperator, **sealing) for sealing in sealings_to_archive([plan])]
    return plan, parts, done


def sealed(hand: Hand, store: str, sealing: str) -> dict[str, bytes]:
    folder = hand.desk.folder / store / "runs" / RUN / "sealings" / sealing
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith("receipt-")}


def test_it_goes_in_parts_is_labelled_and_proved(hand: Hand) -> None:
    plan, parts, done = archive(hand)
    assert (plan["status"], plan["step"], done["status"], done["store"]) == ("planned", 100, "archived", "cold")
    assert sum(part["count"] for part in plan["parts"]) == sum(part["objects"] for part in parts) > 4
    assert done["label"].endswith("-step00000100")
    assert sealed(hand, "cold", plan["sealing"]) == sealed(hand, "a", plan["sealing"])
    results = [hand.run(VerifyOperator, level="L2", **copy) for copy in archived_to_prove([done])]
    assert [(result["store"], result["result"]) for result in results] == [("cold", "ok")]
    assert hand.certify(results)["proofs"] >= 2
    assert [copy for copy in hand.due() if copy["store"] == "cold"] == []


def test_twice_copies_nothing(hand: Hand) -> None:
    archive(hand)
    before = hand.desk.stored()
    plan, parts, done = archive(hand)
    assert (plan["status"], parts, done["status"]) == ("unchanged", [], "unchanged")
    assert archived_to_prove([done]) == []
    assert hand.desk.stored() == before


def test_what_a_killed_part_left_out_is_brought_at_the_end(hand: Hand) -> None:
    plan = hand.run(PlanArchiveOperator, run=RUN)
    first = parts_to_archive([plan])[0]
    hand.run(ArchivePartOperator, **{**first, "count": 1})
    done = hand.run(ArchiveOperator, run=RUN, sealing=plan["sealing"])
    assert done["status"] == "archived"
    assert sealed(hand, "cold", plan["sealing"]) == sealed(hand, "a", plan["sealing"])


def test_nothing_proved_and_no_archive_are_skipped(hand: Hand, tmp_path: Path) -> None:
    config = hand.desk.config
    config.write_text(config.read_text().replace('archive = "cold"', 'archive = "cold"\nrequired_level = "L5"'))
    with pytest.raises(AirflowSkipException, match="L5"):
        hand.run(PlanArchiveOperator, run=RUN)
    config.write_text(config.read_text().replace('archive = "cold"\n', ""))
    with pytest.raises(AirflowSkipException, match="no archive"):
        hand.run(PlanArchiveOperator, run=RUN)


def test_a_run_about_the_past_archives_nothing(hand: Hand) -> None:
    before = hand.desk.stored()
    end = utcnow() - timedelta(days=10)
    past = {"dag_run": SimpleNamespace(run_after=end, run_type="backfill"), "data_interval_start": end - timedelta(days=1)}
    task = PlanArchiveOperator(task_id="task", seawall_config=str(hand.desk.config), run=RUN)
    with pytest.raises(AirflowSkipException, match="backfill"):
        task.execute({**past, "data_interval_end": end})
    assert hand.desk.stored() == before
