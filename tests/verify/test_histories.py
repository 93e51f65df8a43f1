"""No history makes a copy look better than its last proof.

A hypothesis state machine writes, damages, verifies, repairs, waits, moves the verifier's clock, kills it half way, takes proofs out of the
store, puts old ones in their places, and forges some. After each step a second, much simpler judgement (what a reader may believe at most)
is held against what the real code says. Readers that are wrong on purpose must be caught by the same machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from seawall.clock import parse_utc, utc_text
from seawall.errors import CorruptError, FreshnessError, TrustError
from seawall.log.read import LogView
from seawall.log.verbs import change_trust
from seawall.stores.wrapper import Result, Wrapper
from seawall.testing.memory import MemoryStore
from seawall.vault import dsse
from seawall.vault.signing import SigningKey
from seawall.vault.trust import read_list, sign_list
from seawall.verify.certify import KnownProofs, certify, read_proofs
from seawall.verify.chain_cache import ChainCache
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.proofs import FAILED, OK, PAYLOAD_TYPE, Proof, ProofBatch, proof_key, read_chain
from seawall.verify.recovery import CopyState, copy_states
from tests.log.actors import KEYS, RUN, TickClock, begun, read, trust_list
from tests.verify.judging import DAY_0, POLICY, manifest_id, sealing_id, store_id

STORES = ("a", "b")
VERIFIERS = (KEYS.verifier, KEYS.second_verifier)
SEALING = sealing_id(100)
LEVELS = st.sampled_from([Level.L0, Level.L1, Level.L2, Level.L3, Level.L4])


@dataclass
class Said:
    """A batch that a real verifier signed about real copies, and whether the log names it."""

    verifier: str
    seq: int
    proofs: list[Proof]
    named: bool = False


class KilledHereError(Exception):
    """As kill -9 would: nothing catches it."""


class DiesAtTheLog(Wrapper):
    """The process is killed after it extended its chain and before the log names it."""

    def around(self, method: str, key: str, action: Callable[[], Result]) -> Result:
        if method == "put" and "/log/" in key:
            raise KilledHereError(key)
        return action()


Reader = Callable[[MemoryStore, LogView, ChainCache], KnownProofs]
Judge = Callable[[list[Proof], datetime, dict[str, str]], dict[str, CopyState]]


def honest_reader(store: MemoryStore, view: LogView, cache: ChainCache) -> KnownProofs:
    return read_proofs(store, view, [key.key_id for key in VERIFIERS], cache)


def honest_judge(proofs: list[Proof], now: datetime, versions: dict[str, str]) -> dict[str, CopyState]:
    return copy_states(SEALING, proofs, now, POLICY, versions)


class Histories(RuleBasedStateMachine):
    """Two copies of one sealing, two verifiers, one store for log and proofs."""

    reader: Reader = staticmethod(honest_reader)
    judge: Judge = staticmethod(honest_judge)

    @initialize()
    def begin(self) -> None:
        self.store, _ = begun()
        self.view = read(self.store)
        self.now = DAY_0
        self.skew = timedelta(0)
        self.good = dict.fromkeys(STORES, True)
        self.content_good = True
        self.repairs = dict.fromkeys(STORES, 0)
        self.said: list[Said] = []
        self.taken: dict[str, bytes] = {}
        self.revoked = False
        self.cache = ChainCache()

    def versions(self, store: str) -> str:
        return f"{store} {self.repairs[store]}"

    @rule(store=st.sampled_from(STORES), level=LEVELS, key=st.sampled_from(VERIFIERS), killed=st.booleans())
    def verify(self, store: str, level: Level, key: SigningKey, killed: bool) -> None:
        """Find out the truth, sign it, and sometimes die before the log hears of it."""
        proofs = []
        at = utc_text(self.now + self.skew)
        for each in Level:
            if each > level:
                break
            holds = self.good[store] if each == Level.L2 else self.content_good if each >= Level.L3 else True
            result = OK if holds else FAILED
            proofs.append(Proof(SEALING, manifest_id(100), store_id(store), each, result, "test", at, {}, self.versions(store)))
            if not holds:
                break
        store_of_the_log = DiesAtTheLog(self.store) if killed else self.store
        try:
            self.view = certify(store_of_the_log, self.view, proofs, key, TickClock())
            seq = self.view.state.heads[key.key_id].seq
        except KilledHereError:
            seq = read_chain(self.store, RUN, key.key_id, self.view.state.resolver("verifier")).seq
        except (FreshnessError, TrustError, CorruptError):
            # Its chain is not whole, or its key is revoked: it says nothing.
            return
        self.said.append(Said(key.key_id, seq, proofs))
        if not killed:
            for each in self.said:
                each.named = each.named or (each.verifier == key.key_id and each.seq <= seq)

    @rule(store=st.sampled_from(STORES))
    def damage(self, store: str) -> None:
        self.good[store] = False

    @rule(store=st.sampled_from(STORES))
    def repair(self, store: str) -> None:
        """New versions and a new receipt; no proof yet."""
        self.good[store] = True
        self.repairs[store] += 1

    @rule()
    def spoil(self) -> None:
        """What was sealed turns out to be something else than what was saved."""
        self.content_good = False

    @rule(days=st.sampled_from([0.5, 3, 8, 31]))
    def wait(self, days: float) -> None:
        self.now += timedelta(days=days)

    @rule(days=st.sampled_from([-40, -2, 0, 2, 40]))
    def set_the_verifiers_clock(self, days: float) -> None:
        self.skew = timedelta(days=days)

    def _named(self, which: int) -> str | None:
        """The key of one of the stored batches that the log names."""
        keys = [proof_key(RUN, each.verifier, each.seq) for each in self.said if each.named]
        there = [key for key in keys if key in self.store.objects]
        return there[which % len(there)] if there else None

    @rule(which=st.integers(0, 40))
    def take_away(self, which: int) -> None:
        """A batch that the log names, wherever it lies in its chain."""
        key = self._named(which)
        if key is not None:
            self.taken.setdefault(key, self.store.objects.pop(key))

    @rule(which=st.integers(0, 40), replayed=st.integers(0, 40))
    def replay(self, which: int, replayed: int) -> None:
        """An old batch in the place of another."""
        key, source = self._named(which), self._named(replayed)
        if key is not None and source is not None and key != source:
            self.taken.setdefault(key, self.store.objects[key])
            self.store.objects[key] = self.store.objects[source]

    @precondition(lambda self: self.taken)
    @rule()
    def bring_all_back(self) -> None:
        self.store.objects.update(self.taken)
        self.taken.clear()

    @rule(store=st.sampled_from(STORES), key=st.sampled_from([KEYS.writer, KEYS.stranger, KEYS.operator]), name=st.sampled_from(VERIFIERS))
    def forge(self, store: str, key: SigningKey, name: SigningKey) -> None:
        """A success by somebody who is no verifier, in a verifier's chain: it is cleared away again, as an operator would."""
        head = self.view.state.heads.get(name.key_id)
        at = utc_text(self.now)
        forged = Proof(SEALING, manifest_id(100), store_id(store), Level.L4, OK, "test", at, {}, self.versions(store))
        seq = head.seq + 1 if head else 1
        place = proof_key(RUN, name.key_id, seq)
        if place in self.store.objects:
            return
        batch = ProofBatch(RUN, name.key_id, seq, head.digest if head else "0" * 64, (forged,))
        self.store.objects[place] = dsse.sign(PAYLOAD_TYPE, batch.payload(), [key]).encode()
        try:
            self.nothing_looks_better_than_its_last_proof()
        finally:
            del self.store.objects[place]

    @precondition(lambda self: not self.revoked)
    @rule()
    def revoke_the_second(self) -> None:
        revoked = read_list(trust_list(), KEYS.root.public).with_revocation(KEYS.second_verifier.key_id, "stolen")
        self.view = change_trust(self.store, self.view, sign_list(revoked, KEYS.root), KEYS.operator, TickClock())
        self.revoked = True

    @rule()
    def forget(self) -> None:
        """Another process, without memory."""
        self.cache = ChainCache()

    @invariant()
    def nothing_looks_better_than_its_last_proof(self) -> None:
        if not hasattr(self, "said"):
            return
        versions = {store_id(name): self.versions(name) for name in STORES}
        known = type(self).reader(self.store, self.view, self.cache)
        states = type(self).judge(list(known.proofs), self.now, versions)
        for name in STORES:
            state = states.get(store_id(name))
            if state is not None and state.level is not None:
                self._may_be_believed(name, state.level)

    def _may_be_believed(self, store: str, level: Level) -> None:
        """Said without the rules of the code: the evidence must exist, be of now, and be contradicted by nothing."""
        counted = [each for each in self.said if not (self.revoked and each.verifier == KEYS.second_verifier.key_id)]
        proofs = [proof for each in counted for proof in each.proofs]
        own = [proof for proof in proofs if proof.store == store_id(store)]
        of_today = [
            proof for proof in own if proof.result == OK and parse_utc(proof.at) <= self.now and (proof.versions == self.versions(store))
        ]
        for failure in (proof for proof in own if proof.result == FAILED):
            made_up = [proof for proof in of_today if proof.at > failure.at and proof.level >= max(Level.L2, failure.level)]
            assert made_up, f"{store} is shown at {level.name} and failed {failure.level.name} at {failure.at} without a newer success"
        if level <= Level.L1:
            assert any(self._fresh(proof, level) for proof in of_today if proof.level == level), "nobody listed it in time"
            return
        assert any(self._fresh(proof, Level.L2) for proof in of_today if proof.level >= Level.L2), "its own bytes were not read in time"
        if level >= Level.L3:
            newest = max(
                (proof for proof in proofs if proof.level == level and (proof.result == FAILED or parse_utc(proof.at) <= self.now)),
                key=lambda proof: (proof.at, proof.result == FAILED),
            )
            assert newest.result == OK and self._fresh(newest, level), f"nobody proved {level.name} of the sealing in time"

    def _fresh(self, proof: Proof, level: Level) -> bool:
        return self.now - parse_utc(proof.at) <= timedelta(days=POLICY.max_age_days[level])


MANY = settings(max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
TestHistories = Histories.TestCase
TestHistories.settings = MANY


def believes_a_cut_chain(store: MemoryStore, view: LogView, cache: ChainCache) -> KnownProofs:
    """Takes what is there for all there is."""
    bare = LogView(view.state.copy(), view.store_id)
    bare.state.heads.clear()
    return read_proofs(store, bare, [key.key_id for key in VERIFIERS])


def one_verifier_at_a_time(store: MemoryStore, view: LogView, cache: ChainCache) -> KnownProofs:
    """A gap in one chain says nothing about the others: what is missing may have been a failure."""
    found: list[Proof] = []
    for key in VERIFIERS:
        alone = LogView(view.state.copy(), view.store_id)
        for other in VERIFIERS:
            if other is not key:
                alone.state.heads.pop(other.key_id, None)
        found += read_proofs(store, alone).proofs
    return KnownProofs(tuple(found))


def takes_revoked_keys(store: MemoryStore, view: LogView, cache: ChainCache) -> KnownProofs:
    trusting = LogView(view.state.copy(), view.store_id)
    trusting.state.trust = read_list(trust_list(), KEYS.root.public)
    trusting.state.revoked_at.clear()
    return read_proofs(store, trusting)


def nothing_lapses(proofs: list[Proof], now: datetime, versions: dict[str, str]) -> dict[str, CopyState]:
    return copy_states(SEALING, proofs, now, AgePolicy(dict.fromkeys(Level, 10_000)), versions)


def a_failure_lapses(proofs: list[Proof], now: datetime, versions: dict[str, str]) -> dict[str, CopyState]:
    return honest_judge([p for p in proofs if p.result == OK or now - parse_utc(p.at) < timedelta(days=7)], now, versions)


def the_future_counts(proofs: list[Proof], now: datetime, versions: dict[str, str]) -> dict[str, CopyState]:
    return honest_judge(proofs, now + timedelta(days=3), versions)


def any_version_counts(proofs: list[Proof], now: datetime, versions: dict[str, str]) -> dict[str, CopyState]:
    return honest_judge(proofs, now, None)


def a_light_success_makes_up_for_a_failure(proofs: list[Proof], now: datetime, versions: dict[str, str]) -> dict[str, CopyState]:
    newest: dict[str, Proof] = {}
    for each in sorted(proofs, key=lambda proof: proof.at):
        newest[each.store] = each
    return honest_judge([p for p in proofs if p.result == OK or newest[p.store] is p], now, versions)


CAUGHT = [
    # who is wrong, and a history that shows it: rules with their arguments, verifiers as 0 and 1
    ("reader", believes_a_cut_chain, "verify a L2 0; damage a; wait 0.5; verify a L2 0; take_away 1"),
    ("reader", one_verifier_at_a_time, "verify a L2 0; damage a; wait 0.5; verify a L2 1; take_away 1"),
    ("reader", takes_revoked_keys, "verify a L2 1; revoke_the_second"),
    ("judge", a_failure_lapses, "verify a L2 0; damage a; verify a L2 0; wait 8; verify a L0 0"),
    ("judge", the_future_counts, "set_the_verifiers_clock 2; verify a L2 0"),
    ("judge", any_version_counts, "verify a L2 0; damage a; repair a"),
    ("judge", a_light_success_makes_up_for_a_failure, "damage a; verify a L2 0; wait 0.5; verify a L1 0"),
    ("judge", nothing_lapses, "verify a L2 0; wait 8"),
]


@pytest.mark.parametrize(("part", "wrong", "history"), CAUGHT, ids=[wrong.__name__ for _, wrong, _ in CAUGHT])
def test_the_control_is_caught(part: str, wrong: object, history: str) -> None:
    """The invariant fails for a reader that is wrong, and not for the honest one, on the very same history."""
    play(Histories, history).nothing_looks_better_than_its_last_proof()
    played = play(type("Wrong", (Histories,), {part: staticmethod(wrong)}), history)
    with pytest.raises(AssertionError, match=r"shown at|in time"):
        played.nothing_looks_better_than_its_last_proof()


def play(machine: type[Histories], history: str) -> Histories:
    played = machine()
    played.begin()
    for step in history.split("; "):
        name, *words = step.split(" ")
        if name == "verify":
            played.verify(words[0], Level.parse(words[1]), VERIFIERS[int(words[2])], False)
        else:
            getattr(played, name)(*(int(word) if word.isdecimal() else float(word) if "." in word else word for word in words))
    return played
