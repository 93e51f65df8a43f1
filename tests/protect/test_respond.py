"""What the matrix calls for is done once, under the right key, recorded before it is done, and what may not be done is handed on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seawall.errors import StoreUnavailableError
from seawall.log import verbs
from seawall.log.records import list_records, read_record
from seawall.protect.acts import INCIDENT, OUTCOME, RESPONSE, any_role
from seawall.protect.heal import HealError
from seawall.protect.respond import DONE, FAILED, HANDED_ON, NOTHING, WOULD, Answer, Hands, Responded, respond
from seawall.testing.faulty import FaultyStore
from seawall.testing.memory import MemoryStore
from seawall.vault.header import HEADER_BYTES
from seawall.vault.identity import sealing_folder
from seawall.verify.matrix import Dimension, Response
from seawall.verify.responses import Call
from tests.protect.little_site import RUN, LittleSite, write_checkpoint


class Stage:
    """A run with one checkpoint in ``a`` and ``c``, and the hands of one host."""

    def __init__(self, folder: Path) -> None:
        self.site = LittleSite({"a": MemoryStore("a"), "c": MemoryStore("c")})
        self.site.open()
        self.sealing = self.site.sync(write_checkpoint(folder / "ck")).sealing
        self.hands = Hands(self.site.stores["c"], self.site.clock, self.site.keys["writer"], self.site.keys["verifier"], transfers=2)

    def call(self, response: Response, dimension: Dimension = Dimension.FILE, stores: str = "a", sources: str = "c") -> Call:
        ids = {name: self.site.place(name).id for name in "ac"}
        about = "" if response is Response.CATCH_UP else self.sealing
        step = None if response is Response.CATCH_UP else 100
        reason = f"{dimension}: something was found"
        return Call(response, dimension, about, step, tuple(ids[name] for name in stores), tuple(ids[name] for name in sources), reason)

    def respond(self, *calls: Call, **options: Any) -> Responded:
        hands = options.pop("hands", self.hands)
        return respond(self.site.view(), calls, [self.site.place(name) for name in "ac"], hands, **options)

    def one(self, call: Call, **options: Any) -> Answer:
        (answer,) = self.respond(call, **options).answers
        return answer

    def records(self, kind: str) -> list[Any]:
        store, state = self.site.stores["c"], self.site.view().state
        return [read_record(store, RUN, kind, name, any_role(state)) for name in list_records(store, RUN, kind)]

    def damage(self, name: str) -> None:
        store = self.site.stores[name]
        assert isinstance(store, MemoryStore)
        key = sealing_folder(RUN, bytes.fromhex(self.sealing)) + "file-1.sea"
        raw = bytearray(store.objects[key])
        raw[HEADER_BYTES + 3] ^= 1
        store._set(key, bytes(raw))

    def everything(self) -> list[dict[str, bytes]]:
        return [dict(store.objects) for store in self.site.stores.values() if isinstance(store, MemoryStore)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_damaged_copy_is_healed(stage: Stage) -> None:
    stage.damage("a")
    answer = stage.one(stage.call(Response.HEAL))
    assert answer.status == DONE and answer.store == "a" and answer.healed is not None
    assert [repair.object for repair in answer.healed.repairs] == ["file-1.sea"]
    assert stage.one(stage.call(Response.HEAL)).status == NOTHING
    assert [record.body["response"] for record in stage.records(RESPONSE)] == ["heal"]


def test_odd_structure_quarantines_and_holds(stage: Stage) -> None:
    call = stage.call(Response.QUARANTINE_AND_HOLD, Dimension.STRUCTURE)
    answer = stage.one(call)
    assert (answer.status, answer.detail) == (DONE, "quarantine of the checkpoint and hold of the run")
    state = stage.site.view().state
    assert state.quarantine_reasons(stage.sealing) == [call.reason]
    assert state.hold_reasons() == [f"step 100: {call.reason}"]
    assert {mark.signer for mark in state.marks.values()} == {stage.site.keys["verifier"].key_id}


def test_odd_values_quarantine_and_do_not_hold(stage: Stage) -> None:
    assert stage.one(stage.call(Response.QUARANTINE, Dimension.VALUES)).status == DONE
    state = stage.site.view().state
    assert state.quarantine_reasons(stage.sealing) and not state.held


def test_the_same_call_twice_is_done_once(stage: Stage) -> None:
    call = stage.call(Response.QUARANTINE_AND_HOLD, Dimension.STRUCTURE)
    stage.one(call)
    entries = stage.site.view().seq
    assert stage.one(call).status == NOTHING
    assert stage.site.view().seq == entries
    assert len(stage.records(RESPONSE)) == len(stage.records(OUTCOME)) == 1


def test_a_quarantine_that_was_cut_is_ended_under_the_same_operation(stage: Stage) -> None:
    call = stage.call(Response.QUARANTINE_AND_HOLD, Dimension.STRUCTURE)

    class CutError(BaseException):
        """The process ends here."""

    def cut(key: str) -> None:
        if "/log/" in key:
            raise CutError

    coordination = FaultyStore(stage.site.stores["c"]).before("put", cut, times=None)
    with pytest.raises(CutError):
        stage.one(call, hands=replace(stage.hands, coordination=coordination))
    (reserved,) = stage.records(RESPONSE)
    assert not stage.records(OUTCOME) and not stage.site.view().state.marks, "reserved before anything happened"
    assert stage.one(call).op == reserved.name
    assert [record.name for record in stage.records(OUTCOME)] == [reserved.name]


def test_after_a_lift_the_same_words_are_meant_anew(stage: Stage) -> None:
    call = stage.call(Response.QUARANTINE, Dimension.VALUES)
    first = stage.one(call)
    view = stage.site.view()
    (mark,) = view.state.marks
    verbs.lift(stage.site.stores["c"], view, mark, "looked at it", stage.site.keys["operator"], stage.site.clock)
    again = stage.one(call)
    assert again.status == DONE and again.op != first.op
    assert stage.site.view().state.quarantine_reasons(stage.sealing) == [call.reason]


def test_what_is_late_calls_for_a_sync(stage: Stage) -> None:
    before = stage.everything()
    done = stage.respond(stage.call(Response.CATCH_UP, Dimension.TIMELINESS))
    assert done.catch_up and done.answers[0].status == HANDED_ON and f"seawall sync {RUN}" in done.answers[0].detail
    assert stage.everything() == before
    assert not stage.respond(stage.call(Response.PROVE)).catch_up


def test_no_good_copy_is_an_incident_that_overwrites_nothing(stage: Stage) -> None:
    before = stage.everything()
    answer = stage.one(stage.call(Response.INCIDENT, stores="ac", sources=""))
    assert answer.status == DONE and answer.op
    (incident,) = stage.records(INCIDENT)
    assert incident.name == answer.op and incident.body["severity"] == "highest"
    assert incident.body["stores"] == sorted(stage.site.place(name).id for name in "ac")
    changed = [key for old, new in zip(before, stage.everything(), strict=True) for key in new if old.get(key) != new[key]]
    assert changed == [f"runs/{RUN}/records/incident/{answer.op}.json"]
    assert stage.one(stage.call(Response.INCIDENT, stores="ac", sources="")).op == answer.op
    assert len(stage.records(INCIDENT)) == 1


def test_a_heal_that_finds_nothing_right_is_an_incident(stage: Stage) -> None:
    for name in "ac":
        stage.damage(name)
    done = stage.respond(stage.call(Response.HEAL))
    (answer,) = done.incidents
    assert answer.status == FAILED and isinstance(answer.error, HealError)
    (incident,) = stage.records(INCIDENT)
    assert (incident.name, incident.body["missing"]) == (answer.op, {"file-1.sea": ["0"]})


def test_one_that_fails_does_not_keep_the_others_from_being_done(stage: Stage) -> None:
    stage.damage("a")
    faulty = FaultyStore(stage.site.stores["a"]).fail("head", StoreUnavailableError("no answer"), times=None)
    place = stage.site.place("a")
    stage.site.stores["a"] = faulty
    stage.site._places["a"] = replace(place, store=faulty)
    answers = stage.respond(stage.call(Response.HEAL), stage.call(Response.QUARANTINE, Dimension.VALUES)).answers
    assert [answer.status for answer in answers] == [FAILED, DONE]
    assert not stage.records(INCIDENT), "silence is no loss"


CALLS: dict[str, Callable[[Stage], Call]] = {
    "heal": lambda stage: stage.call(Response.HEAL),
    "structure": lambda stage: stage.call(Response.QUARANTINE_AND_HOLD, Dimension.STRUCTURE),
    "values": lambda stage: stage.call(Response.QUARANTINE, Dimension.VALUES),
    "incident": lambda stage: stage.call(Response.INCIDENT),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_dry_run_writes_nothing(stage: Stage, name: str) -> None:
    stage.damage("a")
    before = stage.everything()
    assert stage.one(CALLS[name](stage), dry_run=True).status == WOULD
    assert stage.everything() == before


@pytest.mark.parametrize("name", CALLS)
def test_without_the_key_it_is_handed_on(stage: Stage, name: str) -> None:
    stage.damage("a")
    before = stage.everything()
    answer = stage.one(CALLS[name](stage), hands=Hands(stage.site.stores["c"], stage.site.clock))
    assert answer.status == HANDED_ON and "key" in answer.detail
    assert stage.everything() == before


def test_a_person_decides_about_the_rest(stage: Stage) -> None:
    before = stage.everything()
    answers = stage.respond(stage.call(Response.REVIEW, Dimension.LOCK), stage.call(Response.PROVE)).answers
    assert {answer.status for answer in answers} == {HANDED_ON} and stage.everything() == before
