"""What the integrity page shows of a run, as documents: the same for the page and for its JSON routes. Knows nothing of HTTP."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from seawall.clock import utc_text
from seawall.errors import NoSuchCopyError, UsageError
from seawall.log.state import Mark
from seawall.operators.task_name import TaskName
from seawall.plugins.earlier import columns, committed_at
from seawall.plugins.scored import score_document
from seawall.plugins.warm import Facts, Judged, WarmRun, WarmRuns
from seawall.verify import evidence
from seawall.verify.matrix import WORST_FIRST, Cell, Dimension, Matrix, Response, Row, Verdict
from seawall.verify.matrix_facts import CopyFacts
from seawall.verify.proofs import OK, Proof
from seawall.verify.responses import responses

if TYPE_CHECKING:
    from seawall.operators.site import AirflowSite

PAGE = 50
DAYS = 14
"""Columns of the time view: thirteen midnights and now."""
_LISTED = 50
"""Marks and proofs that are listed; how many there are is said beside them."""
_CALLS = 10
_STEPS = re.compile(r"(\d{1,19})?(-)?(\d{1,19})?")
RUNS = WarmRuns()


@dataclass(frozen=True, slots=True)
class Filter:
    """Which copies are asked for."""

    verdict: Verdict | None = None
    dimension: Dimension | None = None
    """In which dimension the verdict is looked at; None for the worst of all."""
    first_step: int | None = None
    last_step: int | None = None
    sealing: str | None = None
    """The beginning of an id, where a task's link leads to one checkpoint."""

    @classmethod
    def parse(cls, verdict: str, dimension: str, step: str, sealing: str = "") -> "Filter":
        """From a query. ``step`` is ``1200``, ``1000-2000``, ``1000-`` or ``-2000``; empty texts ask for everything."""
        steps = _STEPS.fullmatch(step.replace(" ", ""))
        if steps is None or step.strip() == "-":
            raise UsageError("this is no step", where=step, do="write 1200, 1000-2000, 1000- or -2000")
        low, dash, high = steps.groups()
        first = int(low) if low else None
        last = int(high) if high else None if dash else first
        return cls(
            _one_of(Verdict, verdict, "verdict") if verdict else None,
            _one_of(Dimension, dimension, "dimension") if dimension else None,
            first,
            last,
            sealing or None,
        )

    def takes(self, copy: Judged) -> bool:
        step = copy.commit.step
        return (
            (self.verdict is None or copy.of(self.dimension) is self.verdict)
            and (self.first_step is None or step >= self.first_step)
            and (self.last_step is None or step <= self.last_step)
            and (self.sealing is None or copy.commit.sealing.startswith(self.sealing))
        )


def _one_of(kind: Any, text: str, name: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"there is no such {name}", where=text, do=f"one of {', '.join(kind)}") from None


def integrity_page(site: "AirflowSite", run: str, wanted: Filter, offset: int, limit: int) -> dict[str, Any]:
    """A run's state and a page of its copies, with the verdicts of the last days in the dimension that is asked for."""
    problems: list[str] = []
    warm = RUNS.run(site, run, problems)
    matching = [copy for copy in warm.copies if wanted.takes(copy)]
    shown = matching[offset : offset + limit]
    moments = columns(warm.at, DAYS)
    rows = warm.rows(shown, moments) if shown else []
    return {
        **_run_document(site, warm, problems),
        **_called_for(warm),
        "filter": {
            "verdict": wanted.verdict,
            "dimension": wanted.dimension,
            "first_step": wanted.first_step,
            "last_step": wanted.last_step,
            "sealing": wanted.sealing,
        },
        "matching": len(matching),
        "offset": offset,
        "limit": limit,
        "moments": [utc_text(moment) for moment in moments],
        "copies": [
            {**_copy_document(*rows[-1][_id(copy)]), "history": [_verdict_of(_row(at, copy), wanted.dimension) for at in rows]}
            for copy in shown
        ],
    }


def copy_page(site: "AirflowSite", run: str, sealing: str, store: str) -> dict[str, Any]:
    """One copy: every verdict with its evidence, what it was on earlier days, and the proofs that say so."""
    problems: list[str] = []
    warm = RUNS.run(site, run, problems)
    found = [copy for copy in warm.copies if (copy.commit.sealing, copy.store.name) == (sealing, store)]
    if not found:
        raise NoSuchCopyError(
            "the run has no such copy",
            where=f"{run} {sealing} in {store}",
            why="it was never committed, or deleted",
            do="go back to the run",
        )
    (copy,) = found
    moments = columns(warm.at, DAYS)
    rows = warm.rows(found, moments)
    facts, row = rows[-1][_id(copy)]
    document = _copy_document(facts, row)
    for dimension, cell in row.cells.items():
        document["cells"][dimension]["evidence"] = dict(cell.evidence)
        document["cells"][dimension]["history"] = [_verdict_of(_row(at, copy), dimension) for at in rows]
    proofs = _proofs(warm.facts, sealing, copy.store.id)
    marks = [mark for mark in warm.facts.view.state.marks.values() if mark.sealing == sealing]
    return {
        "run": run,
        "at": utc_text(warm.at),
        "problems": problems,
        "can_lift": site.has_signing_key("operator"),
        "moments": [utc_text(moment) for moment in moments],
        "copy": document,
        "others": [other.store.name for other in warm.copies if other.commit.sealing == sealing and other.store != copy.store],
        "marks": [_mark_document(warm.facts, mark) for mark in marks],
        "proofs": [_proof_document(warm.facts, proof) for proof in proofs[:_LISTED]],
        "proofs_total": len(proofs),
    }


def _run_document(site: "AirflowSite", warm: WarmRun, problems: list[str]) -> dict[str, Any]:
    facts, state = warm.facts, warm.facts.view.state
    quarantines = [state.marks[op] for ops in state.quarantined.values() for op in ops]
    quarantines.sort(key=lambda mark: mark.seq, reverse=True)
    return {
        "run": state.run,
        "at": utc_text(warm.at),
        "epoch": state.epoch,
        "entries": state.seq,
        "freshness": facts.freshness.value,
        "required_level": facts.required.name,
        "rpo_minutes": site.run(state.run).rpo_minutes,
        "recovery_point": _point(warm),
        "score": _score(site, warm),
        "passed_over": [{"step": commit.step, "sealing": commit.sealing, "why": why} for commit, why in warm.recovery.passed_over[:5]],
        "passed_over_total": len(warm.recovery.passed_over),
        "held": [_mark_document(facts, state.marks[op]) for op in state.held],
        "quarantines": [_mark_document(facts, mark) for mark in quarantines[:_LISTED]],
        "quarantines_total": len(quarantines),
        "can_lift": site.has_signing_key("operator"),
        "unknown_verifiers": dict(facts.known.unknown),
        "problems": [*problems, *_gone(facts)],
        "counts": {"worst" if key is None else key.value: _worst_first(counts) for key, counts in warm.counts.items()},
        "checkpoints": len(state.commits),
        "total": len(warm.copies),
    }


def _gone(facts: Facts) -> list[str]:
    """Copies that were proved whole and of which their store now says that it has none. Proofs do not know that yet."""
    names = {store.id: store.name for store in facts.stores}
    found = []
    for (sealing, store), received in facts.received.items():
        proved = any(proof.store == store and proof.result == OK for proof in facts.proofs.get(sealing, ()))
        if not received.there and proved and not facts.view.state.is_deleted(sealing, store):
            step = facts.view.state.commits[sealing].step
            found.append(f"store {names[store]} says that it has no copy of step {step}, which was proved there; verify it now")
    return found


def _score(site: "AirflowSite", warm: WarmRun) -> dict[str, Any] | None:
    """Of the recovery point; where there is none, of the newest checkpoint."""
    point, ordered = warm.recovery.point, warm.facts.history.ordered
    if not ordered:
        return None
    return score_document(warm, point.commit if point is not None else ordered[-1], site.run(warm.facts.view.run).training_zone)


def _called_for(warm: WarmRun) -> dict[str, Any]:
    """What the copies that failed or are suspect call for; of many the worst and newest, so that it costs what it shows."""
    bad = [copy for verdict in (Verdict.FAILED, Verdict.SUSPECT) for copy in warm.copies if copy.worst is verdict]
    looked = list({copy.commit.sealing: copy.commit for copy in bad[:_LISTED]}.values())
    (rows,) = warm.facts.rows(looked, [warm.at], warm.at) if looked else ({},)
    nobody_looked = Cell(Verdict.UNKNOWN, "a page does not look where training writes")
    matrix = Matrix(warm.facts.view.run, warm.at, tuple(row for _, row in rows.values()), nobody_looked)
    calls = [call for call in responses(matrix) if call.response is not Response.PROVE]
    names = {store.id: store.name for store in warm.facts.stores}
    return {
        "bad": len(bad),
        "calls": [
            {
                "response": call.response.value,
                "dimension": call.dimension.value,
                "sealing": call.sealing,
                "step": call.step,
                "stores": [names[store] for store in call.stores],
                "reason": call.reason,
            }
            for call in calls[:_CALLS]
        ],
        "calls_total": len(calls),
        "calls_looked_at": min(len(bad), _LISTED),
    }


def _worst_first(counts: Mapping[Verdict, int]) -> dict[str, int]:
    return {verdict.value: counts[verdict] for verdict in WORST_FIRST}


def _point(warm: WarmRun) -> dict[str, Any] | None:
    point = warm.recovery.point
    if point is None:
        return None
    names = {store.id: store.name for store in warm.facts.stores}
    (rows,) = warm.facts.rows([point.commit], [warm.at], warm.at)
    good = [copy.state for copy, row in rows.values() if row.store.id in point.stores]
    lapses = [state.lapses_at for state in good if state is not None and state.lapses_at is not None]
    return {
        "step": point.commit.step,
        "sealing": point.commit.sealing,
        "level": point.level.name,
        "stores": [names.get(store, f"store {store[:12]}") for store in point.stores],
        "committed_at": utc_text(committed_at(point.commit)),
        "lapses_at": _text(max(lapses, default=None)),
    }


def _copy_document(copy: CopyFacts, row: Row) -> dict[str, Any]:
    commit = copy.sealing.commit
    return {
        "step": row.step,
        "sealing": row.sealing,
        "store": row.store.name,
        "zone": row.store.zone,
        "medium": row.store.medium,
        "fault_domain": row.store.fault_domain,
        "committed_at": utc_text(committed_at(commit)),
        "level": row.level.name if row.level is not None else None,
        "lapses_at": _text(copy.state.lapses_at if copy.state is not None else None),
        "verdict": row.verdict.value,
        "quarantine": list(row.quarantine),
        "cells": {dimension.value: _cell_document(cell) for dimension, cell in row.cells.items()},
    }


def _cell_document(cell: Cell) -> dict[str, Any]:
    return {
        "verdict": cell.verdict.value,
        "why": cell.why,
        "response": cell.response.value,
        "at": _text(cell.at),
        "lapses_at": _text(cell.lapses_at),
    }


def _mark_document(facts: Facts, mark: Mark) -> dict[str, Any]:
    commit = facts.view.state.commits.get(mark.sealing) or facts.view.state.orphans.get(mark.sealing)
    return {
        "operation": mark.op,
        "kind": "quarantine" if mark.sealing else "hold",
        "sealing": mark.sealing,
        "step": commit.step if commit is not None else None,
        "reason": mark.reason,
        "at": mark.at,
        "entry": mark.seq,
        "lifted": mark.lifted_why if mark.lifted_by else None,
    }


def _proofs(facts: Facts, sealing: str, store: str) -> list[Proof]:
    """Those about the copy, and those about the sealing's content, wherever it was read; newest first."""
    about = [proof for proof in facts.proofs.get(sealing, ()) if proof.store == store or proof.level.of_sealing]
    return sorted(about, key=lambda proof: (proof.at, proof.level), reverse=True)


def _proof_document(facts: Facts, proof: Proof) -> dict[str, Any]:
    names = {store.id: store.name for store in facts.stores}
    task = TaskName.parse(proof.evidence.get(evidence.TASK, ""))
    return {
        "level": proof.level.name,
        "result": proof.result,
        "store": names.get(proof.store, f"store {proof.store[:12]}"),
        "at": proof.at,
        "method": proof.method,
        "evidence": {name: text for name, text in proof.evidence.items() if name != evidence.TASK},
        "task": task._asdict() if task is not None else None,
    }


def _id(copy: Judged) -> tuple[str, str]:
    return copy.commit.sealing, copy.store.id


def _row(rows: Mapping[tuple[str, str], tuple[CopyFacts, Row]], copy: Judged) -> Row | None:
    found = rows.get(_id(copy))
    return found[1] if found is not None else None


def _verdict_of(row: Row | None, dimension: Dimension | None) -> str | None:
    """None before the checkpoint was committed."""
    if row is None:
        return None
    return (row.verdict if dimension is None else row.cells[dimension].verdict).value


def _text(moment: datetime | None) -> str | None:
    return utc_text(moment) if moment is not None else None
