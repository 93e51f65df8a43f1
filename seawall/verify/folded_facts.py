"""The facts of the matrix, folded from log and proofs. Pure; no store is asked for anything that a proof has told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from seawall.clock import parse_utc
from seawall.log.state import CommitRecord, RunState
from seawall.verify import evidence
from seawall.verify.evidence import count_of, moment_of
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.matrix_facts import (
    Arrival,
    CopyFacts,
    KeyFacts,
    LockFacts,
    Newest,
    RunFacts,
    SealingFacts,
    StoreFacts,
    StructureFacts,
    ValueFacts,
)
from seawall.verify.proofs import FAILED, OK, Proof
from seawall.verify.recovery import CopyState, copy_states


@dataclass(frozen=True, slots=True)
class Received:
    """What a store's newest receipt says of a copy; without ``whole_at`` and ``versions`` when there is none."""

    there: bool
    whole_at: datetime | None = None
    versions: str = ""
    """As in :class:`~seawall.verify.proofs.Proof`: which version ids make up the copy now."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked beside log and proofs. Whatever is left out is not known."""

    received: Mapping[tuple[str, str], Received] = field(default_factory=dict)
    """(sealing, store id) → its newest receipt."""
    live_keys: frozenset[str] | None = None
    """``kind id`` of the keys that are known to exist."""
    fresh: bool | None = None
    newest_source: Newest | None = None
    unknown_verifiers: Mapping[str, str] = field(default_factory=dict)
    """Why the proofs of a verifier count for nothing, for verifiers whose key still counts: a revoked one is no gap."""


def fold_facts(
    state: RunState,
    proofs: Sequence[Proof],
    stores: Sequence[StoreFacts],
    now: datetime,
    ages: AgePolicy,
    asked: Asked = Asked(),
    commits: Sequence[CommitRecord] | None = None,
) -> RunFacts:
    """Facts of the run's copies in ``stores``, newest checkpoint first; only of ``commits`` where they are given.

    Copies that were deleted have none. ``proofs`` are those that count, of the whole run: the checkpoint before is looked at, too.
    """
    ordered = sorted(state.commits.values(), key=lambda commit: (commit.step, commit.seq))
    by_sealing: dict[str, list[Proof]] = {commit.sealing: [] for commit in ordered}
    manifests = {commit.sealing: commit.manifest for commit in ordered}
    for proof in proofs:
        # A proof of another manifest says nothing about this one.
        if manifests.get(proof.sealing) == proof.manifest:
            by_sealing[proof.sealing].append(proof)
    wanted = None if commits is None else {commit.sealing for commit in commits}
    lifted = _lifted(state)
    copies: list[CopyFacts] = []
    before: ValueFacts | None = None
    for commit in ordered:
        # Like the judgement of a copy: a success in the future counts for nothing, because a clock is wrong; a failure counts.
        about = [proof for proof in by_sealing[commit.sealing] if proof.result == FAILED or parse_utc(proof.at) <= now]
        about.sort(key=lambda proof: (proof.at, proof.result == FAILED))
        sealing = _sealing_facts(state, commit, about, lifted.get(commit.sealing, ()), before, asked.live_keys)
        if sealing.values is not None and not sealing.quarantine:
            before = sealing.values
        if wanted is None or commit.sealing in wanted:
            copies[:0] = _copies(state, sealing, about, stores, now, ages, asked)
    newest = ordered[-1].step if ordered else None
    return RunFacts(
        state.run, tuple(copies), asked.fresh, asked.unknown_verifiers, asked.newest_source, newest, tuple(state.hold_reasons())
    )


def _lifted(state: RunState) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for mark in state.marks.values():
        if mark.sealing and mark.lifted_by:
            found[mark.sealing] = (*found.get(mark.sealing, ()), mark.reason)
    return found


def _sealing_facts(
    state: RunState,
    commit: CommitRecord,
    about: Sequence[Proof],
    lifted: tuple[str, ...],
    before: ValueFacts | None,
    live_keys: frozenset[str] | None,
) -> SealingFacts:
    newest: dict[Level, Proof] = {proof.level: proof for proof in about}
    structure, resume = newest.get(Level.L4), newest.get(Level.L5)
    content = [proof for proof in about if proof.result == OK and proof.level >= Level.L3]
    return SealingFacts(
        commit,
        tuple(state.quarantine_reasons(commit.sealing)),
        lifted,
        _structure(about),
        structure if structure is not None and structure.result == FAILED else None,
        resume if resume is not None and resume.result == FAILED else None,
        bool(content) and evidence.UNRECORDED in content[-1].evidence,
        _values(about),
        before,
        _keys(about, content, live_keys),
    )


def _structure(about: Sequence[Proof]) -> StructureFacts | None:
    for proof in reversed(about):
        keys = count_of(proof.evidence, evidence.KEYS)
        if proof.level is not Level.L4 or proof.result != OK or keys is None:
            continue
        missing, new = count_of(proof.evidence, evidence.KEYS_MISSING), count_of(proof.evidence, evidence.KEYS_NEW)
        if missing is None or new is None:
            return StructureFacts(parse_utc(proof.at), keys)
        return StructureFacts(parse_utc(proof.at), keys, missing, new, proof.evidence.get(evidence.COMPARED_WITH, ""))
    return None


def _values(about: Sequence[Proof]) -> ValueFacts | None:
    for proof in reversed(about):
        floats, nonfinite = count_of(proof.evidence, evidence.FLOATS), count_of(proof.evidence, evidence.NONFINITE)
        zeros, saturated = count_of(proof.evidence, evidence.ZEROS), count_of(proof.evidence, evidence.SATURATED)
        if proof.level is Level.L4 and None not in (floats, nonfinite, zeros, saturated):
            return ValueFacts(parse_utc(proof.at), floats or 0, nonfinite or 0, zeros or 0, saturated or 0)
    return None


def _keys(about: Sequence[Proof], content: Sequence[Proof], live_keys: frozenset[str] | None) -> KeyFacts:
    opened = parse_utc(content[-1].at) if content else None
    for proof in reversed(about):
        if proof.evidence.get(evidence.WRAPS):
            wraps = tuple(proof.evidence[evidence.WRAPS].split(", "))
            live = None if live_keys is None else tuple(wrap for wrap in wraps if wrap in live_keys)
            return KeyFacts(wraps, parse_utc(proof.at), live, opened)
    return KeyFacts(opened_at=opened)


def _copies(
    state: RunState,
    sealing: SealingFacts,
    about: Sequence[Proof],
    stores: Sequence[StoreFacts],
    now: datetime,
    ages: AgePolicy,
    asked: Asked,
) -> list[CopyFacts]:
    commit = sealing.commit
    named = {
        store.id: asked.received[commit.sealing, store.id].versions for store in stores if (commit.sealing, store.id) in asked.received
    }
    versions = {store: digest for store, digest in named.items() if digest}
    states = copy_states(commit.sealing, about, now, ages, versions)
    bytes_states = states
    if sealing.structure_failure is not None or sealing.resume_failure is not None:
        of_bytes = [proof for proof in about if proof.result == OK or proof.level <= Level.L3]
        bytes_states = copy_states(commit.sealing, of_bytes, now, ages, versions)
    found = []
    for store in stores:
        if state.is_deleted(commit.sealing, store.id):
            continue
        own = [proof for proof in about if proof.store == store.id]
        received = asked.received.get((commit.sealing, store.id))
        if store.archive and not own and received is None:
            continue
        found.append(
            CopyFacts(
                sealing,
                store,
                _arrival(commit, store.id, own, received),
                states.get(store.id),
                bytes_states.get(store.id),
                _read_at(own, bytes_states.get(store.id), versions.get(store.id)),
                _lock(own),
            )
        )
    return found


def _arrival(commit: CommitRecord, store: str, own: Sequence[Proof], received: Received | None) -> Arrival:
    due = parse_utc(commit.stored_at or commit.at)
    gone = received is not None and not received.there
    if store == commit.store:
        return Arrival(due, due, gone)
    if received is not None and received.whole_at is not None:
        return Arrival(due, received.whole_at, False)
    for proof in own:
        if proof.result == OK:
            return Arrival(due, moment_of(proof.evidence, evidence.WHOLE_AT) or parse_utc(proof.at), gone)
    if received is None:
        return Arrival(due)
    # A store without a clock still has a receipt: the copy is there, since when nobody knows.
    return Arrival(due, due if received.there else None, not received.there)


def _read_at(own: Sequence[Proof], state: CopyState | None, versions: str | None) -> datetime | None:
    if state is not None and state.failure is not None:
        return None
    reads = [p for p in own if p.result == OK and p.level >= Level.L2 and (versions is None or p.versions == versions)]
    return parse_utc(reads[-1].at) if reads else None


def _lock(own: Sequence[Proof]) -> LockFacts | None:
    for proof in reversed(own):
        unlocked = count_of(proof.evidence, evidence.UNLOCKED)
        if unlocked is not None:
            return LockFacts(parse_utc(proof.at), moment_of(proof.evidence, evidence.LOCKED_UNTIL), unlocked)
    return None
