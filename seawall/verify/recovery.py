"""What is proved about each copy right now, and which checkpoint is the recovery point. Pure functions of log and proofs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from seawall.clock import parse_utc
from seawall.log.state import CommitRecord, RunState
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.proofs import FAILED, OK, Proof


@dataclass(frozen=True)
class CopyState:
    """One copy of one sealing, as a reader judges it at a moment."""

    sealing: str
    store: str
    level: Level | None
    """Highest level that holds; None when nothing does (never proved, lapsed, or failed since)."""
    failure: Proof | None
    """The failure that stands, if one does."""
    proved_at: str | None
    """When the proof that the level rests on was made."""
    lapses_at: datetime | None
    """When the level falls if nothing is proved again."""


def copy_states(
    sealing: str, proofs: Sequence[Proof], now: datetime, policy: AgePolicy, versions: Mapping[str, str] | None = None
) -> dict[str, CopyState]:
    """Store id → state, for every store that has a proof about this sealing.

    A copy's level is its own newest unlapsed L2 together with the sealing's highest unlapsed level, because the same
    bytes lie in every store: content that was decrypted well once is well wherever every stored byte agrees. A
    failure of a copy stands until a newer proof of at least L2 of the same copy; a failed content level (L3 and up)
    stands for the sealing until that level is proved again. Proofs of one moment come from one check, so a failure among
    them stands. What succeeded in the future counts for nothing, because a clock is wrong; what failed there counts.

    ``versions`` has, by store, the version ids that the newest receipt names (:attr:`Proof.versions`). A success about other versions says
    nothing about that store's copy of today. Its failure says something until a success about today's.
    """
    about = [proof for proof in proofs if proof.sealing == sealing]
    of_sealing = [proof for proof in about if proof.result == FAILED or parse_utc(proof.at) <= now]
    of_sealing.sort(key=lambda proof: (proof.at, proof.result == FAILED))
    states = {}
    for store in sorted({proof.store for proof in about}):
        own = [proof for proof in of_sealing if proof.store == store and _is_of_today(proof, versions)]
        states[store] = _copy_state(sealing, store, own, _content_level(of_sealing, store, now, policy), now, policy)
    return states


def _is_of_today(proof: Proof, versions: Mapping[str, str] | None) -> bool:
    """Whether the proof is about the versions that make up the copy now, as far as anybody knows."""
    named = (versions or {}).get(proof.store)
    return named is None or proof.result == FAILED or proof.versions == named


def _content_level(proofs: Sequence[Proof], store: str, now: datetime, policy: AgePolicy) -> Proof | None:
    """The highest content level that holds for the copy in ``store``: how long it holds depends on that store's medium."""
    best: Proof | None = None
    for level in (Level.L5, Level.L4, Level.L3):
        of_level = [proof for proof in proofs if proof.level == level]
        if of_level and of_level[-1].result == FAILED:
            best = None if best is None or best.at < of_level[-1].at else best
            continue
        if best is None and of_level and _fresh_as(of_level[-1], level, store, now, policy):
            best = of_level[-1]
    return best


def _copy_state(sealing: str, store: str, own: Sequence[Proof], content: Proof | None, now: datetime, policy: AgePolicy) -> CopyState:
    failure: Proof | None = None
    needed = Level.L2
    for proof in own:
        if proof.result == FAILED:
            # A second, lighter failure does not make up for the first.
            failure, needed = proof, max(needed, proof.level)
        elif failure is not None and proof.level >= needed:
            failure, needed = None, Level.L2
    if failure is not None:
        return CopyState(sealing, store, None, failure, failure.at, None)
    # Whoever proved L3 or more of a copy read all its bytes, so that counts as its L2.
    own_bytes = [p for p in own if p.level >= Level.L2 and p.result == OK and _fresh_as(p, Level.L2, store, now, policy)]
    if own_bytes:
        basis = own_bytes[-1]
        lapses = parse_utc(basis.at) + policy.max_age(Level.L2, store)
        if content is None:
            return CopyState(sealing, store, Level.L2, None, basis.at, lapses)
        return CopyState(
            sealing, store, content.level, None, content.at, min(lapses, parse_utc(content.at) + policy.max_age(content.level, store))
        )
    for level in (Level.L1, Level.L0):
        light = [proof for proof in own if proof.level == level and proof.result == OK and _fresh_as(proof, level, store, now, policy)]
        if light:
            return CopyState(sealing, store, level, None, light[-1].at, parse_utc(light[-1].at) + policy.max_age(level, store))
    return CopyState(sealing, store, None, None, own[-1].at if own else None, None)


def _fresh_as(proof: Proof, level: Level, store: str, now: datetime, policy: AgePolicy) -> bool:
    return parse_utc(proof.at) <= now <= parse_utc(proof.at) + policy.max_age(level, store)


@dataclass(frozen=True)
class RecoveryPoint:
    """The newest checkpoint that can be counted on, and the stores it can be restored from, best first."""

    commit: CommitRecord
    stores: tuple[str, ...]
    level: Level


@dataclass(frozen=True)
class RecoveryDecision:
    """The recovery point, or None; and for each newer checkpoint why it is not it."""

    point: RecoveryPoint | None
    passed_over: tuple[tuple[CommitRecord, str], ...]


def recovery_point(
    state: RunState,
    proofs: Sequence[Proof],
    now: datetime,
    policy: AgePolicy,
    required: Level,
    at_most_step: int | None = None,
    among: Sequence[str] | None = None,
) -> RecoveryDecision:
    """The newest committed checkpoint with a copy at ``required`` or better: not quarantined, not orphaned, not deleted.

    With ``at_most_step`` the newest whose step is not above it; with ``among`` (ids) the newest with such a copy in one of these stores,
    of which the first is the best among equals.
    """
    by_sealing: Mapping[str, list[Proof]] = _grouped(proofs)
    passed: list[tuple[CommitRecord, str]] = []
    for commit in sorted(state.commits.values(), key=lambda commit: (commit.step, commit.seq), reverse=True):
        if at_most_step is not None and commit.step > at_most_step:
            continue
        reasons = state.quarantine_reasons(commit.sealing)
        if reasons:
            passed.append((commit, f"quarantined: {reasons[0]}"))
            continue
        # A proof of another manifest says nothing about this one.
        relevant = [proof for proof in by_sealing.get(commit.sealing, []) if proof.manifest == commit.manifest]
        states = copy_states(commit.sealing, relevant, now, policy)
        good = [
            copy
            for copy in states.values()
            if copy.level is not None and copy.level >= required and not state.is_deleted(commit.sealing, copy.store)
        ]
        elsewhere = bool(good)
        good = [copy for copy in good if among is None or copy.store in among]
        if good:
            good.sort(key=lambda copy: (-(copy.level or 0), among.index(copy.store) if among is not None else 0, copy.store))
            return RecoveryDecision(RecoveryPoint(commit, tuple(copy.store for copy in good), good[0].level or Level.L0), tuple(passed))
        passed.append((commit, "its proved copies are in other stores" if elsewhere else _why_not(states, required)))
    return RecoveryDecision(None, tuple(passed))


def _why_not(states: Mapping[str, CopyState], required: Level) -> str:
    if not states:
        return "no copy was ever proved"
    failures = sum(copy.failure is not None for copy in states.values())
    if failures:
        return f"{failures} of {len(states)} copies failed their last proof, none is at {required.name}"
    return f"no copy is at {required.name} now (never proved so far, or lapsed)"


def _grouped(proofs: Sequence[Proof]) -> dict[str, list[Proof]]:
    grouped: dict[str, list[Proof]] = {}
    for proof in proofs:
        grouped.setdefault(proof.sealing, []).append(proof)
    return grouped
