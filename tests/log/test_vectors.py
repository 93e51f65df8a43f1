"""One fault an entry: each is refused by name, and the same log without the fault is read."""

import pytest

from seawall.errors import CorruptError, FreshnessError, NoSuchCopyError, TrustError
from seawall.log.bodies import (
    SIGNERS,
    Commit,
    Epoch,
    Genesis,
    Hold,
    Lift,
    ProofHead,
    ProofHeads,
    Quarantine,
    TrustChange,
    Unread,
)
from seawall.log.entries import entry_key, operation_id
from seawall.log.identity import identify
from seawall.log.read import read_log
from seawall.testing.memory import MemoryStore
from seawall.vault import canonical
from seawall.vault.signing import ROLES
from seawall.vault.trust import read_list, sign_list
from tests.log.actors import KEYS, RUN, Hand, TickClock, begun, commit_body, hexed, longer, read, trust_list
from tests.log.faults import BODIES, PREPARED, SEALING, VECTORS, next_list, some


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", list(BODIES))
def test_each_kind_is_read_from_its_roles_only(kind: str, role: str) -> None:
    hand = some()
    if kind in PREPARED:
        hand.write(*PREPARED[kind])
    hand.write(BODIES[kind], KEYS.of(role))
    if role not in SIGNERS[kind]:
        with pytest.raises(TrustError, match=f"is a {role}'s"):
            read(hand.store)
    elif kind == "move":
        with pytest.raises(TrustError, match="entry 5 moved it"):
            read(hand.store)
        assert read(hand.store, mirror=True).state.moved_at == 5
    else:
        state = read(hand.store).state
        assert state.seq == hand.seq
        assert state.done[operation_id("test", str(hand.seq))].seq == hand.seq


@pytest.mark.parametrize("role", [role for role in ROLES if role != "coordinator"])
def test_genesis_is_the_coordinators(role: str) -> None:
    store = MemoryStore()
    Hand(store).write(Genesis(identify(store, create=True), trust_list()), KEYS.of(role))
    with pytest.raises(TrustError, match="needs coordinator"):
        read(store)


def test_every_kind_has_signers_and_is_tested() -> None:
    assert set(BODIES) | {"genesis"} == set(SIGNERS)


@pytest.mark.parametrize("name", list(VECTORS))
def test_one_fault_is_refused_by_name(name: str) -> None:
    write, error, words = VECTORS[name]
    hand = some()
    assert read(hand.store).seq == 4
    write(hand)
    with pytest.raises(error, match=words) as caught:
        read(hand.store)
    assert type(caught.value) is error
    assert error is CorruptError or entry_key(RUN, 5) in caught.value.where


def test_trust_errors_name_the_entry() -> None:
    hand = some()
    hand.write(Hold("x"), KEYS.writer)
    with pytest.raises(TrustError, match="log entry 5 may not be there") as caught:
        read(hand.store)
    assert caught.value.where == entry_key(RUN, 5)
    assert caught.value.exit_code == 10


def test_unknown_kind_marked_ignorable_is_kept_and_passed_over() -> None:
    hand = some()
    hand.write(Unread("later", {"what": "ever"}), KEYS.verifier, ignorable=True)
    hand.write(Hold("x"), KEYS.operator)
    state = read(hand.store).state
    assert [(kept.seq, kept.kind, kept.body) for kept in state.kept] == [(5, "later", '{"what":"ever"}')]
    assert state.hold_reasons() == ["x"]


def test_revocation_counts_from_its_entry_on() -> None:
    hand = some()
    hand.write(TrustChange(next_list(KEYS.writer.key_id)), KEYS.coordinator)
    state = read(hand.store).state
    old = state.commits[SEALING]
    assert state.writer_of(old)(KEYS.writer.key_id) == KEYS.writer.public
    assert state.resolver("writer")(KEYS.writer.key_id) is None
    assert state.resolver("writer", 4)(KEYS.writer.key_id) == KEYS.writer.public
    assert state.resolver("writer", 5)(KEYS.writer.key_id) is None
    assert state.resolver("verifier", 4)(KEYS.writer.key_id) is None
    hand.write(commit_body(9), KEYS.writer)
    with pytest.raises(TrustError, match=r"was revoked \(lost\)"):
        read(hand.store)


def test_a_new_key_counts_from_its_entry_on() -> None:
    hand = some()
    hand.write(TrustChange(next_list()), KEYS.operator)
    hand.write(Epoch(2, (KEYS.stranger.key_id,), "new writer"), KEYS.coordinator)
    hand.write(commit_body(9, written=2), KEYS.stranger)
    assert read(hand.store).state.commits[commit_body(9).sealing].writer == KEYS.stranger.key_id


def test_the_root_can_replace_keys_when_every_speaker_is_lost() -> None:
    hand = some()
    old = read_list(trust_list(), KEYS.root.public)
    second = old.with_key(KEYS.stranger.public, "operator", TickClock())
    hand.write(TrustChange(sign_list(second, KEYS.root)), KEYS.stranger)
    assert read(hand.store).state.trust == second


def test_commits_of_a_closed_epoch_are_orphans() -> None:
    hand = some()
    hand.write(Epoch(2, (KEYS.second_writer.key_id,), "zone a is gone"), KEYS.coordinator)
    hand.write(commit_body(9), KEYS.writer, epoch=1)
    hand.write(commit_body(10, written=1), KEYS.second_writer)
    hand.write(commit_body(10, written=2, name="again"), KEYS.second_writer)
    state = read(hand.store).state
    assert set(state.commits) == {SEALING, commit_body(10, name="again").sealing}
    assert set(state.orphans) == {commit_body(9).sealing, commit_body(10).sealing}
    assert state.steps == {2: (SEALING,), 10: (commit_body(10, name="again").sealing,)}
    assert "which epoch 2 had closed" in state.orphans[commit_body(9).sealing].orphan
    with pytest.raises(NoSuchCopyError, match="its commit is an orphan"):
        state.commit_of(commit_body(9).sealing)
    # An orphan's sealing cannot be made to count by a second commit.
    hand.write(commit_body(9, written=2), KEYS.second_writer)
    with pytest.raises(TrustError, match="is committed already"):
        read(hand.store)


def test_a_fenced_writer_is_no_writer_of_the_new_epoch() -> None:
    hand = some()
    hand.write(Epoch(2, (KEYS.second_writer.key_id,), "zone a is gone"), KEYS.coordinator)
    hand.write(commit_body(9, written=2), KEYS.writer)
    with pytest.raises(TrustError, match="not admitted to epoch 2"):
        read(hand.store)


def test_proof_heads_never_go_back() -> None:
    hand = some()
    hand.write(ProofHeads((ProofHead(KEYS.verifier.key_id, 4, hexed("four", 32)),)), KEYS.verifier)
    hand.write(ProofHeads((ProofHead(KEYS.verifier.key_id, 4, hexed("four", 32)),)), KEYS.operator)
    both = (ProofHead(KEYS.verifier.key_id, 3, hexed("three", 32)), ProofHead(KEYS.second_verifier.key_id, 1, hexed("one", 32)))
    hand.write(ProofHeads(tuple(sorted(both, key=lambda head: head.verifier))), KEYS.operator)
    heads = read(hand.store).state.heads
    assert (heads[KEYS.verifier.key_id].seq, heads[KEYS.verifier.key_id].digest) == (4, hexed("four", 32))
    assert heads[KEYS.second_verifier.key_id].seq == 1
    hand.write(ProofHeads((ProofHead(KEYS.verifier.key_id, 4, hexed("another four", 32)),)), KEYS.verifier)
    with pytest.raises(TrustError, match="its chain was forked"):
        read(hand.store)


def test_quarantine_and_hold_stand_until_lifted() -> None:
    hand = some()
    hand.write(Quarantine(SEALING, "twice"), KEYS.operator)
    hand.write(Hold("stop"), KEYS.verifier)
    state = read(hand.store).state
    assert state.quarantine_reasons(SEALING) == ["odd", "twice"]
    assert state.hold_reasons() == ["stop"]
    hand.write(Lift(operation_id("test", "4"), "was fine"), KEYS.operator)
    hand.write(Lift(operation_id("test", "6"), "go on"), KEYS.operator)
    state = read(hand.store).state
    assert state.quarantine_reasons(SEALING) == ["twice"]
    assert state.hold_reasons() == []
    hand.write(Lift(operation_id("test", "5"), "was fine"), KEYS.operator)
    hand.write(Lift(operation_id("test", "5"), "by two people at once"), KEYS.operator)
    state = read(hand.store).state
    assert state.quarantined == {}
    assert state.marks[operation_id("test", "5")].lifted_why == "was fine"


def test_a_commit_can_be_quarantined_from_the_start() -> None:
    hand = some()
    hand.write(commit_body(9, quarantine="opaque"), KEYS.writer)
    hand.write(Lift(operation_id("test", "5"), "seen"), KEYS.operator)
    state = read(hand.store).state
    assert commit_body(9).sealing in state.commits
    assert state.quarantine_reasons(commit_body(9).sealing) == []
    assert state.marks[operation_id("test", "5")].reason == "opaque"


@pytest.mark.parametrize("missing", range(1, 12))
def test_a_skipped_entry_is_noticed_wherever_it_was(missing: int) -> None:
    store, _ = longer(12)
    assert read(store).seq == 12
    del store.objects[entry_key(RUN, missing)]
    with pytest.raises(FreshnessError, match="has a hole"):
        read(store)


@pytest.mark.parametrize("which", range(1, 9))
def test_entries_of_another_history_do_not_fit(which: int) -> None:
    store, _ = longer(9)
    other, hand = begun("other")
    while hand.seq < 9:
        hand.write(Hold("forked"), KEYS.operator)
    store.objects[entry_key(RUN, which)] = other.objects[entry_key(RUN, which)]
    with pytest.raises(TrustError):
        read(store)


def test_two_entries_changed_places() -> None:
    store, _ = longer(6)
    third, fourth = entry_key(RUN, 3), entry_key(RUN, 4)
    store.objects[third], store.objects[fourth] = store.objects[fourth], store.objects[third]
    with pytest.raises(TrustError, match="entry 3 is expected here"):
        read(store)


def test_another_trust_root_reads_nothing() -> None:
    store, _ = longer(4)
    with pytest.raises(TrustError, match="not signed by a key that may"):
        read_log(store, RUN, KEYS.other_root.public)


def test_a_commit_body_keeps_every_field() -> None:
    body = commit_body(3, quarantine="why")
    assert Commit.parse(canonical.decode(canonical.encode(body.as_document())), "") == body
    assert Commit.parse({**body.as_document(), "stored_at": None}, "").stored_at is None
