"""Which checkpoint to restore, and from which copy. Pure: the log, the proofs and the request decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from seawall.errors import NoSuchCopyError
from seawall.log.state import CommitRecord, RunState
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.proofs import Proof
from seawall.verify.recovery import copy_states, recovery_point


@dataclass(frozen=True)
class Wanted:
    """What was asked for. Without anything: the recovery point."""

    step: int | None = None
    """Exactly this step."""
    nearest: int | None = None
    """The recovery point at or below this step."""
    quarantined: bool = False
    """Take it although it is quarantined."""
    unproved: bool = False
    """Take the newest committed one although nothing is proved about its copies."""


@dataclass(frozen=True)
class Chosen:
    """The checkpoint, and the ids of the stores to try, best first."""

    commit: CommitRecord
    stores: tuple[str, ...]
    level: Level | None
    warnings: tuple[str, ...] = ()


def choose(
    state: RunState, proofs: Sequence[Proof], stores: Sequence[str], now: datetime, policy: AgePolicy, required: Level, wanted: Wanted
) -> Chosen:
    """Choose among committed checkpoints whose copies may lie in ``stores`` (ids).

    Raises :class:`NoSuchCopyError` with the reasons when nothing answers to what is wanted.
    """
    if wanted.step is not None or wanted.unproved:
        return _named(state, proofs, stores, now, policy, wanted)
    decision = recovery_point(state, proofs, now, policy, required, wanted.nearest, stores)
    if decision.point is None:
        why = (
            "; ".join(f"step {commit.step}: {reason}" for commit, reason in decision.passed_over[:5]) or "no checkpoint was ever committed"
        )
        raise NoSuchCopyError(
            f"no checkpoint is proved to {required.name}",
            where=state.run,
            why=why,
            do="`seawall verify` proves copies; --step N or --unproved takes one that is not proved",
        )
    point = decision.point
    # Every byte is verified while it is restored, so a copy that nothing is proved about is worth a try when the proved ones turn out bad.
    others = [store for store in stores if store not in point.stores and not state.is_deleted(point.commit.sealing, store)]
    newer = tuple(f"step {commit.step} is newer and was passed over: {reason}" for commit, reason in decision.passed_over)
    return Chosen(point.commit, (*point.stores, *others), point.level, newer)


def _named(state: RunState, proofs: Sequence[Proof], stores: Sequence[str], now: datetime, policy: AgePolicy, wanted: Wanted) -> Chosen:
    candidates = [
        commit
        for commit in state.commits.values()
        if (wanted.step is None or commit.step == wanted.step) and (wanted.nearest is None or commit.step <= wanted.nearest)
    ]
    refused = ""
    for commit in sorted(candidates, key=lambda commit: (commit.step, commit.seq), reverse=True):
        reasons = state.quarantine_reasons(commit.sealing)
        if reasons and not wanted.quarantined:
            refused = refused or f"step {commit.step} is quarantined: {reasons[0]}"
            continue
        relevant = [proof for proof in proofs if proof.manifest == commit.manifest]
        states = copy_states(commit.sealing, relevant, now, policy)
        there = [store for store in stores if not state.is_deleted(commit.sealing, store)]
        # Proved copies first, failed ones last; among equals the configured order.
        there.sort(key=lambda store: _rank(states.get(store)), reverse=True)
        best = states.get(there[0]) if there else None
        warnings = [f"the checkpoint is quarantined: {reason}" for reason in reasons]
        if best is None or best.level is None:
            warnings.append("nothing is proved about this copy now; every byte is verified while it is restored")
        return Chosen(commit, tuple(there), best.level if best else None, tuple(warnings))
    raise NoSuchCopyError(
        "the run has no such checkpoint",
        where=f"{state.run} step {wanted.step}" if wanted.step is not None else state.run,
        why=refused or "the log has no commit of it",
        do="`seawall copies` lists them" + ("; --quarantined takes it all the same" if refused else ""),
    )


def _rank(state: object) -> int:
    level = getattr(state, "level", None)
    if getattr(state, "failure", None) is not None:
        return -2
    return -1 if level is None else int(level)
