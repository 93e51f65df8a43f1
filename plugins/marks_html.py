"""Holds and quarantines as HTML, with the form that lifts one."""

from html import escape
from typing import Any

from seawall.clock import parse_utc
from seawall.plugins.page import link

MAX_REASON = 800
"""Characters: what the log takes, less what is added about who asked."""

_HEAD = '<h2 id="marks">Holds and quarantines</h2>'


def marks_list(page: dict[str, Any], can_lift: str) -> str:
    """What stands of a run. ``can_lift`` is why this person cannot lift here; empty for one who can."""
    marks = [*page["held"], *page["quarantines"]]
    if not marks:
        return f'{_HEAD}<p class="note">None. Nothing keeps a proved checkpoint from being a recovery point.</p>'
    more = page["quarantines_total"] - len(page["quarantines"])
    left = f'<p class="note">And {more:,} older quarantines: <code>seawall log show {escape(page["run"])}</code>.</p>' if more > 0 else ""
    return f"{_HEAD}{_why_not(can_lift)}{_list(page['run'], marks, can_lift)}{left}"


def marks_of_checkpoint(page: dict[str, Any], can_lift: str) -> str:
    """What was said about one checkpoint, what was lifted included."""
    if not page["marks"]:
        return ""
    return f'<h2 id="marks">Quarantines of this checkpoint</h2>{_why_not(can_lift)}{_list(page["run"], page["marks"], can_lift)}'


def _why_not(can_lift: str) -> str:
    return f'<p class="note">{escape(can_lift)}</p>' if can_lift else ""


def _list(run: str, marks: list[dict[str, Any]], can_lift: str) -> str:
    return f'<ul class="marks">{"".join(_item(run, mark, can_lift) for mark in marks)}</ul>'


def _item(run: str, mark: dict[str, Any], can_lift: str) -> str:
    found = parse_utc(mark["at"])
    what = "Hold of the run" if mark["kind"] == "hold" else f"Quarantine of step {mark['step']}"
    effect = "nothing is deleted or promoted; sync goes on" if mark["kind"] == "hold" else "it is no recovery point"
    head = (
        f"<p><strong>{what}</strong>: {effect}. "
        f'<span class="note">{found.day} {found:%b %Y %H:%M} UTC, entry {mark["entry"]}, '
        f"<code>{escape(mark['operation'][:12])}</code></span></p>"
        f"<p>{escape(mark['reason'])}</p>"
    )
    if mark["lifted"] is not None:
        return f'<li>{head}<p class="ok">✓ lifted: {escape(mark["lifted"])}</p></li>'
    return f"<li>{head}{'' if can_lift else _form(run, mark)}</li>"


def _form(run: str, mark: dict[str, Any]) -> str:
    return (
        f'<form class="lift" method="post" action="{link("integrity/lift")}">'
        f'<input type="hidden" name="run" value="{escape(run)}"><input type="hidden" name="operation" value="{escape(mark["operation"])}">'
        f'<label>Why it can be lifted; this is signed into the log with your name <input name="reason" required maxlength="{MAX_REASON}" '
        f'autocomplete="off"></label><button>Lift</button></form>'
    )
