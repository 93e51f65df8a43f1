"""What a matrix calls for, gathered and ordered: the most severe first. Pure; whoever acts on a call records that it did."""

from collections.abc import Iterable
from dataclasses import dataclass

from seawall.verify.matrix import Dimension, Matrix, Response, Row, Verdict

SEVEREST_FIRST = (
    Response.INCIDENT,
    Response.QUARANTINE_AND_HOLD,
    Response.QUARANTINE,
    Response.HEAL,
    Response.CATCH_UP,
    Response.REVIEW,
    Response.PROVE,
)


@dataclass(frozen=True, slots=True)
class Call:
    """One thing to do about one checkpoint, or about the run when ``sealing`` is empty."""

    response: Response
    dimension: Dimension
    sealing: str
    step: int | None
    stores: tuple[str, ...]
    """Ids of the stores whose copies it is about; for quarantines and incidents all that called for it."""
    sources: tuple[str, ...]
    """For heal: ids of the stores whose copy is good now, in the order of the rows. Empty otherwise."""
    reason: str
    """``<dimension>: <why>`` of the first cell. A quarantine that bears it is known again when a person has lifted it."""


def responses(matrix: Matrix) -> tuple[Call, ...]:
    """Every response that a cell calls for, one call for each response, dimension and checkpoint.

    A quarantine that stands, or that a person lifted, is not called for again. So whoever answers ``quarantine_and_hold`` places the hold
    first: after a kill between the two the call is still there.
    """
    calls: dict[tuple[Response, Dimension, str], Call] = {}
    good: dict[str, tuple[str, ...]] = {}
    for row in matrix.rows:
        if row.cells[Dimension.FILE].verdict is Verdict.OK:
            good[row.sealing] = (*good.get(row.sealing, ()), row.store.id)
    for row in matrix.rows:
        for dimension, response, why in _wanted(row):
            key = (response, dimension, row.sealing)
            known = calls.get(key)
            sources = good.get(row.sealing, ()) if response is Response.HEAL else ()
            stores = (*known.stores, row.store.id) if known else (row.store.id,)
            reason = known.reason if known else f"{dimension}: {why}"
            calls[key] = Call(response, dimension, row.sealing, row.step, stores, sources, reason)
    if matrix.run_cell.response is not Response.NONE:
        run = Call(matrix.run_cell.response, Dimension.TIMELINESS, "", None, (), (), f"{Dimension.TIMELINESS}: {matrix.run_cell.why}")
        calls[(run.response, run.dimension, "")] = run
    order = list(Dimension)
    return tuple(
        sorted(calls.values(), key=lambda call: (SEVEREST_FIRST.index(call.response), -(call.step or 0), order.index(call.dimension)))
    )


def _wanted(row: Row) -> Iterable[tuple[Dimension, Response, str]]:
    for dimension, cell in row.cells.items():
        if cell.response is not Response.NONE and not _is_answered(row, dimension, cell.response):
            yield dimension, cell.response, cell.why


def _is_answered(row: Row, dimension: Dimension, response: Response) -> bool:
    """Whether a quarantine for this stands, or a person lifted it: without the second, machine and person would undo each other's work."""
    if response not in (Response.QUARANTINE, Response.QUARANTINE_AND_HOLD):
        return False
    if response is Response.QUARANTINE and row.quarantine:
        return True
    return any(reason.startswith(f"{dimension}: ") for reason in (*row.quarantine, *row.lifted))
