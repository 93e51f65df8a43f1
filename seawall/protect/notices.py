"""What people are told of a matrix and of what was done about it. Pure: alerts that stand or are over, and a message for the chat.

An alert is about a run, a store and a dimension, whatever checkpoints are behind it, so that it ends when the last of them is healed and
proved. The same matrix gives the same alerts: telling them again says nothing new.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from seawall.alerts.alert import Alert, Message, Severity
from seawall.protect.respond import DONE, FAILED, Answer, Responded
from seawall.verify.matrix import Cell, Dimension, Matrix, Response, Row, Verdict

NAMES: Mapping[Dimension, tuple[str, Severity]] = {
    Dimension.FILE: ("SeawallCopyDamaged", "critical"),
    Dimension.STRUCTURE: ("SeawallStructureSuspect", "critical"),
    Dimension.TIMELINESS: ("SeawallCopyLate", "warning"),
    Dimension.CHAIN: ("SeawallProofsMissing", "critical"),
    Dimension.VALUES: ("SeawallValuesSuspect", "warning"),
    Dimension.LOCK: ("SeawallLockMissing", "warning"),
    Dimension.KEY: ("SeawallKeyMissing", "critical"),
}
"""Dimension → ``alertname`` and severity. One severity a name: a label that changed would make another alert."""
NO_GOOD_COPY = "SeawallNoGoodCopy"
RUN_BEHIND = "SeawallRunBehind"
_SHOWN_STEPS = 8


def alerts_of(matrix: Matrix, now: datetime, link: str = "") -> list[Alert]:
    """One alert for each store and dimension, one for the run's lag and one for a checkpoint without a good copy; those that do not stand
    are over at ``now``, which ends them where they did."""
    stores = {row.store.id: row.store.name for row in matrix.rows}
    alerts = []
    for store, name in stores.items():
        for dimension, (alertname, severity) in NAMES.items():
            cells = [(row, row.cells[dimension]) for row in matrix.rows if row.store.id == store]
            labels = {"run": matrix.run, "store": name, "dimension": dimension.value}
            alerts.append(_alert(alertname, severity, labels, [(row, cell) for row, cell in cells if _stands(cell)], now, link))
    lost = [(row, cell) for row in matrix.rows for cell in row.cells.values() if cell.response is Response.INCIDENT]
    alerts.append(_alert(NO_GOOD_COPY, "critical", {"run": matrix.run}, lost, now, link))
    late = matrix.run_cell
    behind = late.verdict is Verdict.FAILED
    summary = f"{matrix.run}: {late.why}" if behind else f"{matrix.run}: the newest checkpoint is committed"
    labels = {"run": matrix.run, "dimension": Dimension.TIMELINESS.value}
    alerts.append(Alert(RUN_BEHIND, "critical", summary, late.at or now, labels, "", None if behind else now, link))
    return alerts


def _stands(cell: Cell) -> bool:
    return cell.verdict in (Verdict.FAILED, Verdict.SUSPECT) or cell.response in (Response.REVIEW, Response.INCIDENT)


def _alert(
    name: str, severity: Severity, labels: Mapping[str, str], standing: Sequence[tuple[Row, Cell]], now: datetime, link: str
) -> Alert:
    where = f"{labels['run']}{' in ' + labels['store'] if 'store' in labels else ''}"
    if not standing:
        return Alert(name, severity, f"{where}: over", now, labels, "", now, link)
    steps = sorted({row.step for row, _ in standing}, reverse=True)
    shown = ", ".join(str(step) for step in steps[:_SHOWN_STEPS]) + (f" and {len(steps) - _SHOWN_STEPS} more" if len(steps) > 8 else "")
    began = min((cell.at for _, cell in standing if cell.at is not None), default=now)
    summary = f"{where}: {standing[0][1].why}"
    return Alert(name, severity, summary, min(began, now), labels, f"step{'s' if len(steps) > 1 else ''} {shown}", None, link)


def message_of(done: Responded, link: str = "") -> Message | None:
    """What was done, and what could not be; None when there is nothing that a person should read now."""
    lines = [line for answer in done.answers for line in _lines(answer)]
    if not lines:
        return None
    failed = any(answer.status == FAILED for answer in done.answers) or bool(done.incidents)
    title = f"{done.view.run}: {'no safe way was found' if done.incidents else 'a response failed' if failed else 'responded to findings'}"
    return Message(title, tuple(lines), link)


def _lines(answer: Answer) -> Iterator[str]:
    if answer.status not in (DONE, FAILED):
        return
    call = answer.call
    about = f"step {call.step}" if call.step is not None else "the run"
    where = f" in {answer.store}" if answer.store else ""
    yield f"**{call.response.value}** {about}{where}: {answer.status}. {answer.detail}"
    yield f"because of {call.reason}"
    for repair in answer.healed.repairs[:_SHOWN_STEPS] if answer.healed is not None else ():
        records = f" record {', '.join(str(number) for number in repair.records[:_SHOWN_STEPS])}" if repair.records else ""
        yield f"- {repair.object}{records}{' from ' + ', '.join(repair.sources) if repair.sources else ''}"
