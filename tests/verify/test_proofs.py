"""Chains of proofs: appended by several at once under time-outs, and worth nothing once somebody cut, replaced or forged a link."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall.errors import CorruptError, FreshnessError, SeawallError, StoreAmbiguousError, StoreUnavailableError, TrustError
from seawall.log.read import LogView
from seawall.log.verbs import change_trust
from seawall.stores.base import Store
from seawall.testing.faulty import FaultyStore
from seawall.testing.memory import MemoryStore
from seawall.vault import canonical, dsse
from seawall.vault.signing import PublicKey, SigningKey
from seawall.vault.trust import read_list, sign_list
from seawall.verify.certify import KnownProofs, certify, read_proofs
from seawall.verify.levels import Level
from seawall.verify.proofs import NO_BATCH, PAYLOAD_TYPE, Chain, Proof, ProofBatch, append_proofs, proof_key, read_chain
from tests.log.actors import KEYS, RUN, TickClock, begun, commit_body, hexed, read, trust_list
from tests.log.stage import FAULTS, Stage
from tests.log.stage import FaultyStore as StagedStore

VERIFIER, SECOND = KEYS.verifier, KEYS.second_verifier


def proof(number: int, level: Level = Level.L2, result: str = "ok") -> Proof:
    body = commit_body(100)
    at = f"2026-03-01T00:00:{number:02d}.000000Z"
    return Proof(body.sealing, body.manifest, hexed("store c", 16), level, result, "scrub", at, {"objects": str(number)}, "")


def resolve_in(view: LogView) -> Callable[[str], PublicKey | None]:
    return view.state.resolver("verifier")


def append(store: Store, view: LogView, number: int, key: SigningKey = VERIFIER) -> Chain:
    return append_proofs(store, RUN, [proof(number)], key, resolve_in(view))


def put_batch(store: MemoryStore, batch: ProofBatch, key: SigningKey, name: str = "", seq: int = 0) -> None:
    """Sign and store a batch as told, over whatever is there."""
    raw = dsse.sign(PAYLOAD_TYPE, batch.payload(), [key]).encode()
    store.objects[proof_key(RUN, name or batch.verifier, seq or batch.seq)] = raw


def certified(batches: int = 3) -> tuple[MemoryStore, LogView]:
    """A store with a chain of so many batches that the log names."""
    store, _ = begun()
    view = read(store)
    for number in range(1, batches + 1):
        view = certify(store, view, [proof(number)], VERIFIER, TickClock())
    return store, view


def assert_unknown(store: Store, view: LogView, why: str, key: SigningKey = VERIFIER) -> None:
    known = read_proofs(store, view)
    assert not known.proofs
    assert list(known.unknown) == [key.key_id] and why in known.unknown[key.key_id], known.unknown


def test_what_was_appended_is_read_back() -> None:
    store, _ = begun()
    view = read(store)
    first = [proof(1), replace(proof(2), level=Level.L4, result="failed", versions="ab" * 32, evidence={"damage": "ünï\n", "n": "1"})]
    append_proofs(store, RUN, first, VERIFIER, resolve_in(view))
    append_proofs(store, RUN, [], VERIFIER, resolve_in(view))
    chain = append(store, view, 3)
    assert chain == read_chain(store, RUN, VERIFIER.key_id, resolve_in(view))
    assert chain.proofs == [*first, proof(3)] and chain.seq == 3
    assert [batch.prev for batch in chain.batches] == [NO_BATCH, *chain.digests[:2]]


def test_two_verifiers_have_a_chain_each() -> None:
    store, _ = begun()
    view = read(store)
    for number, key in enumerate([VERIFIER, SECOND, VERIFIER], 1):
        view = certify(store, view, [proof(number)], key, TickClock())
    known = read_proofs(store, view)
    assert not known.unknown
    assert sorted(known.proofs, key=lambda each: each.at) == [proof(1), proof(2), proof(3)]
    assert {head.verifier: head.seq for head in view.state.heads.values()} == {VERIFIER.key_id: 2, SECOND.key_id: 1}


def test_failures_are_told_apart() -> None:
    bad = proof(2, result="failed")
    assert KnownProofs((proof(1), bad)).failures == [bad]


def test_a_time_out_that_hid_success_appends_once() -> None:
    store, _ = begun()
    view = read(store)
    faulty = FaultyStore(store).after("put", StoreAmbiguousError("the connection died"))
    chain = append(faulty, view, 1)
    assert faulty.unused == 0
    assert chain == read_chain(store, RUN, VERIFIER.key_id, resolve_in(view)) and chain.proofs == [proof(1)]


def test_a_request_that_was_lost_is_sent_again() -> None:
    store, _ = begun()
    view = read(store)
    faulty = FaultyStore(store).fail("put", StoreAmbiguousError("the connection died"), times=3)
    assert append(faulty, view, 1).proofs == [proof(1)]
    assert faulty.unused == 0


def test_a_store_that_is_down_says_so() -> None:
    store, view = certified(1)
    with pytest.raises(StoreUnavailableError):
        append(FaultyStore(store).fail("put", StoreUnavailableError("no answer")), view, 2)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    turns=st.lists(st.integers(0, 2), max_size=40),
    faults=st.lists(st.sampled_from(FAULTS), max_size=16),
    works=st.lists(st.integers(1, 3), min_size=2, max_size=3),
)
def test_appends_race_on_a_store_that_times_out(turns: list[int], faults: list[str], works: list[int]) -> None:
    """Workers of one verifier: whatever is confirmed is there once, whatever is unclear at most once, and the chain is whole."""
    good, _ = begun()
    view = read(good)
    stage = Stage(turns)
    store = StagedStore(faults, stage)
    store.objects.update(good.objects)
    confirmed: set[int] = set()

    def worker(first: int, count: int) -> None:
        for number in range(first, first + count):
            try:
                append(store, view, number)
            except (StoreAmbiguousError, StoreUnavailableError):
                continue
            confirmed.add(number)

    stage.play({f"worker {index}": partial(worker, 10 * index, count) for index, count in enumerate(works)})
    store.stage = None
    store.arrive()
    chain = read_chain(store, RUN, VERIFIER.key_id, resolve_in(view))
    counted = Counter(int(each.evidence["objects"]) for each in chain.proofs)
    assert not counted or max(counted.values()) == 1
    assert confirmed <= counted.keys()
    assert chain.seq == sum(key.startswith(f"runs/{RUN}/proofs/") for key in store.objects), "no batch lies beyond a hole"


def test_a_chain_that_was_cut_is_unknown() -> None:
    store, view = certified()
    del store.objects[proof_key(RUN, VERIFIER.key_id, 3)]
    assert_unknown(store, view, "proofs are missing")


def test_a_chain_with_a_hole_is_unknown() -> None:
    store, view = certified()
    del store.objects[proof_key(RUN, VERIFIER.key_id, 2)]
    assert_unknown(store, view, "proofs are missing")


def test_a_chain_that_is_gone_is_unknown() -> None:
    store, view = certified()
    for seq in (1, 2, 3):
        del store.objects[proof_key(RUN, VERIFIER.key_id, seq)]
    assert_unknown(store, view, "ends at 0")


@pytest.mark.parametrize("gone", [(3,), (2,), (1, 2, 3)])
def test_nothing_is_appended_where_proofs_are_missing(gone: tuple[int, ...]) -> None:
    """It would go into the place of one that is gone: the verifier would have two histories, for good, and count for nothing."""
    store, view = certified()
    kept = {seq: store.objects.pop(proof_key(RUN, VERIFIER.key_id, seq)) for seq in gone}
    before = dict(store.objects)
    with pytest.raises(FreshnessError, match="missing"):
        certify(store, view, [proof(4)], VERIFIER, TickClock())
    assert store.objects == before
    store.objects.update({proof_key(RUN, VERIFIER.key_id, seq): raw for seq, raw in kept.items()})
    after = certify(store, view, [proof(4)], VERIFIER, TickClock())
    assert len(read_proofs(store, after).proofs) == 4, "with the proofs back in their places it goes on"


def test_the_newest_batch_signed_anew_is_unknown() -> None:
    """By the verifier's own key: a failure that turned into a success afterwards."""
    store, view = certified()
    chain = read_chain(store, RUN, VERIFIER.key_id, resolve_in(view))
    put_batch(store, replace(chain.batches[2], proofs=(proof(9),)), VERIFIER)
    assert_unknown(store, view, "not the one that the log names")


def test_an_older_batch_signed_anew_is_unknown() -> None:
    store, view = certified()
    chain = read_chain(store, RUN, VERIFIER.key_id, resolve_in(view))
    put_batch(store, replace(chain.batches[1], proofs=()), VERIFIER)
    assert_unknown(store, view, "out of its place")


def test_a_batch_of_another_number_is_unknown() -> None:
    store, view = certified()
    store.objects[proof_key(RUN, VERIFIER.key_id, 3)] = store.objects[proof_key(RUN, VERIFIER.key_id, 1)]
    assert_unknown(store, view, "out of its place")


def test_a_batch_of_another_run_is_unknown() -> None:
    store, view = certified(1)
    put_batch(store, ProofBatch("other-run", VERIFIER.key_id, 1, NO_BATCH, (proof(1),)), VERIFIER)
    assert_unknown(store, view, "out of its place")


@pytest.mark.parametrize("signer", [SECOND, KEYS.writer, KEYS.operator, KEYS.stranger, KEYS.root])
def test_a_batch_that_somebody_else_signed_is_unknown(signer: SigningKey) -> None:
    """Also another verifier: each speaks in its own chain."""
    store, view = certified()
    chain = read_chain(store, RUN, VERIFIER.key_id, resolve_in(view))
    put_batch(store, ProofBatch(RUN, VERIFIER.key_id, 4, chain.digest, (proof(4),)), signer)
    with pytest.raises(TrustError):
        read_chain(store, RUN, VERIFIER.key_id, resolve_in(view))
    known = read_proofs(store, view)
    assert not known.proofs and list(known.unknown) == [VERIFIER.key_id]


def test_a_chain_of_a_key_that_is_no_verifiers_is_unknown() -> None:
    store, _ = begun()
    view = read(store)
    put_batch(store, ProofBatch(RUN, KEYS.writer.key_id, 1, NO_BATCH, (proof(1),)), KEYS.writer)
    known = read_proofs(store, view, [KEYS.writer.key_id, KEYS.stranger.key_id])
    assert not known.proofs and set(known.unknown) == {KEYS.writer.key_id, KEYS.stranger.key_id}
    with pytest.raises(TrustError):
        append_proofs(store, RUN, [proof(2)], KEYS.writer, resolve_in(view))


def test_a_writer_cannot_certify() -> None:
    store, _ = begun()
    view = read(store)
    with pytest.raises(TrustError):
        certify(store, view, [proof(1)], KEYS.writer, TickClock())
    known = read_proofs(store, read(store), [KEYS.writer.key_id])
    assert not known.proofs


def test_a_revoked_verifier_is_unknown_and_the_others_count() -> None:
    store, view = certified()
    view = certify(store, view, [proof(7)], SECOND, TickClock())
    revoked = read_list(trust_list(), KEYS.root.public).with_revocation(VERIFIER.key_id, "stolen")
    view = change_trust(store, view, sign_list(revoked, KEYS.root), KEYS.operator, TickClock())
    known = read_proofs(store, view)
    assert known.proofs == (proof(7),)
    assert "revoked" in known.unknown[VERIFIER.key_id]


def test_a_chain_whose_store_does_not_answer_is_unknown() -> None:
    store, view = certified()
    key = proof_key(RUN, VERIFIER.key_id, 2)
    assert_unknown(FaultyStore(store).fail("get", StoreUnavailableError("no answer"), times=None, key=key), view, "no answer")


def test_a_kill_between_chain_and_log_is_harmless() -> None:
    store, view = certified(1)
    append(store, view, 2)
    known = read_proofs(store, view)
    assert known.proofs == (proof(1), proof(2)) and not known.unknown
    view = certify(store, view, [proof(3)], VERIFIER, TickClock())
    assert view.state.heads[VERIFIER.key_id].seq == 3
    known = read_proofs(store, view)
    assert known.proofs == (proof(1), proof(2), proof(3)) and not known.unknown


def test_the_log_refusing_a_head_leaves_the_chain_readable() -> None:
    """The store dies right after the chain was extended; running it again states the head of everything that is there."""
    store, view = certified(1)
    faulty = FaultyStore(store)

    def die(key: str) -> None:
        faulty.fail("put", StoreUnavailableError("down"), times=None)

    faulty.after("put", die)
    with pytest.raises(SeawallError):
        certify(faulty, view, [proof(2)], VERIFIER, TickClock())
    view = certify(store, read(store), [proof(3)], VERIFIER, TickClock())
    assert [each.evidence["objects"] for each in read_proofs(store, view).proofs] == ["1", "2", "3"]


def _altered(**changes: object) -> bytes:
    """A signed batch of one proof, some of whose fields are other than they may be."""
    document = canonical.decode(ProofBatch(RUN, VERIFIER.key_id, 1, NO_BATCH, (proof(1),)).payload())
    item = dict(document["proofs"][0])
    for name, value in changes.items():
        if value is None:
            del item[name]
        else:
            item[name] = value
    return dsse.sign(PAYLOAD_TYPE, canonical.encode({**document, "proofs": [item]}), [VERIFIER]).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"level": "L6"},
        {"level": "L"},
        {"level": True},
        {"result": "fine"},
        {"result": None},
        {"at": "yesterday"},
        {"at": "2026-03-01T00:00:00Z"},
        {"sealing": "00"},
        {"manifest": "zz" * 32},
        {"store": None},
        {"evidence": ["a"]},
        {"evidence": {"n": True}},
        {"versions": True},
        {"unheard_of": "x"},
    ],
    ids=str,
)
def test_a_malformed_proof_is_refused_although_it_is_signed(changes: dict[str, object]) -> None:
    store, _ = begun()
    view = read(store)
    store.objects[proof_key(RUN, VERIFIER.key_id, 1)] = _altered(**changes)
    with pytest.raises(CorruptError):
        read_chain(store, RUN, VERIFIER.key_id, resolve_in(view))


def test_the_control_of_the_malformed_ones_is_accepted() -> None:
    store, _ = begun()
    store.objects[proof_key(RUN, VERIFIER.key_id, 1)] = _altered()
    assert read_chain(store, RUN, VERIFIER.key_id, resolve_in(read(store))).proofs == [proof(1)]
