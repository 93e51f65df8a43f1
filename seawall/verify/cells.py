"""One function a dimension: from the facts of a copy to the cell of the matrix. Pure.

A response is only named here where one copy alone decides; what depends on the other copies (heal or incident) is chosen in
:mod:`seawall.verify.judge`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from seawall.clock import parse_utc, utc_text
from seawall.verify.configuration import MatrixSettings
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.matrix import Cell, Dimension, Response, Verdict
from seawall.verify.matrix_facts import CopyFacts, RunFacts, SealingFacts
from seawall.verify.proofs import Proof

NOTHING: Mapping[str, str] = {}
_SHOWN = 400
"""Characters of a damage in a cell's sentence, so that a reason made of it fits into the log; the evidence has it whole."""


@dataclass(frozen=True, slots=True)
class MatrixPolicy:
    """What the matrix is judged by."""

    ages: AgePolicy
    thresholds: MatrixSettings


def file_cell(copy: CopyFacts, now: datetime, policy: MatrixPolicy) -> Cell:
    """Every stored byte against the signed digests. Without exception: one bad record in 40 TB is a failure."""
    state = copy.bytes_state
    if state is not None and state.failure is not None:
        return _failed(state.failure, "damaged" if state.failure.level < Level.L3 else "what it decrypts to is not what was sealed")
    if state is not None and state.level is not None and state.level >= Level.L2 and copy.read_at is not None:
        lapses = copy.read_at + policy.ages.max_age(Level.L2, copy.store.id)
        return Cell(Verdict.OK, "every stored byte was read back and agrees", Response.NONE, NOTHING, copy.read_at, lapses)
    if copy.read_at is not None:
        return Cell(Verdict.STALE, "it was good when it was last read back, and that has lapsed", Response.PROVE, NOTHING, copy.read_at)
    if copy.arrival.whole_at is None and state is None:
        return Cell(Verdict.UNKNOWN, "no copy was seen here")
    return Cell(Verdict.UNKNOWN, "it was never read back", Response.PROVE)


def structure_cell(copy: CopyFacts, now: datetime, policy: MatrixPolicy) -> Cell:
    """Exactly as its own inventory says, and nearly the state dict of the checkpoint before."""
    sealing, facts = copy.sealing, copy.sealing.structure
    if sealing.structure_failure is not None:
        cell = _failed(sealing.structure_failure, "tensors differ from those of save time")
        return Cell(cell.verdict, cell.why, Response.QUARANTINE_AND_HOLD, cell.evidence, cell.at)
    if sealing.structure_unrecorded:
        return Cell(Verdict.UNKNOWN, "it was sealed as plain files: there is no structure to compare")
    if facts is None:
        return Cell(Verdict.UNKNOWN, "its structure was never read", Response.PROVE)
    evidence = {"keys": str(facts.keys), "missing": str(facts.missing), "new": str(facts.new), "compared_with": facts.compared_with}
    # Of all keys that either of the two has, so that a state dict that shrank to nothing differs by all of it.
    union = facts.keys + facts.missing
    differ = facts.missing + facts.new
    share = differ / union if union else 0.0
    if facts.compared_with and share > policy.thresholds.structure_share:
        why = f"{differ} of {union} keys ({share:.2%}) differ from the checkpoint before"
        return _suspect(sealing, Dimension.STRUCTURE, why, Response.QUARANTINE_AND_HOLD, evidence, facts.at)
    why = "tensors are those of save time" + (
        f", {differ} of {union} keys differ from the checkpoint before" if facts.compared_with else ""
    )
    return _aging(why, evidence, facts.at, facts.at + policy.ages.max_age(Level.L4, copy.store.id), now)


def timeliness_cell(copy: CopyFacts, now: datetime, policy: MatrixPolicy) -> Cell:
    """Whether the copy was there in time, or is late by now."""
    arrival, limit = copy.arrival, timedelta(minutes=policy.thresholds.late_minutes)
    if arrival.whole_at is not None and arrival.missing:
        why = "it was whole once, and the store says now that it has no receipt of it"
        return Cell(Verdict.UNKNOWN, why, Response.PROVE, {}, now)
    if arrival.whole_at is not None:
        delay = max(arrival.whole_at - arrival.due_from, timedelta(0))
        late = f", later than {policy.thresholds.late_minutes} minutes" if delay > limit else ""
        evidence = {"delay_minutes": f"{delay / timedelta(minutes=1):.1f}"}
        return Cell(Verdict.OK, f"whole {_minutes(delay)} after the commit{late}", Response.NONE, evidence, arrival.whole_at)
    waiting = now - arrival.due_from
    evidence = {"waiting_minutes": f"{waiting / timedelta(minutes=1):.1f}"}
    if waiting <= limit:
        return Cell(Verdict.OK, "it is being copied", Response.NONE, evidence, arrival.due_from, arrival.due_from + limit)
    if arrival.missing is None:
        return Cell(Verdict.UNKNOWN, "nobody asked the store whether it has it", Response.NONE, evidence)
    return Cell(Verdict.FAILED, f"not there {_minutes(waiting)} after the commit", Response.CATCH_UP, evidence, now)


def run_cell(facts: RunFacts, now: datetime, policy: MatrixPolicy) -> Cell:
    """How far the run's newest committed checkpoint is behind what training wrote."""
    newest, limit = facts.newest_source, timedelta(minutes=policy.thresholds.late_minutes)
    if newest is None:
        return Cell(Verdict.UNKNOWN, "nobody looked where training writes")
    evidence = {"newest_step": str(newest.step), "committed_step": str(facts.newest_committed_step)}
    if facts.newest_committed_step is not None and facts.newest_committed_step >= newest.step:
        return Cell(Verdict.OK, "the newest checkpoint is committed", Response.NONE, evidence, now)
    behind = now - newest.saved_at
    if behind <= limit:
        return Cell(Verdict.OK, "the newest checkpoint is on its way", Response.NONE, evidence, now, newest.saved_at + limit)
    return Cell(
        Verdict.FAILED, f"step {newest.step} is not committed {_minutes(behind)} after it was saved", Response.CATCH_UP, evidence, now
    )


def chain_cell(copy: CopyFacts, facts: RunFacts, now: datetime) -> Cell:
    """Whether the history that says all this is whole: the log was compared, and no verifier's chain was cut."""
    commit = copy.sealing.commit
    evidence = {"entry": str(commit.seq), "manifest": commit.manifest}
    if facts.unknown_verifiers:
        verifier, why = sorted(facts.unknown_verifiers.items())[0]
        said = f"what verifier {verifier} proved counts for nothing: {why}"
        return Cell(Verdict.UNKNOWN, said, Response.REVIEW, evidence, now)
    if not facts.fresh:
        return Cell(Verdict.UNKNOWN, "the log was compared with no other memory: it may be an old state", Response.NONE, evidence, now)
    return Cell(Verdict.OK, f"entry {commit.seq} of a log that no mirror contradicts names it", Response.NONE, evidence, now)


def values_cell(copy: CopyFacts, now: datetime, policy: MatrixPolicy) -> Cell:
    """Finite numbers, and no jump in zeros or saturation since the checkpoint before."""
    sealing, facts, limits = copy.sealing, copy.sealing.values, policy.thresholds
    if sealing.resume_failure is not None:
        cell = _failed(sealing.resume_failure, "training did not go on from it as before")
        return Cell(cell.verdict, cell.why, Response.QUARANTINE, cell.evidence, cell.at)
    if facts is None:
        return Cell(Verdict.UNKNOWN, "its numbers were never looked at", Response.NONE if sealing.structure_unrecorded else Response.PROVE)
    before = sealing.values_before
    evidence = {
        "floats": str(facts.floats),
        "nonfinite": str(facts.nonfinite),
        "zero_share": f"{facts.zero_share:.6f}",
        "saturated_share": f"{facts.saturated_share:.6f}",
    }
    odd = []
    if facts.nonfinite > (before.nonfinite if before else 0):
        odd.append(f"{facts.nonfinite} values are NaN or infinite, {before.nonfinite if before else 'none'} before")
    if before and facts.zero_share - before.zero_share > limits.zero_share_jump:
        odd.append(f"{facts.zero_share:.1%} of all values are zero, {before.zero_share:.1%} before")
    if before and facts.saturated_share - before.saturated_share > limits.saturated_share_jump:
        odd.append(f"{facts.saturated_share:.3%} of all values are saturated, {before.saturated_share:.3%} before")
    if odd:
        return _suspect(sealing, Dimension.VALUES, "; ".join(odd), Response.QUARANTINE, evidence, facts.at)
    why = f"{facts.floats} values, none of them odd" if facts.floats else "it holds no floating-point values"
    return _aging(why, evidence, facts.at, facts.at + policy.ages.max_age(Level.L4, copy.store.id), now)


def lock_cell(copy: CopyFacts, now: datetime, policy: MatrixPolicy) -> Cell:
    """Whether deletion is refused, where that is asked for."""
    lock = copy.lock
    if not copy.store.lock_required:
        return Cell(Verdict.OK, "no lock is asked for in this store", at=now)
    if lock is None:
        return Cell(Verdict.UNKNOWN, "nobody asked the store about locks", Response.PROVE)
    evidence = {"unlocked": str(lock.unlocked), "locked_until": utc_text(lock.locked_until) if lock.locked_until else ""}
    if lock.unlocked or lock.locked_until is None:
        return Cell(Verdict.FAILED, f"{lock.unlocked or 'some'} objects have no lock", Response.REVIEW, evidence, lock.at)
    if lock.locked_until <= now:
        return Cell(Verdict.FAILED, "its lock has run out", Response.REVIEW, evidence, lock.at)
    lapses = min(lock.locked_until, lock.at + policy.ages.max_age(Level.L1, copy.store.id))
    return _aging(f"locked until {lock.locked_until:%Y-%m-%d}", evidence, lock.at, lapses, now)


def key_cell(copy: CopyFacts, now: datetime, policy: MatrixPolicy) -> Cell:
    """Whether somebody can open it: how many keys exist for it, and whether one of them did lately."""
    keys, needed = copy.sealing.keys, policy.thresholds.live_wraps
    if keys.wraps is None:
        return Cell(Verdict.UNKNOWN, "nobody looked who can open it", Response.PROVE)
    evidence = {"wraps": ", ".join(keys.wraps), "live": "" if keys.live is None else ", ".join(keys.live)}
    usable = keys.wraps if keys.live is None else keys.live
    if not usable:
        return Cell(Verdict.FAILED, "no key is known that opens it", Response.INCIDENT, evidence, keys.at)
    if len(usable) < needed:
        why = f"{len(usable)} keys open it, {needed} should"
        return Cell(Verdict.SUSPECT, why, Response.REVIEW, evidence, keys.at)
    if keys.opened_at is None:
        return Cell(Verdict.UNKNOWN, "nobody has opened it yet", Response.PROVE, evidence, keys.at)
    lapses = keys.opened_at + policy.ages.max_age(Level.L3, copy.store.id)
    return _aging(f"{len(usable)} keys open it, and one did", evidence, keys.opened_at, lapses, now)


def _failed(proof: Proof, what: str) -> Cell:
    said = proof.evidence.get("damage", "")
    why = f"{what} ({proof.level.name})" + (f": {said[:_SHOWN]}" if said else "")
    return Cell(Verdict.FAILED, why, Response.NONE, dict(proof.evidence), parse_utc(proof.at))


def _suspect(sealing: SealingFacts, dimension: Dimension, why: str, response: Response, evidence: Mapping[str, str], at: datetime) -> Cell:
    if any(reason.startswith(f"{dimension}: ") for reason in sealing.lifted):
        return Cell(Verdict.OK, f"{why}; a person looked at it and lifted the quarantine", Response.NONE, evidence, at)
    return Cell(Verdict.SUSPECT, why, response, evidence, at)


def _aging(why: str, evidence: Mapping[str, str], at: datetime, lapses: datetime, now: datetime) -> Cell:
    """Ok until it lapses."""
    if now > lapses:
        return Cell(Verdict.STALE, f"{why}; that has lapsed", Response.PROVE, evidence, at, lapses)
    return Cell(Verdict.OK, why, Response.NONE, evidence, at, lapses)


def _minutes(length: timedelta) -> str:
    minutes = length / timedelta(minutes=1)
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.0f} hours" if minutes < 2880 else f"{minutes / 1440:.0f} days"
