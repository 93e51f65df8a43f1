"""The score of one checkpoint, from the facts that a page has already. The rule is the library's."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from seawall.clock import utc_text
from seawall.log.state import CommitRecord
from seawall.plugins.earlier import committed_at
from seawall.plugins.warm import WarmRun
from seawall.protect.retention_facts import Copy, Kind, Point, Site
from seawall.protect.score import score
from seawall.verify.matrix_facts import CopyFacts


def score_document(warm: WarmRun, commit: CommitRecord, primary_zone: str) -> dict[str, Any]:
    """3-2-1-1-0 of a checkpoint now, each digit with its evidence and when it lapses."""
    facts = warm.facts
    (rows,) = facts.rows([commit], [warm.at], warm.at)
    copies = [_copy(warm, copy) for copy, _ in rows.values()]
    sites = [Site(store.id, store.name, store.medium, store.fault_domain, store.zone) for store in facts.stores]
    found = score(_point(commit, copies), sites, warm.at, primary_zone)
    return {
        "step": found.step,
        "sealing": found.sealing,
        "score": found.text,
        "ok": found.ok,
        "lapses_at": _text(found.lapses_at),
        "digits": [
            {
                "rule": digit.rule,
                "want": digit.want,
                "have": digit.have,
                "ok": digit.ok,
                "evidence": list(digit.evidence),
                "lapses_at": _text(digit.lapses_at),
            }
            for digit in found.digits
        ],
    }


def _point(commit: CommitRecord, copies: Sequence[Copy]) -> Point:
    return Point(commit.sealing, commit.step, Kind.CHECKPOINT, commit.seq, tuple(copies), committed_at(commit), commit.manifest)


def _copy(warm: WarmRun, copy: CopyFacts) -> Copy:
    state, store = copy.state, copy.store.id
    there = warm.facts.received.get((copy.sealing.commit.sealing, store))
    failure = f"{state.failure.level.name} failed at {state.failure.at}" if state is not None and state.failure is not None else ""
    if there is not None and not there.there:
        failure = failure or "its objects are not there"
    locked = copy.lock.locked_until if copy.lock is not None and not copy.lock.unlocked else None
    level, lapses = (state.level, state.lapses_at) if state is not None else (None, None)
    return Copy(store, level, lapses, failure, store not in warm.facts.silent, locked)


def _text(moment: datetime | None) -> str | None:
    return utc_text(moment) if moment is not None else None
