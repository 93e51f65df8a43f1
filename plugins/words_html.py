"""Words, marks and addresses that the pages about integrity share. All of it is markup; what comes in is escaped."""

from collections.abc import Mapping
from datetime import timedelta
from html import escape
from typing import Any

from seawall.clock import parse_utc
from seawall.plugins.heat import css_class, sign
from seawall.plugins.page import link

NOW, TIME = "now", "time"
"""Views of a run: its copies with all dimensions now, or with one dimension over time."""
DIMENSIONS = {
    "file": "every stored byte is what was signed",
    "structure": "tensors are those of save time, and nearly those of the checkpoint before",
    "timeliness": "the copy was there soon after the commit",
    "chain": "the signed history that the verdicts rest on is whole",
    "values": "the numbers are finite and look like those of the checkpoint before",
    "lock": "nobody can delete the copy before its time",
    "key": "somebody can open it",
}


def moment(text: str | None) -> str:
    """A moment for people, with the exact one behind it."""
    if not text:
        return '<span class="note">–</span>'
    found = parse_utc(text)
    return f'<time datetime="{escape(text)}" title="{escape(text)}">{found.day} {found:%b %Y %H:%M} UTC</time>'


def length(span: timedelta) -> str:
    """A length for people: ``3 h 12 min``."""
    minutes = int(abs(span) / timedelta(minutes=1))
    days, hours = minutes // 1440, minutes // 60
    return f"{minutes} min" if minutes < 120 else f"{hours} h {minutes % 60} min" if hours < 48 else f"{days} days"


def lapse(text: str | None, now: str) -> str:
    """When something lapses, as the time that is left."""
    if not text:
        return '<span class="note">–</span>'
    left = parse_utc(text) - parse_utc(now)
    words = f"in {length(left)}" if left >= timedelta(0) else f"{length(left)} ago"
    return f'<time datetime="{escape(text)}" title="{escape(text)}">{words}</time>'


def tag(verdict: str, text: str) -> str:
    """A word on the verdict's colour, with its sign."""
    return f'<span class="tag {css_class(verdict)}"><b aria-hidden="true">{sign(verdict)}</b> {escape(text)}</span>'


def here(page: dict[str, Any], view: str, **changed: object) -> str:
    """An address of this page with its filter, some of it changed."""
    asked = page["filter"]
    query: dict[str, object] = {
        "run": page["run"],
        "view": "" if view == NOW else view,
        "dimension": asked["dimension"],
        "verdict": asked["verdict"],
        "step": steps_text(asked),
        "sealing": asked["sealing"],
        "offset": page["offset"] or None,
    }
    return link("integrity", **{**query, **changed})


def steps_text(asked: Mapping[str, Any]) -> str:
    """The steps of a filter as a person types them."""
    first, last = asked["first_step"], asked["last_step"]
    if first is None and last is None:
        return ""
    return str(first) if first == last else f"{'' if first is None else first}-{'' if last is None else last}"


def copy_link(page: dict[str, Any], row: dict[str, Any], fragment: str = "") -> str:
    """Address of a copy's own page."""
    address = link("integrity", run=page["run"], sealing=row["sealing"], store=row["store"])
    return f"{address}#{escape(fragment)}" if fragment else address
