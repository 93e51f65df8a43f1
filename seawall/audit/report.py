"""The report itself: a fold over what was known at its cut. Pure; nothing in it depends on when or where it is made."""

from collections.abc import Collection, Sequence

from seawall.audit.history import Known
from seawall.audit.terms import Interval, Terms
from seawall.clock import parse_utc, utc_text
from seawall.log.state import CommitRecord, RunState
from seawall.vault import canonical
from seawall.vault.canonical import Document
from seawall.verify.levels import Level
from seawall.verify.proofs import FAILED, OK, Proof
from seawall.verify.recovery import CopyState, copy_states

STALE = "stale"
UNKNOWN = "unknown"
DELETED = "deleted"
_SHOWN = 400
"""Characters of a damage; the proof has it whole."""


def audit(known: Known, earlier: Collection[str], interval: Interval, terms: Terms) -> Document:
    """What was proved, what failed and what was unknown of the checkpoints that were committed in ``interval``.

    ``known`` is what was known at the cut, ``earlier`` the sealings that were committed at the cut of the interval before. A checkpoint
    belongs to the interval of its first receipt's time (the store's; the committer's where the store has no clock). One whose
    commit reached the log only after the report of its own interval is in the next one, marked late, so that none is in no report.
    """
    state, cut = known.state, terms.cut(interval)
    commits = [*state.commits.values(), *state.orphans.values()]
    rows = []
    for commit in sorted(commits, key=lambda commit: commit.seq):
        moment = parse_utc(commit.stored_at or commit.at)
        late = moment < interval.start and commit.sealing not in earlier
        if late or interval.start <= moment < interval.end:
            rows.append(_checkpoint(known, commit, late, terms, interval))
    copies = [copy for row in rows for copy in row["copies"]]
    return {
        "interval": {"start": utc_text(interval.start), "end": utc_text(interval.end)},
        "cut": utc_text(cut),
        "terms": terms.document(),
        "log": {"seq": canonical.number(state.seq), "digest": state.digest, "epoch": canonical.number(state.epoch)},
        "proofs": {verifier: {"seq": canonical.number(head.seq), "digest": head.digest} for verifier, head in state.heads.items()},
        "not_counted": list(known.not_counted),
        "holds": state.hold_reasons(),
        "checkpoints": rows,
        "counts": {
            "checkpoints": canonical.number(len(rows)),
            **{result: canonical.number(sum(copy["result"] == result for copy in copies)) for result in (OK, FAILED, UNKNOWN, DELETED)},
        },
    }


def _checkpoint(known: Known, commit: CommitRecord, late: bool, terms: Terms, interval: Interval) -> Document:
    state = known.state
    # A proof of another manifest says nothing about this one.
    about = [proof for proof in known.proofs if proof.sealing == commit.sealing and proof.manifest == commit.manifest]
    stores = sorted({*terms.stores, commit.store, *(proof.store for proof in about)})
    states = copy_states(commit.sealing, about, terms.cut(interval), terms.ages)
    return {
        "sealing": commit.sealing,
        "step": canonical.number(commit.step),
        "manifest": commit.manifest,
        "entry": canonical.number(commit.seq),
        "stored_at": commit.stored_at,
        "committed_at": commit.at,
        "late": late,
        "orphan": commit.orphan,
        "quarantine": state.quarantine_reasons(commit.sealing),
        "copies": [_copy(state, commit, store, about, states.get(store), terms, interval) for store in stores],
    }


def _copy(
    state: RunState, commit: CommitRecord, store: str, about: Sequence[Proof], copy: CopyState | None, terms: Terms, interval: Interval
) -> Document:
    """One copy: ``ok`` means proved to the level that is asked for, at the cut."""
    own = [proof for proof in about if proof.store == store]
    failure = copy.failure if copy is not None else None
    level = copy.level if copy is not None else None
    if state.is_deleted(commit.sealing, store):
        result = DELETED
    elif failure is not None:
        result = FAILED
    else:
        result = OK if level is not None and level >= terms.required else UNKNOWN
    return {
        "store": store,
        "result": result,
        "level": "" if level is None else level.name,
        "lapses": "" if copy is None or copy.lapses_at is None else utc_text(copy.lapses_at),
        "failure": None
        if failure is None
        else {"level": failure.level.name, "at": failure.at, "damage": failure.evidence.get("damage", "")[:_SHOWN]},
        "levels": {level.name: _level(level, own, store, terms, interval) for level in Level},
    }


def _level(level: Level, own: Sequence[Proof], store: str, terms: Terms, interval: Interval) -> Document:
    """The newest proof of one level of one copy, however things went on at other levels."""
    cut = terms.cut(interval)
    # As everywhere: what succeeded in the future counts for nothing, because a clock is wrong; what failed there counts.
    seen = [proof for proof in own if proof.level is level and (proof.result == FAILED or parse_utc(proof.at) <= cut)]
    if not seen:
        return {"result": UNKNOWN, "at": ""}
    newest = max(seen, key=lambda proof: (proof.at, proof.result == FAILED))
    lapsed = newest.result == OK and cut > parse_utc(newest.at) + terms.ages.max_age(level, store)
    return {"result": STALE if lapsed else newest.result, "at": newest.at}
