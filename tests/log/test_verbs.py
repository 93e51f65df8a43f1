"""What people and tasks do to a log: asked twice is asked once, and what makes no sense is refused before it is written."""

from datetime import UTC, datetime, timedelta

import pytest

from seawall.errors import BusyError, EpochClosedError, NoSuchCopyError, StoreRefusedError, TrustError, UsageError
from seawall.log import verbs
from seawall.log.bodies import RETENTION, ProofHead, TrustChange
from seawall.log.entries import operation_id
from seawall.log.identity import identify
from seawall.log.read import LogView
from seawall.log.records import sign_record
from seawall.log.state import LeaseRecord
from seawall.stores.base import Capabilities
from seawall.testing.memory import MemoryStore
from seawall.vault.trust import read_list, sign_list
from tests.log.actors import KEYS, RUN, Hand, TickClock, begun, commit_body, hexed, read, trust_list
from tests.log.faults import SEALING, SECOND_OPERATOR, two_operators

ROOT = KEYS.root.public
CLOCK = TickClock()
HOUR = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WRITERS = [KEYS.writer.key_id]


def opened(store: MemoryStore, writers: list[str] | None = None) -> None:
    verbs.open_run(store, RUN, ROOT, trust_list(), KEYS.coordinator, writers or WRITERS, CLOCK)


def test_opening_twice_opens_once() -> None:
    store = MemoryStore()
    identify(store, create=True)
    opened(store)
    before = dict(store.objects)
    opened(store)
    assert store.objects == before
    assert read(store).state.epochs[1].writers == tuple(WRITERS)
    with pytest.raises(UsageError, match="for other writers"):
        opened(store, [KEYS.second_writer.key_id])
    assert store.objects == before


def test_a_half_opened_run_is_finished() -> None:
    store = MemoryStore()
    identify(store, create=True)
    opened(store)
    second = [key for key in store.objects if key.endswith("2.json")]
    del store.objects[second[0]]
    assert read(store).epoch == 0
    opened(store)
    assert read(store).epoch == 1


def test_a_store_without_a_single_winner_gets_no_log() -> None:
    class Weak(MemoryStore):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(conditional_put=False, reasons=("the server overwrites",))

    store = Weak()
    identify(store, create=True)
    before = dict(store.objects)
    with pytest.raises(StoreRefusedError, match="the server overwrites"):
        opened(store)
    assert store.objects == before


def test_heads_stated_at_once_by_two_are_no_incident() -> None:
    store, _ = begun()
    old = read(store)
    one, two = KEYS.verifier.key_id, KEYS.second_verifier.key_id
    verbs.state_proof_heads(store, old, [ProofHead(one, 4, hexed("4", 32))], KEYS.verifier, CLOCK)
    both = [ProofHead(one, 3, hexed("3", 32)), ProofHead(two, 1, hexed("1", 32))]
    view = verbs.state_proof_heads(store, old, both, KEYS.operator, CLOCK)
    assert {head.verifier: head.seq for head in view.state.heads.values()} == {one: 4, two: 1}


def test_a_list_of_another_root_opens_nothing() -> None:
    store = MemoryStore()
    identify(store, create=True)
    before = dict(store.objects)
    with pytest.raises(TrustError, match="not signed by a key that may"):
        verbs.open_run(store, RUN, KEYS.other_root.public, trust_list(), KEYS.coordinator, WRITERS, CLOCK)
    with pytest.raises(TrustError, match="is a writer's"):
        verbs.open_run(store, RUN, ROOT, trust_list(), KEYS.writer, WRITERS, CLOCK)
    assert store.objects == before


def test_one_reserved_operation_opens_one_epoch() -> None:
    store, _ = begun()
    op = operation_id("incident", "7")
    old = read(store)
    view = verbs.new_epoch(store, old, [KEYS.second_writer.key_id], "zone a is gone", KEYS.coordinator, op, CLOCK)
    assert view.epoch == 2
    for start in (old, view, read(store)):
        assert verbs.new_epoch(store, start, [KEYS.second_writer.key_id], "zone a is gone", KEYS.coordinator, op, CLOCK).epoch == 2
    with pytest.raises(EpochClosedError):
        verbs.new_epoch(store, old, WRITERS, "another incident", KEYS.coordinator, operation_id("incident", "8"), CLOCK)
    with pytest.raises(TrustError, match="two different requests"):
        verbs.new_epoch(store, view, WRITERS, "zone a is gone", KEYS.coordinator, op, CLOCK)
    again = verbs.new_epoch(store, read(store), WRITERS, "and back", KEYS.coordinator, operation_id("incident", "8"), CLOCK)
    assert (again.epoch, again.seq) == (3, 4)


def test_a_sealing_is_committed_once_whatever_its_receipt() -> None:
    store, _ = begun()
    body = commit_body(5)
    view = verbs.commit(store, read(store), body, KEYS.writer, 1, CLOCK)
    other = type(body)(**{**{name: getattr(body, name) for name in body.__slots__}, "receipt": hexed("another", 32)})
    assert verbs.commit(store, view, other, KEYS.writer, 1, CLOCK).seq == 3
    another = type(body)(**{**{name: getattr(body, name) for name in body.__slots__}, "manifest": hexed("another", 32)})
    with pytest.raises(TrustError, match="two different requests"):
        verbs.commit(store, view, another, KEYS.writer, 1, CLOCK)
    with pytest.raises(EpochClosedError):
        verbs.commit(store, view, commit_body(6), KEYS.writer, 2, CLOCK)


def test_a_fenced_writer_learns_that_its_commit_was_too_late() -> None:
    store, hand = begun()
    body = commit_body(5)
    old = read(store)
    verbs.new_epoch(store, old, [KEYS.second_writer.key_id], "fence", KEYS.coordinator, operation_id("i"), CLOCK)
    with pytest.raises(EpochClosedError, match="epoch 1 is not in force"):
        verbs.commit(store, old, body, KEYS.writer, 1, CLOCK)
    # A writer without this check left it there all the same.
    view = read(store)
    hand = Hand(store, view.seq, view.digest, 1)
    hand.write(body, KEYS.writer, op=operation_id("commit", RUN, body.sealing))
    with pytest.raises(EpochClosedError, match="too late"):
        verbs.commit(store, old, body, KEYS.writer, 1, CLOCK)


def test_a_quarantine_can_follow_its_lift() -> None:
    store, _ = begun()
    sealing = commit_body(5).sealing
    view = verbs.commit(store, read(store), commit_body(5), KEYS.writer, 1, CLOCK)
    for _ in range(3):
        view = verbs.quarantine(store, view, sealing, "bad GPU", KEYS.verifier, CLOCK)
        seq = view.seq
        view = verbs.quarantine(store, view, sealing, "bad GPU", KEYS.verifier, CLOCK)
        assert view.seq == seq
        (op,) = view.state.quarantined[sealing]
        before = view
        view = verbs.lift(store, view, op, "replaced", KEYS.operator, CLOCK)
        assert sealing not in view.state.quarantined
        assert verbs.lift(store, before, op, "other words", KEYS.operator, CLOCK).seq == view.seq
    assert view.seq == 3 + 6
    with pytest.raises(NoSuchCopyError):
        verbs.quarantine(store, view, hexed("unknown", 16), "x", KEYS.verifier, CLOCK)
    with pytest.raises(NoSuchCopyError):
        verbs.lift(store, view, hexed("unknown", 16), "x", KEYS.operator, CLOCK)


def test_a_hold_can_follow_its_lift() -> None:
    store, _ = begun()
    view = read(store)
    for _ in range(2):
        view = verbs.hold(store, view, "audit", KEYS.operator, CLOCK)
        assert verbs.hold(store, view, "audit", KEYS.operator, CLOCK).seq == view.seq
        assert view.state.hold_reasons() == ["audit"]
        view = verbs.lift(store, view, view.state.held[0], "done", KEYS.operator, CLOCK)
        assert view.state.hold_reasons() == []
    for reason in ("", "x" * 1001):
        with pytest.raises(UsageError):
            verbs.hold(store, view, reason, KEYS.operator, CLOCK)


def test_a_copy_is_buried_once() -> None:
    store, _ = begun()
    body = commit_body(5)
    view = verbs.commit(store, read(store), body, KEYS.writer, 1, CLOCK)
    view, lease = verbs.take_lease(store, view, "one", RETENTION, HOUR, HOUR + 10 * MINUTE, KEYS.operator, CLOCK)
    plan, other = hexed("plan", 32), hexed("plan 2", 32)
    view = verbs.tombstone(store, view, body.sealing, hexed("store", 16), plan, lease.seq, KEYS.operator, CLOCK)
    assert verbs.tombstone(store, view, body.sealing, hexed("store", 16), other, lease.seq, KEYS.operator, CLOCK).seq == view.seq
    assert view.state.is_deleted(body.sealing, hexed("store", 16))
    assert not view.state.is_deleted(body.sealing, hexed("another", 16))


def test_one_holder_has_the_lease_until_it_ends_or_is_given_back() -> None:
    store, _ = begun()

    def take(view: LogView, holder: str, taken: float, until: float) -> tuple[LogView, LeaseRecord]:
        return verbs.take_lease(store, view, holder, RETENTION, HOUR + taken * MINUTE, HOUR + until * MINUTE, KEYS.operator, CLOCK)

    view, first = take(read(store), "one", 0, 10)
    assert take(view, "one", 0, 10) == (view, first)
    with pytest.raises(BusyError, match="one has it until"):
        take(view, "two", 9, 19)
    view, longer = take(view, "one", 9, 19)
    assert longer.seq > first.seq
    with pytest.raises(BusyError, match="one has it until"):
        take(view, "two", 10, 20)
    view, back = take(view, "one", 12, 12)
    assert back.released
    view, second = take(view, "two", 12, 20)
    with pytest.raises(BusyError, match="clock went back"):
        take(view, "two", 11, 21)
    view, third = take(view, "three", 20, 30)
    body = commit_body(5)
    view = verbs.commit(store, view, body, KEYS.writer, 1, CLOCK)
    with pytest.raises(BusyError, match="lease was lost"):
        verbs.tombstone(store, view, body.sealing, hexed("store", 16), hexed("plan", 32), second.seq, KEYS.operator, CLOCK)
    view = verbs.tombstone(store, view, body.sealing, hexed("store", 16), hexed("plan", 32), third.seq, KEYS.operator, CLOCK)
    assert read(store) == view


def test_the_slower_of_two_who_take_a_lease_at_once_is_told_so() -> None:
    store, _ = begun()
    stale = read(store)
    verbs.take_lease(store, stale, "one", RETENTION, HOUR, HOUR + 10 * MINUTE, KEYS.operator, CLOCK)
    with pytest.raises(BusyError):
        verbs.take_lease(store, stale, "two", RETENTION, HOUR, HOUR + 10 * MINUTE, KEYS.operator, CLOCK)
    assert [lease.holder for lease in read(store).state.leases.values()] == ["one"]


def test_what_was_given_up_is_not_committed() -> None:
    store, _ = begun()
    view, lease = verbs.take_lease(store, read(store), "one", RETENTION, HOUR, HOUR + 10 * MINUTE, KEYS.operator, CLOCK)
    stale, body = view, commit_body(5)
    verbs.tombstone(store, view, body.sealing, hexed("store", 16), hexed("plan", 32), lease.seq, KEYS.operator, CLOCK)
    with pytest.raises(NoSuchCopyError, match="given up while it was made"):
        verbs.commit(store, stale, body, KEYS.writer, 1, CLOCK)
    assert not read(store).state.commits


def test_two_people_write_a_checkpoint_off_and_one_does_not() -> None:
    store, hand = begun()
    hand.write(commit_body(2), KEYS.writer)
    hand.write(TrustChange(two_operators()), KEYS.operator)
    view = read(store)
    body = {"sealing": SEALING, "manifest": commit_body(2).manifest, "reason": "its disk is gone"}
    mine, theirs = (sign_record(store, RUN, "write-off", "", body, [key]) for key in (KEYS.operator, SECOND_OPERATOR))
    with pytest.raises(TrustError):
        verbs.write_off(store, view, [mine, mine], KEYS.operator, CLOCK)
    view = verbs.write_off(store, view, [mine, theirs], KEYS.operator, CLOCK)
    assert verbs.write_off(store, view, [theirs, mine], SECOND_OPERATOR, CLOCK) == view
    assert view.state.quarantine_reasons(SEALING) == ["written off by two people: its disk is gone"]
    assert set(view.state.written_off[SEALING].signers) == {KEYS.operator.key_id, SECOND_OPERATOR.key_id}


def test_heads_are_stated_when_they_are_news() -> None:
    store, _ = begun()

    def heads(*of: tuple[str, int]) -> list[ProofHead]:
        return [ProofHead(key, seq, hexed(f"{key} {seq}", 32)) for key, seq in of]

    one, two = KEYS.verifier.key_id, KEYS.second_verifier.key_id
    view = verbs.state_proof_heads(store, read(store), heads((one, 3)), KEYS.verifier, CLOCK)
    for old in ((one, 3), (one, 2)):
        assert verbs.state_proof_heads(store, view, heads(old), KEYS.verifier, CLOCK).seq == view.seq
    view = verbs.state_proof_heads(store, view, heads((two, 1), (one, 3)), KEYS.operator, CLOCK)
    assert {head.verifier: head.seq for head in view.state.heads.values()} == {one: 3, two: 1}
    with pytest.raises(TrustError, match="two histories"):
        verbs.state_proof_heads(store, view, [ProofHead(one, 3, hexed("another", 32))], KEYS.verifier, CLOCK)
    assert verbs.state_proof_heads(store, view, [], KEYS.verifier, CLOCK) is view


def test_trust_changes_once_and_in_order() -> None:
    store, _ = begun()
    first = read_list(trust_list(), ROOT)
    second = first.with_key(KEYS.stranger.public, "writer", TickClock())
    third = second.with_revocation(KEYS.writer.key_id, "stolen")
    lists = [sign_list(each, KEYS.root) for each in (first, second, third)]
    view = read(store)
    assert verbs.change_trust(store, view, lists[0], KEYS.coordinator, CLOCK).seq == view.seq
    with pytest.raises(TrustError, match="version 3 after 1"):
        verbs.change_trust(store, view, lists[2], KEYS.coordinator, CLOCK)
    old = view
    view = verbs.change_trust(store, view, lists[1], KEYS.coordinator, CLOCK)
    assert verbs.change_trust(store, old, lists[1], KEYS.operator, CLOCK).seq == view.seq
    view = verbs.change_trust(store, view, lists[2], KEYS.operator, CLOCK)
    assert view.state.trust == third
    assert view.state.revoked_at == {KEYS.writer.key_id: view.seq}
    with pytest.raises(TrustError, match="was revoked"):
        verbs.commit(store, view, commit_body(5), KEYS.writer, 1, CLOCK)
