"""Operators without a scheduler: a checkpoint goes out in batches, is proved and comes back; twice, at once, after damage, with errors."""

import json
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stamina
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from seawall.operators.matrix import MatrixOperator
from seawall.operators.respond import HealOperator, RespondOperator
from seawall.operators.restore import RestoreOperator, flag, number, restore_target
from seawall.operators.sync import CommitOperator, PlanSyncOperator
from tests.airflow.tasks import Hand, context, new_hand
from tests.protect.command_line import RUN
from tests.protect.little_site import tree

MIB = 1 << 20


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    return new_hand(tmp_path, batch_bytes=MIB)


def save(hand: Hand, step: int = 100) -> Path:
    return hand.desk.save(step, {f"shard-{number}.raw": os.urandom(700_000) for number in range(3)})


def test_a_checkpoint_goes_out_in_batches_is_proved_and_comes_back(hand: Hand, tmp_path: Path) -> None:
    source = save(hand)
    assert hand.runs() == [RUN]
    plan = hand.plan()
    assert (plan["status"], plan["step"], plan["batches"], plan["verdict"]) == ("planned", 100, [0, 1, 2], "ok")
    assert [done["files"] for done in hand.seal(plan)] == [2, 1, 1]
    (committed,) = hand.commit(plan)
    assert (committed["status"], committed["copies"], committed["missing"]) == ("committed", ["a", "c"], [])
    results = hand.check(hand.due())
    assert sorted((result["store"], result["result"]) for result in results) == [("a", "ok"), ("c", "ok")]
    assert hand.certify(results)["proofs"] == 6, "L1 is not attainable in a folder, and one copy tells what all decrypt to"
    done = hand.run(RestoreOperator, run=RUN, target=str(tmp_path / "back"), step="", level="L3")
    assert (done["step"], done["level"], done["files"]) == (100, "L4", 4)
    assert tree(tmp_path / "back") == tree(source)


def test_each_task_may_run_twice(hand: Hand) -> None:
    save(hand)
    plan = hand.plan()
    assert hand.plan() == plan
    hand.seal(plan)
    again = hand.seal(plan)
    assert [done["adopted"] for done in again] == [2, 1, 1]
    first, second = hand.commit(plan), hand.commit(plan)
    assert (first[0]["status"], second[0]["status"]) == ("committed", "unchanged")
    assert hand.plan()["status"] == "unchanged"
    results = hand.check(hand.due())
    hand.certify(results)
    before = hand.desk.stored()
    hand.certify(results)
    assert hand.desk.stored() == before, "the same results are signed once"
    assert hand.due() == [], "what was proved a moment ago is not read again"
    assert len(hand.due(step="newest")) == 2


def test_each_task_may_run_twice_at_once(hand: Hand) -> None:
    save(hand)
    with ThreadPoolExecutor(2) as pool:

        def twice(act: Any) -> list[Any]:
            return [future.result() for future in [pool.submit(act), pool.submit(act)]]

        plans = twice(hand.plan)
        assert plans[0]["sealing"] == plans[1]["sealing"]
        twice(lambda: hand.seal(plans[0]))
        commits = twice(lambda: hand.commit(plans[0]))
        assert {commit["sealing"] for (commit,) in commits} == {plans[0]["sealing"]}
        results = twice(lambda: hand.check(hand.due()))
        twice(lambda: hand.certify(results[0]))
    copies = hand.desk("copies", RUN, "--json").json
    assert (copies["total"], copies["recovery_point"]["level"]) == (1, "L4")


def test_an_incomplete_checkpoint_is_skipped(hand: Hand) -> None:
    folder = hand.desk.checkpoints / "step_7"
    folder.mkdir()
    (folder / "__0_0.distcp").write_bytes(b"what DCP writes before its metadata")
    with pytest.raises(AirflowSkipException, match="not complete"):
        hand.plan()


def test_a_run_without_a_checkpoint_is_skipped(hand: Hand) -> None:
    with pytest.raises(AirflowSkipException):
        hand.plan()


def test_a_commit_without_its_batches_fails_at_once_and_later_succeeds(hand: Hand) -> None:
    save(hand)
    plan = hand.plan()
    with pytest.raises(AirflowFailException, match="not there yet"):
        hand.commit(plan)
    hand.seal(plan)
    assert hand.commit(plan)[0]["status"] == "committed"


def test_a_source_that_changed_meanwhile_fails_at_once(hand: Hand) -> None:
    source = save(hand)
    plan = hand.plan()
    (source / "shard-1.raw").write_bytes(b"another save")
    with pytest.raises(AirflowFailException, match="SourceChangedError"):
        hand.seal(plan)


def test_a_store_that_does_not_answer_is_tried_again(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    text = hand.desk.config.read_text()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    away = f'url = "s3://bucket/x"\nendpoint = "http://127.0.0.1:{port}"'
    hand.desk.config.write_text(text.replace(f'url = "file://{hand.desk.store("a")}"', away))
    save(hand)
    # The store's own retries wait for a minute; what is asked here is what comes after them.
    with stamina.set_testing(True, attempts=1), pytest.raises(AirflowException, match="transient") as caught:
        hand.plan()
    assert type(caught.value) is AirflowException
    hand.desk.config.write_text(text)
    assert hand.plan()["status"] == "planned"


def test_a_further_store_that_is_away_is_filled_by_its_own_task(tmp_path: Path) -> None:
    hand = new_hand(tmp_path, stores=("a", "b", "c"))
    save(hand)
    away, there = hand.desk.store("b"), tmp_path / "unplugged"
    away.rename(there)
    (committed,) = hand.sync_without_filling()
    assert (committed["copies"], committed["missing"]) == (["a", "c"], ["b"])
    with pytest.raises(AirflowException, match="the folder of the store is not there"):
        hand.fill([committed])
    there.rename(away)
    assert [done["store"] for done in hand.fill([committed])] == ["b"]
    assert {copy["store"] for copy in hand.due()} == {"a", "b", "c"}
    assert {result["result"] for result in hand.check(hand.due())} == {"ok"}


def test_a_copy_that_is_being_filled_is_not_called_damaged(tmp_path: Path) -> None:
    hand = new_hand(tmp_path)
    save(hand)
    hand.sync()
    (receipt,) = hand.desk.objects("c", "receipt-*.json")
    receipt.unlink()
    assert [copy["store"] for copy in hand.due()] == ["a"], "it was never proved and has no receipt: it may not be whole yet"
    hand.commit(hand.plan())
    hand.certify(hand.check(hand.due()))
    (receipt,) = hand.desk.objects("c", "receipt-*.json")
    receipt.unlink()
    assert {copy["store"] for copy in hand.due(step="newest")} == {"a", "c"}, "nobody escapes a check by taking the receipt away"


def test_damage_is_signed(hand: Hand) -> None:
    save(hand)
    hand.sync()
    hand.desk.damage("a", "file-1.sea", 5000)
    results = hand.check(hand.due())
    assert sorted((result["store"], result["result"]) for result in results) == [("a", "failed"), ("c", "ok")]
    assert {copy["store"]: copy["result"] for copy in hand.certify(results)["copies"]} == {"a": "failed", "c": "ok"}
    (row,) = hand.desk("copies", RUN, "--json").json["checkpoints"]
    assert row["copies"]["a"]["state"] == "failed" and row["copies"]["c"]["level"] in ("L2", "L4")


def test_a_large_copy_is_read_in_parts_that_add_up_to_one_proof(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.verify.rotation.BATCH_BYTES", MIB)
    monkeypatch.setattr("seawall.verify.rotation.object_spans.__defaults__", (MIB,))
    save(hand)
    hand.sync()
    due = hand.due()
    of_a = [item for item in due if item["store"] == "a"]
    assert len(of_a) > 1 and {item["level"] for item in due} == {"L2"}, "content cannot be read in parts"
    assert [item["first"] for item in of_a] == [0, *(item["first"] + item["count"] for item in of_a[:-1])]
    results = hand.check(due)
    assert hand.certify(results[1:])["proofs"] == 1, "a copy of which a part is missing is not proved"
    hand.certify(results)
    before = hand.desk.stored()
    hand.certify(results)
    assert hand.desk.stored() == before, "signed once"
    (row,) = hand.desk("copies", RUN, "--json").json["checkpoints"]
    assert {copy["level"] for copy in row["copies"].values()} == {"L2"}
    assert hand.due(level="L2") == []


def test_damage_in_one_part_is_damage_of_the_copy(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.verify.rotation.BATCH_BYTES", MIB)
    monkeypatch.setattr("seawall.verify.rotation.object_spans.__defaults__", (MIB,))
    save(hand)
    hand.sync()
    hand.desk.damage("a", "file-3.sea", 5000)
    hand.certify(hand.check(hand.due()))
    (row,) = hand.desk("copies", RUN, "--json").json["checkpoints"]
    assert (row["copies"]["a"]["state"], row["copies"]["c"]["level"]) == ("failed", "L2")


def test_what_does_not_fit_into_the_budget_waits(hand: Hand) -> None:
    for step in (100, 200):
        save(hand, step)
        hand.sync()
    (first,) = hand.due(budget="1kB")
    assert len(hand.due(budget="")) == len(hand.due(budget="1TB")) == 4
    hand.certify(hand.check([first]))
    assert len(hand.due()) == 3, "a part of the way each time"


def test_a_checkpoint_that_somebody_names_is_read_whenever_it_was_read_last(hand: Hand) -> None:
    for step in (100, 200):
        save(hand, step)
        hand.sync()
    hand.certify(hand.check(hand.due()))
    assert hand.due() == []
    state = hand.desk("copies", RUN, "--json").json["checkpoints"]
    older = next(row["sealing"] for row in state if row["step"] == 100)
    assert {(copy["sealing"], copy["store"]) for copy in hand.due(step="100")} == {(older, "a"), (older, "c")}
    with pytest.raises(AirflowFailException, match="no such checkpoint"):
        hand.due(step="150")
    with pytest.raises(AirflowFailException, match="a step is a number"):
        hand.due(step="latest")


def test_results_that_no_verifier_signed_are_refused(hand: Hand) -> None:
    """The control: somebody who can write to Airflow's database makes up, or changes, a result."""
    save(hand)
    hand.sync()
    (first, _) = hand.check(hand.due())
    before = hand.desk.stored()
    envelope = json.loads(first["found"])
    envelope["payload"] = envelope["payload"][:-8] + "AAAAAAA="
    with pytest.raises(AirflowFailException, match=r"TrustError|CorruptError"):
        hand.certify([{**first, "found": json.dumps(envelope, separators=(",", ":"))}])
    assert hand.desk.stored() == before


def test_the_events_of_a_commit_say_what_it_is_about(hand: Hand) -> None:
    from seawall.operators.assets import SYNCED

    save(hand)
    plan = hand.plan()
    hand.seal(plan)
    events = {SYNCED: SimpleNamespace(extra=None)}
    task = CommitOperator(task_id="c", run=RUN, sealing=plan["sealing"], outlets=[SYNCED], seawall_config=str(hand.desk.config))
    task.execute(context(outlet_events=events))
    assert events[SYNCED].extra == {"run": RUN, "step": 100, "sealing": plan["sealing"]}


def test_only_the_runs_that_events_name_are_looked_at(hand: Hand) -> None:
    from seawall.operators.runs import ListRunsOperator

    def listed(*extras: Any) -> Any:
        events = {"asset": [SimpleNamespace(extra=extra) for extra in extras]}
        task = ListRunsOperator(task_id="runs", seawall_config=str(hand.desk.config))
        return task.execute(context(triggering_asset_events=events))

    assert listed({"run": RUN}, {"run": RUN}) == [RUN]
    assert listed({"run": "another"}) == []
    assert listed({"run": "another"}, {"step": 3}) == [RUN], "an event that names no run may be about any"
    with pytest.raises(AirflowFailException, match="no such run"):
        hand.runs(run="another")


def test_what_a_form_says_is_read_strictly(tmp_path: Path) -> None:
    from seawall.errors import UsageError

    assert (number(""), number(None), number("None"), number("007"), number(3)) == (None, None, None, 7, 3)
    assert (flag("True"), flag("False"), flag(""), flag(True)) == (True, False, False, True)
    for wrong in ("3.5", "-1", "1; ls", "٣x"):
        with pytest.raises(UsageError):
            number(wrong)
    with pytest.raises(UsageError):
        flag("yes")
    assert restore_target(str(tmp_path / "x"), "") == tmp_path.resolve() / "x"
    assert restore_target("x", str(tmp_path)) == tmp_path.resolve() / "x"
    (tmp_path / "out").symlink_to("/")
    for outside in ("../x", "/etc/x", "out/x", ".", "..", ""):
        with pytest.raises(UsageError):
            restore_target(outside, str(tmp_path))
    with pytest.raises(UsageError):
        restore_target("relative", "")


def test_nothing_secret_goes_through_airflow(hand: Hand) -> None:
    """XCom and templates lie in Airflow's database, without a fernet key in plain text."""
    save(hand)
    plan = hand.plan()
    said = [plan, hand.seal(plan), hand.commit(plan), hand.due()]
    results = hand.check(said[-1])
    (copy, *_) = said[-1]
    copy = {name: copy[name] for name in ("run", "sealing", "store")}
    responded = [
        hand.certify(results),
        hand.run(MatrixOperator, run=RUN),
        hand.run(HealOperator, **copy),
        hand.run(RespondOperator, run=RUN),
    ]
    passed_on = json.dumps([*said, results, *responded])
    keys = hand.desk.config.parent / "keys"
    secrets = {
        word
        for path in keys.iterdir()
        if path.stat().st_mode & 0o077 == 0
        for word in re.findall(r"[0-9A-Za-z+/=_-]{32,}", path.read_text())
    }
    assert len(secrets) >= 6, "the four roles, the root, the keyring, the recovery key"
    assert [word for word in secrets if word in passed_on] == []
    assert len(passed_on) < 20_000


def test_the_link_leads_to_the_checkpoint(hand: Hand) -> None:
    from seawall.operators.links import CheckpointLink

    save(hand)
    task = PlanSyncOperator(task_id="plan", run=RUN, seawall_config=str(hand.desk.config))
    link = CheckpointLink()
    assert link.get_link(task, ti_key=None) == "", "a task that came to no checkpoint leads nowhere"  # type: ignore[arg-type]
    plan = task.execute(context())
    assert link.get_link(task, ti_key=None) == f"/seawall/integrity?run={RUN}&sealing={plan['sealing']}#copies"  # type: ignore[arg-type]


def test_a_store_that_does_not_answer_has_a_check_of_its_own(tmp_path: Path) -> None:
    hand = new_hand(tmp_path, stores=("a", "b", "c"))
    save(hand)
    hand.sync()
    hand.desk.store("b").rename(tmp_path / "unplugged")
    due = hand.due()
    assert {copy["store"] for copy in due} == {"a", "b", "c"} and due[-1]["store"] == "b"
    with pytest.raises(AirflowException, match="the folder of the store is not there"):
        hand.check(due[2:])
    copies = hand.certify(hand.check(due[:2]))["copies"]
    assert {copy["store"]: copy["result"] for copy in copies} == {"a": "ok", "c": "ok"}
