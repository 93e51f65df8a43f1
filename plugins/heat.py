"""Verdicts as marks on a page: a sign and a word beside every colour, so that nothing is said by colour alone."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from seawall.clock import parse_utc

SIGNS = {"ok": "✓", "suspect": "!", "failed": "✕", "stale": "~", "unknown": "?"}
MEANINGS = {
    "ok": "holds now, and a proof says so",
    "suspect": "the bytes are what was signed, and something about them is odd: a person should look",
    "failed": "a check found it wrong, and nothing has made up for that",
    "stale": "it was ok, and the proof has lapsed",
    "unknown": "nobody knows; this counts as not ok",
}
_STEP, _BOX, _HEIGHT = 13, 11, 18
"""Pixels: from one day to the next, and the sides of a day."""


def sign(verdict: str | None) -> str:
    """The sign of a verdict; a dot for a copy that was not there yet."""
    return SIGNS.get(verdict, "?") if verdict is not None else "·"


def css_class(verdict: str | None) -> str:
    """Its class. What is not a verdict looks unknown."""
    return "none" if verdict is None else f"v-{verdict}" if verdict in SIGNS else "v-unknown"


def day(moment: str) -> str:
    """``16 Nov``."""
    found = parse_utc(moment)
    return f"{found.day} {found:%b}"


def told(moments: Sequence[str], verdicts: Sequence[str | None]) -> str:
    """A row of days in words: ``unknown from 16 Nov, ok from 20 Nov``."""
    parts = []
    for verdict, group in groupby(zip(moments, verdicts, strict=True), key=lambda pair: pair[1]):
        parts.append(f"{verdict or 'not there yet'} from {day(next(group)[0])}")
    return ", ".join(parts)


def strip(moments: Sequence[str], verdicts: Sequence[str | None]) -> str:
    """One row of days as a small picture with its words."""
    boxes = []
    for number, verdict in enumerate(verdicts):
        left = number * _STEP
        boxes.append(f'<rect class="{css_class(verdict)}" x="{left}" y="0" width="{_BOX}" height="{_HEIGHT}" rx="2"/>')
        if verdict != "ok":
            middle = left + _BOX / 2
            boxes.append(f'<text class="{css_class(verdict)}" x="{middle}" y="13">{escape(sign(verdict))}</text>')
    width = len(verdicts) * _STEP
    words = escape(told(moments, verdicts))
    return (
        f'<svg class="strip" role="img" aria-label="{words}" width="{width}" height="{_HEIGHT}" viewBox="0 0 {width} {_HEIGHT}">'
        f"<title>{words}</title>{''.join(boxes)}</svg>"
    )


def bar(counts: Mapping[str, int]) -> str:
    """Shares of copies by verdict. It decorates the numbers that stand beside it, so it is hidden from those who hear the page."""
    total, left, parts = sum(counts.values()), 0.0, []
    for verdict, count in counts.items():
        if count:
            # One copy in ten thousand is seen, too.
            width = max(0.8, 100 * count / total)
            parts.append(f'<rect class="{css_class(verdict)}" x="{left:.2f}" width="{width:.2f}" height="10"/>')
            left += width
    sides = f'viewBox="0 0 {max(left, 1):.2f} 10" preserveAspectRatio="none" height="10"'
    return f'<svg class="bar" aria-hidden="true" {sides}>{"".join(parts)}</svg>'
