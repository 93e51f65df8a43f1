"""``seawall matrix``: every copy of a run in seven dimensions, and what that calls for."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, JsonOption, RunArgument
from seawall.cli.output import console, emit, printable, say, warn
from seawall.errors import CorruptError, IncompleteError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.cli.site import Site
    from seawall.verify.matrix import Cell, Matrix, Row
    from seawall.verify.responses import Call

_NEWEST = 10
_STYLES = {"ok": "green", "suspect": "yellow", "failed": "bold red", "stale": "yellow", "unknown": "dim"}


def matrix(
    run: RunArgument,
    every: Annotated[bool, typer.Option("--all", help="All checkpoints, instead of the newest 10.")] = False,
    step: Annotated[int | None, typer.Option("--step", help="Only the checkpoint of this step.", min=0)] = None,
    at: Annotated[str | None, typer.Option("--at", help="As it was known then: 2026-11-29, or 2026-11-29T03:00:00Z.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Judge every copy from log and proofs: file, structure, timeliness, chain, values, lock, key. Reads no copies.

    Exit 4 when a cell failed or is suspect, 3 when one is stale or unknown, a copy is late, or a store does not answer; 0 when all are ok.
    """
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.verify.responses import responses

    moment = None if at is None else _moment(at)
    site = Site(find_config(config))
    site.run(run)
    judged, silent = _judged(site, run, moment)
    site.close()
    rows = _chosen(judged.rows, step, every)
    shown = {(row.sealing, row.store.id) for row in rows}
    code = _code(judged, rows) or (IncompleteError.exit_code if silent else 0)
    calls = [call for call in responses(judged) if not call.sealing or any((call.sealing, store) in shown for store in call.stores)]
    if json:
        emit({**_document(judged, rows, calls, code), "silent": silent})
        return code
    _show(judged, rows, len(judged.rows) - len(rows) if step is None else 0)
    _show_calls(judged, calls)
    for name in silent:
        say(f"store {name} did not answer: of its copies nothing is known now")
    return code


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError("this is no moment", where=text, why=str(error), do="write 2026-11-29 or 2026-11-29T03:00:00Z") from None


def _judged(site: "Site", run: str, moment: datetime | None) -> "tuple[Matrix, dict[str, str]]":
    """The matrix, and the stores that it has no row of because they did not answer, with the reason."""
    if moment is None:
        from seawall.cli.judged_run import judged_run

        found = judged_run(site, run, warn)
        return found.matrix, found.silent
    return _known_then(site, run, moment), {}


def _known_then(site: "Site", run: str, moment: datetime) -> "Matrix":
    """From the log and the proofs that were there at ``moment``. No store is asked what it has, because it would say what it has now."""
    from seawall.audit.history import entries_at, proofs_known, read_entries
    from seawall.cli.store_facts import store_facts
    from seawall.log.floor import Freshness
    from seawall.log.fold import fold_all
    from seawall.log.state import RunState
    from seawall.verify.cells import MatrixPolicy
    from seawall.verify.folded_facts import Asked, fold_facts
    from seawall.verify.judge import judge

    view, report = site.view(run)
    entries = read_entries(site.coordination.store, view)
    state = fold_all(RunState(run, site.trust_root), entries[: entries_at(entries, moment)])
    known = proofs_known(site.coordination.store, view, state)
    stores = []
    for name in site.run(run).copies:
        stores.append(store_facts(site, run, name, site.place(name).id))
    ages = site.config.verify.policy({store.id: store.medium for store in stores})
    asked = Asked(fresh=report.freshness is Freshness.PROVED)
    policy = MatrixPolicy(ages, site.config.verify.matrix)
    return judge(fold_facts(state, known.proofs, stores, moment, ages, asked), moment, policy)


def _chosen(rows: "Sequence[Row]", step: int | None, every: bool) -> "list[Row]":
    if step is not None:
        found = [row for row in rows if row.step == step]
        if not found:
            raise UsageError("the run has no copy of such a checkpoint", where=f"step {step}", do="`seawall copies` lists them")
        return found
    newest = list(dict.fromkeys(row.sealing for row in rows))[:_NEWEST]
    return [row for row in rows if every or row.sealing in newest]


def _code(judged: "Matrix", rows: "Sequence[Row]") -> int:
    from seawall.verify.matrix import Dimension, Verdict

    bad = {Verdict.FAILED, Verdict.SUSPECT}
    cells = [(dimension, cell.verdict) for row in rows for dimension, cell in row.cells.items()]
    if any(verdict in bad and dimension is not Dimension.TIMELINESS for dimension, verdict in cells):
        return CorruptError.exit_code
    late = judged.run_cell.verdict is Verdict.FAILED
    return IncompleteError.exit_code if late or any(verdict is not Verdict.OK for _, verdict in cells) else 0


def _document(judged: "Matrix", rows: "Sequence[Row]", calls: "Sequence[Call]", code: int) -> dict[str, Any]:
    from seawall.clock import utc_text

    names = {row.store.id: row.store.name for row in judged.rows}
    return {
        "run": judged.run,
        "at": utc_text(judged.at),
        "timeliness": _cell(judged.run_cell),
        "held": list(judged.held),
        "copies": [
            {
                "step": row.step,
                "sealing": row.sealing,
                "store": row.store.name,
                "level": row.level.name if row.level is not None else None,
                "verdict": row.verdict.value,
                "quarantine": list(row.quarantine),
                "cells": {dimension.value: _cell(cell) for dimension, cell in row.cells.items()},
            }
            for row in rows
        ],
        "calls": [
            {
                "response": call.response.value,
                "dimension": call.dimension.value,
                "step": call.step,
                "sealing": call.sealing or None,
                "stores": [names[store] for store in call.stores],
                "sources": [names[store] for store in call.sources],
                "reason": call.reason,
            }
            for call in calls
        ],
        "exit_code": code,
    }


def _cell(cell: "Cell") -> dict[str, Any]:
    from seawall.clock import utc_text

    return {
        "verdict": cell.verdict.value,
        "why": cell.why,
        "response": cell.response.value,
        "at": None if cell.at is None else utc_text(cell.at),
        "lapses_at": None if cell.lapses_at is None else utc_text(cell.lapses_at),
        "evidence": dict(cell.evidence),
    }


def _show(judged: "Matrix", rows: "Sequence[Row]", older: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from seawall.verify.matrix import Dimension

    for reason in judged.held:
        say(f"run {judged.run} is on hold: {reason}")
    if not rows:
        say(f"run {judged.run} has no copy yet")
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("step", "copy", "level", *Dimension):
            table.add_column(str(heading), justify="right" if heading == "step" else "left")
        for row in rows:
            verdicts = [Text(cell.verdict.value, _STYLES[cell.verdict.value]) for cell in row.cells.values()]
            mark = " (quarantined)" if row.quarantine else ""
            table.add_row(f"{row.step}", printable(row.store.name) + mark, row.level.name if row.level is not None else "-", *verdicts)
        console().print(table)
    if older > 0:
        say(f"{older} copies of older checkpoints; --all shows them")
    say(f"run: {judged.run_cell.verdict.value}, {judged.run_cell.why}")


def _show_calls(judged: "Matrix", calls: "Sequence[Call]") -> None:
    """The cells that call for something, with the reason; what only needs another look comes together at the end."""
    from seawall.verify.matrix import Response

    names = {row.store.id: row.store.name for row in judged.rows}
    acts = [call for call in calls if call.response is not Response.PROVE]
    for call in acts:
        where = f"step {call.step} in {', '.join(names[store] for store in call.stores)}" if call.sealing else "the run"
        sources = f" from {', '.join(names[store] for store in call.sources)}" if call.sources else ""
        say(f"{call.response.value.replace('_', ' ')}{sources}: {where}: {call.reason}")
    if acts:
        say(f"`seawall respond {judged.run}` does what can be done without a person; docs/reading-the-matrix.md says what each word means")
    unread = {(call.sealing, store) for call in calls if call.response is Response.PROVE for store in call.stores}
    if unread:
        say(f"{len(unread)} copies have cells that another look would settle: `seawall verify {judged.run} --due`")
