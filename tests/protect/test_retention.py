"""Plan, approve, run: what goes, when, and what is left alone; twice, at once, and after something got worse in between."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from seawall.clock import parse_utc, utc_text
from seawall.errors import (
    BusyError,
    FreshnessError,
    IncompleteError,
    NoSuchCopyError,
    StoreRefusedError,
    StoreUnavailableError,
    TrustError,
    UsageError,
)
from seawall.log import verbs
from seawall.log.bodies import RETENTION
from seawall.log.records import list_records, read_record, record_key, sign_record
from seawall.protect.retention import open_plans
from seawall.protect.retention_document import APPROVAL, INTENT, PLAN, plan_body, plan_name
from seawall.protect.retention_facts import Kind
from seawall.protect.retention_gather import gather
from seawall.protect.retention_plan import decide
from seawall.protect.write_off import write_off
from seawall.stores.base import Capabilities
from seawall.testing.faulty import FaultyStore
from seawall.testing.memory import MemoryStore
from tests.protect.little_site import RUN, write_checkpoint
from tests.protect.retention_stage import SECOND, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Five checkpoints of five days: 100 and 200 may go, 300 is older than the detection delay, 400 and 500 are the last two."""
    stage = Stage(tmp_path)
    stage.save(100, 200, 300, 400, 500)
    return stage


def test_what_no_rule_keeps_goes_and_the_rest_stays(stage: Stage) -> None:
    stage.prove()
    planned = stage.plan()
    assert {kept.step for kept in planned.decision.keep} == {300, 400, 500}, planned.decision
    assert [(deletion.step, deletion.kind) for deletion in planned.decision.delete] == [(100, Kind.CHECKPOINT)] * 2 + [
        (200, Kind.CHECKPOINT)
    ] * 2
    before = {step: stage.stored(step) for step in (300, 400, 500)}
    done = stage.run(stage.approved())
    assert done.stopped == () and done.count("deleted") == 4, done.copies
    assert stage.stored(100) == stage.stored(200) == {"a": set(), "c": set()}
    assert {step: stage.stored(step) for step in (300, 400, 500)} == before
    state = stage.site.view().state
    assert all(state.is_deleted(stage.sealing(100), stage.site.place(name).id) for name in "ac")
    assert state.leases[RETENTION].released
    assert stage.run() == replace(done, plan=None, copies=[])


def test_a_plan_waits_for_approval_and_for_the_stores_clock(stage: Stage) -> None:
    stage.prove()
    plan = stage.plan().plan
    assert plan is not None
    assert stage.plan().plan == plan, "the same plan is not written again"
    with pytest.raises(IncompleteError, match="not approved"):
        stage.run(plan.name)
    stage.approve(plan.name)
    stage.approve(plan.name)
    with pytest.raises(IncompleteError, match="not cooled off"):
        stage.run(plan.name)
    assert stage.run().copies == []
    stage.wait(hours=23.9)
    with pytest.raises(IncompleteError, match="not cooled off"):
        stage.run(plan.name)
    stage.wait(days=9)
    with pytest.raises(UsageError, match="too old"):
        stage.run(plan.name)
    with pytest.raises(UsageError, match="too old"):
        stage.approve(plan.name)
    with pytest.raises(NoSuchCopyError):
        stage.run("20260101T000000Z-0000000000000000")
    assert all(stage.stored(step)["a"] for step in (100, 200))


def test_a_plan_that_claims_to_be_older_cools_off_from_its_arrival(stage: Stage) -> None:
    """An operator's host signs the time of a plan; the store says when it came."""
    stage.prove()
    gathered = gather(stage.desk())
    body = plan_body(gathered, decide(gathered.facts, stage.settings), stage.settings)
    early = {name: utc_text(parse_utc(str(body[name])) - timedelta(days=3)) for name in ("at", "not_before", "not_after")}
    body.update(early)
    sign_record(stage.memory["c"], RUN, PLAN, plan_name(body), body, [stage.operator])
    stage.approve(plan_name(body))
    with pytest.raises(IncompleteError, match="not cooled off"):
        stage.run(plan_name(body))
    stage.wait(hours=24)
    stage.prove()
    assert stage.run(plan_name(body)).count("deleted") == 4


def test_what_gets_worse_meanwhile_drops_out(stage: Stage) -> None:
    name = stage.approved()
    stage.prove(100, failed="a")
    done = stage.run(name)
    outcomes = {(copy.step, copy.store): copy for copy in done.copies}
    assert {copy.outcome for copy in done.copies if copy.step == 100} == {"dropped"}, outcomes
    assert all("frozen" in copy.why for copy in done.copies if copy.step == 100)
    assert stage.stored(200) == {"a": set(), "c": set()} and all(stage.stored(100).values())


@pytest.mark.parametrize("what", ["hold", "lapse", "quarantine"])
def test_what_endangers_the_rest_stops_the_run(stage: Stage, what: str) -> None:
    stage.settings = stage.settings.model_copy(update={"plan_valid_days": 30})
    name = stage.approved()
    view, key = stage.site.view(), stage.operator
    if what == "hold":
        verbs.hold(stage.memory["c"], view, "an audit", key, stage.clock)
    elif what == "lapse":
        stage.wait(days=7.5)
    else:
        for step in (300, 400, 500):
            view = verbs.quarantine(stage.memory["c"], view, stage.sealing(step), "the loss jumped", key, stage.clock)
    done = stage.run(name)
    if what == "quarantine":
        # The two that were to go are the only ones left that can be counted on.
        assert {copy.outcome for copy in done.copies} == {"dropped"}
    else:
        assert done.stopped and done.copies == [], done
    assert all(all(stage.stored(step).values()) for step in (100, 200))


def test_a_hold_in_the_middle_stops_there(stage: Stage) -> None:
    name = stage.approved()
    stage.wrapped = {"c": FaultyStore(stage.memory["c"])}

    def held(_: str) -> None:
        verbs.hold(stage.memory["c"], stage.site.view(), "wait", stage.site.keys["verifier"], stage.clock)

    stage.wrapped["c"].before("delete", held)  # type: ignore[attr-defined]  # a faulty store
    done = stage.run(name)
    assert 1 <= done.count("deleted") == len(done.copies) <= 2 and done.stopped == ("the run is on hold: wait",)
    assert all(stage.stored(200).values()), "what was begun is finished, and nothing else is begun"


def test_one_process_at_a_time(stage: Stage) -> None:
    name = stage.approved()
    store, view = stage.memory["c"], stage.site.view()
    verbs.take_lease(store, view, "somebody", RETENTION, stage.now, stage.now + timedelta(minutes=10), stage.site.keys[SECOND], stage.clock)
    with pytest.raises(BusyError, match="somebody has it until"):
        stage.run(name)
    assert all(stage.stored(100).values())
    stage.wait(minutes=10)
    assert stage.run(name).count("deleted") == 4


def test_who_lost_the_lease_buries_nothing_more(stage: Stage) -> None:
    name = stage.approved()
    stage.wrapped = {"a": FaultyStore(stage.memory["a"])}

    def lost(_: str) -> None:
        stage.wait(minutes=20)
        verbs.take_lease(
            stage.memory["c"],
            stage.site.view(),
            "another",
            RETENTION,
            stage.now,
            stage.now + timedelta(minutes=10),
            stage.site.keys[SECOND],
            stage.clock,
        )

    stage.wrapped["a"].before("delete", lost)  # type: ignore[attr-defined]  # a faulty store
    with pytest.raises(BusyError):
        stage.run(name)
    state = stage.site.view().state
    assert len([record for records in state.tombstones.values() for record in records]) <= 2
    assert all(stage.stored(200).values())
    stage.wrapped = {}
    stage.wait(minutes=11)
    done = stage.run(name, SECOND)
    assert done.count("deleted") + done.count("finished") >= 2
    assert stage.stored(100) == stage.stored(200) == {"a": set(), "c": set()}


def test_a_store_that_fails_in_the_middle_is_gone_on_with(stage: Stage) -> None:
    name = stage.approved()
    down = StoreUnavailableError("the disk is away")
    faulty = FaultyStore(stage.memory["a"])
    stage.wrapped = {"a": faulty}
    faulty.fail("delete", down, times=None, key=f"runs/{RUN}/sealings/{stage.sealing(100)}/file-0.sea")
    done = stage.run(name)
    assert done.count("cut short") == 1 and done.count("deleted") == 3
    left = stage.stored(100)["a"]
    assert "file-0.sea" in left and "keys-1.json" in left and not any(key.startswith("receipt") for key in left)
    assert "manifest.json" not in left, "what is left is no whole copy to anybody"
    stage.wrapped = {}
    view = verbs.hold(stage.memory["c"], stage.site.view(), "an audit", stage.operator, stage.clock)
    held = stage.run()
    assert held.stopped == ("the run is on hold: an audit",) and stage.stored(100)["a"] == left
    verbs.lift(stage.memory["c"], view, view.state.held[0], "done", stage.operator, stage.clock)
    again = stage.run()
    assert [copy.outcome for copy in again.copies] == ["finished"] and stage.stored(100)["a"] == set()


def test_every_object_was_written_down_before_it_went(stage: Stage) -> None:
    name = stage.approved()
    gone: list[tuple[str, str]] = []
    for store in "ac":
        faulty = FaultyStore(stage.memory[store])
        stage.wrapped = {**stage.wrapped, store: faulty}

        def checked(key: str, store: str = store) -> None:
            place, state = stage.site.place(store), stage.site.view().state
            sealing = key.split("/")[3]
            assert state.is_deleted(sealing, place.id), "the tombstone comes first"
            names = list_records(stage.memory["c"], RUN, INTENT, f"{sealing}-{place.id}-")
            bodies = [read_record(stage.memory["c"], RUN, INTENT, intent, state.resolver("operator")).body for intent in names]
            assert any(item["key"] == key for body in bodies for item in body["objects"])
            gone.append((store, key))

        faulty.before("delete", checked, times=None)
    stage.run(name)
    assert len(gone) == len(set(gone)) >= 4 * 9


def test_two_runs_at_once_delete_what_one_would(stage: Stage) -> None:
    name = stage.approved()
    faulty = FaultyStore(stage.memory["c"])
    stage.wrapped = {"c": faulty}
    met: list[str] = []

    def other(_: str) -> None:
        with pytest.raises(BusyError) as caught:
            stage.run(name, SECOND)
        met.append(str(caught.value))

    faulty.before("delete", other)
    assert stage.run(name).count("deleted") == 4
    assert met and "is held" in met[0]


def test_an_unfinished_sealing_and_an_orphan_go_the_same_way(stage: Stage, tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "late", 900)
    broken = FaultyStore(stage.memory["a"])
    stage.site.stores["a"] = broken

    def refuse(key: str) -> None:
        if key.endswith("manifest.json"):
            raise StoreRefusedError("the disk is full", where=key)

    broken.before("put", refuse, times=None)
    with pytest.raises(StoreRefusedError):
        stage.site.sync(source)
    stage.site.stores["a"] = stage.memory["a"]
    folders = set(stage.memory["a"].list_folders(f"runs/{RUN}/sealings/"))
    (unfinished,) = folders - set(stage.site.view().state.commits)
    stage.save(600, 700)
    stage.prove()
    assert not any(deletion.kind is Kind.UNFINISHED for deletion in stage.plan().decision.delete), "it may still be at work"
    stage.wait(days=6)
    done = stage.run(stage.approved())
    assert done.stopped == ()
    assert unfinished not in set(stage.memory["a"].list_folders(f"runs/{RUN}/sealings/"))
    assert unfinished in stage.site.view().state.tombstones
    # The same checkpoint is sealed anew, not as the sealing that was given up.
    again = stage.site.sync(source)
    assert again.status == "committed" and again.sealing != unfinished


def test_what_was_deleted_is_not_taken_again(stage: Stage) -> None:
    stage.run(stage.approved())
    with pytest.raises(NoSuchCopyError, match="deleted by plan"):
        stage.site.sync(stage.folder / "step_100")


def test_nothing_is_deleted_by_a_clock_that_went_back_or_by_nobodys(stage: Stage) -> None:
    name = stage.approved()
    stage.run(name)
    stage.clock.advance(-3600)
    with pytest.raises(FreshnessError, match="clock went back"):
        stage.plan()
    stage.clock.advance(3600 - 60)
    assert gather(stage.desk()).moment.now == parse_utc(stage.site.view().state.store_time or "")

    class Timeless(MemoryStore):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(conditional_put=True)

    for store in stage.memory.values():
        store.__class__ = Timeless
    with pytest.raises(StoreRefusedError, match="nobody can say what time it is"):
        stage.plan()
    stage.settings = stage.settings.model_copy(update={"local_clock": True})
    stage.wait(hours=1)
    assert gather(stage.desk()).moment.clock == "this host"


def test_proofs_that_are_missing_stop_it(stage: Stage) -> None:
    stage.prove()
    assert stage.plan().decision.delete
    verifier = stage.site.keys["verifier"].key_id
    last = max(key for key in stage.memory["c"].objects if key.startswith(f"runs/{RUN}/proofs/{verifier}/"))
    del stage.memory["c"].objects[last]
    decision = stage.plan().decision
    assert decision.delete == () and any("are missing" in why for why in decision.stopped)


def test_objects_that_are_gone_are_no_proved_copy(stage: Stage) -> None:
    stage.prove()
    for key in [key for key in stage.memory["a"].objects if stage.sealing(500) in key]:
        del stage.memory["a"].objects[key]
    decision = stage.plan().decision
    kept = {item.step: item for item in decision.keep}
    assert "not there any more" in kept[500].reasons[0] and not kept[500].protected
    # With the newest no longer to be counted on, one more is needed.
    assert kept[300].protected and kept[400].protected


def test_a_freeze_that_cannot_be_healed_ends_by_two_people(stage: Stage) -> None:
    stage.prove()
    stage.prove(100, failed="a")
    assert 100 not in {deletion.step for deletion in stage.plan().decision.delete}
    place, sealing = stage.site.place("c"), stage.sealing(100)

    def say(key: str, reason: str = "its disk is gone") -> tuple[int, bool]:
        done = write_off(place, stage.site.view(), sealing, reason, stage.site.keys[key], stage.clock)
        return len(done.signers), done.done

    assert say("operator") == say("operator") == (1, False)
    assert say(SECOND, "other words") == (1, False)
    with pytest.raises(TrustError):
        say("writer")
    assert say(SECOND) == (2, True)
    assert say("operator") == (2, True)
    stage.wait(minutes=1)
    decision = stage.plan().decision
    assert {deletion.reason for deletion in decision.delete if deletion.step == 100} == {"written off by two people"}
    stage.run(stage.approved())
    assert stage.stored(100) == {"a": set(), "c": set()}


def test_planted_records_are_no_plan_and_no_approval(stage: Stage) -> None:
    stage.prove()
    plan = stage.plan().plan
    assert plan is not None
    store = stage.memory["c"]
    store.objects[record_key(RUN, PLAN, "20990101T000000Z-" + "0" * 16)] = b"{}"
    store.objects[record_key(RUN, APPROVAL, plan.digest)] = store.objects[record_key(RUN, PLAN, plan.name)]
    gathered = gather(stage.desk())
    assert [(known.plan, known.approved) for known in open_plans(stage.desk(), gathered.view.state, gathered.moment)] == [(plan, False)]
    with pytest.raises(TrustError, match="cannot be approved"):
        stage.approve(plan.name)


def test_a_revoked_operators_plan_is_none(stage: Stage) -> None:
    from seawall.vault.trust import read_list, sign_list

    name = stage.approved()
    view = stage.site.view()
    revoked = read_list(view.state.trust_bytes, stage.site.root.public).with_revocation(stage.operator.key_id, "stolen")
    verbs.change_trust(stage.memory["c"], view, sign_list(revoked, stage.site.root), stage.site.keys["coordinator"], stage.clock)
    with pytest.raises(TrustError):
        stage.run(name, SECOND)
    assert stage.run(None, SECOND).copies == []
    assert utc_text(stage.now)
