"""The integrity page of a run as HTML, from its document. What is not markup here is escaped."""

from collections.abc import Sequence
from html import escape
from typing import Any

from seawall.plugins.cards_html import calls_list, count_card, log_card, point_card, score_card
from seawall.plugins.heat import MEANINGS, bar, css_class, day, sign, strip
from seawall.plugins.marks_html import marks_list
from seawall.plugins.page import link
from seawall.plugins.words_html import DIMENSIONS, NOW, TIME, copy_link, here, lapse, moment, steps_text, tag
from seawall.verify.matrix import WORST_FIRST, Dimension


def integrity_body(page: dict[str, Any], view: str, can_lift: str, done: str = "") -> str:
    """The page. ``can_lift`` says why this person cannot lift here, and is empty for one who can; ``done`` is what was just done."""
    copies = _time_table(page) if view == TIME else _now_table(page, view)
    return "".join(
        [
            _head(page, view),
            f'<div class="notice good-notice" role="status">{escape(done)}</div>' if done else "",
            *_notices(page),
            f'<div class="cards">{point_card(page)}{score_card(page)}{count_card(page, view)}{log_card(page)}</div>',
            calls_list(page),
            _summary(page, view),
            f'<h2 id="copies">Copies</h2>{_filter_form(page, view)}{copies}{_pager(page, view)}',
            marks_list(page, can_lift),
            _legend(),
        ]
    )


def _head(page: dict[str, Any], view: str) -> str:
    tabs = "".join(
        f'<a href="{here(page, name)}"{" aria-current=page" if name == view else ""}>{text}</a>'
        for name, text in ((NOW, "Now"), (TIME, "Over time"))
    )
    return (
        f'<div class="head"><a href="{link("integrity", all=1)}">All runs</a><h1>Integrity of {escape(page["run"])}</h1>'
        f'<nav class="tabs" aria-label="View">{tabs}</nav><span class="note">judged {moment(page["at"])}</span></div>'
    )


def _notices(page: dict[str, Any]) -> list[str]:
    said = [f"{text[:1].upper()}{text[1:]}. Copies are judged by the proofs that there are." for text in page["problems"]]
    said += [
        f"Proofs of verifier {verifier[:12]} count for nothing: {why}. Until that is cleared up, no success counts and every failure does."
        for verifier, why in page["unknown_verifiers"].items()
    ]
    if page["freshness"] != "proved":
        said.append("The log was compared with no other memory, neither a mirror nor this host's own: it may be an old state.")
    return [f'<div class="notice bad-notice">{escape(text)}</div>' for text in said]


def _summary(page: dict[str, Any], view: str) -> str:
    """Dimensions with how many copies have each verdict."""
    heads = "".join(f'<th scope="col">{verdict.value}</th>' for verdict in WORST_FIRST)
    rows = []
    for dimension in Dimension:
        counts = page["counts"][dimension.value]
        cells = "".join(
            f'<td class="cell"><a class="{css_class(verdict)}" aria-label="{dimension.value}, {verdict}: {count:,} copies" '
            f'href="{here(page, view, dimension=dimension.value, verdict=verdict, offset=None)}#copies">'
            f'<b aria-hidden="true">{sign(verdict)}</b> {count:,}</a></td>'
            if count
            else '<td class="note cell"><span class="hidden">none</span></td>'
            for verdict, count in counts.items()
        )
        rows.append(f'<tr><th scope="row" title="{DIMENSIONS[dimension.value]}">{dimension.value}</th><td>{bar(counts)}</td>{cells}</tr>')
    return (
        '<h2>Dimensions</h2><div class="scroll"><table data-grid><caption class="hidden">How many copies have each verdict in each '
        f'dimension</caption><thead><tr><th scope="col">dimension</th><th scope="col">copies</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _filter_form(page: dict[str, Any], view: str) -> str:
    asked = page["filter"]
    keep = f'<input type="hidden" name="run" value="{escape(page["run"])}">' + (
        f'<input type="hidden" name="view" value="{TIME}">' if view == TIME else ""
    )
    dimension = _options("dimension", "worst of all", [one.value for one in Dimension], asked["dimension"])
    verdict = _options("verdict", "any", [one.value for one in WORST_FIRST], asked["verdict"])
    step = escape(steps_text(asked))
    is_filtered = any(value is not None for value in asked.values())
    clear = f'<a href="{link("integrity", run=page["run"], view="" if view == NOW else view)}#copies">All copies</a>' if is_filtered else ""
    return (
        f'<form class="filter" method="get" action="integrity#copies">{keep}<label>Dimension {dimension}</label>'
        f'<label>Verdict {verdict}</label><label>Step <input name="step" value="{step}" placeholder="1200 or 1000-2000" size="18"></label>'
        f"<button>Show</button>{clear}</form>"
    )


def _options(name: str, every: str, values: Sequence[str], chosen: str | None) -> str:
    listed = "".join(f"<option{' selected' if value == chosen else ''}>{value}</option>" for value in values)
    return f'<select name="{name}"><option value="">{every}</option>{listed}</select>'


def _row_head(page: dict[str, Any], row: dict[str, Any]) -> str:
    mark = f" {tag('suspect', 'quarantined')}" if row["quarantine"] else ""
    return f'<th scope="row"><a href="{copy_link(page, row)}">{row["step"]}</a>{mark}</th><td>{escape(row["store"])}</td>'


def _now_table(page: dict[str, Any], view: str) -> str:
    if not page["copies"]:
        return _nothing(page)
    rows = []
    for row in page["copies"]:
        cells = []
        for name, cell in row["cells"].items():
            verdict = cell["verdict"]
            word = "" if verdict == "ok" else f" {escape(verdict)}"
            label = escape(f"{name}: {verdict}. {cell['why']}")
            cells.append(
                f'<td class="cell"><a class="{css_class(verdict)}" href="{copy_link(page, row, name)}" '
                f'aria-label="{label}" title="{label}">'
                f"<b>{sign(verdict)}</b>{word}</a></td>"
            )
        level = f"<strong>{escape(row['level'])}</strong>" if row["level"] else '<span class="note">none</span>'
        rows.append(
            f"<tr>{_row_head(page, row)}<td>{level}</td><td>{lapse(row['lapses_at'], page['at'])}</td>{''.join(cells)}"
            f"<td>{strip(page['moments'], row['history'])}</td></tr>"
        )
    heads = "".join(f'<th scope="col" title="{DIMENSIONS[one.value]}">{one.value}</th>' for one in Dimension)
    of = page["filter"]["dimension"] or "worst"
    days = f"{of}, {day(page['moments'][0])} to now"
    return (
        '<div class="scroll"><table data-grid><caption class="hidden">Copies, newest checkpoint first, and their verdicts now</caption>'
        f'<thead><tr><th scope="col">step</th><th scope="col">store</th><th scope="col">level</th><th scope="col">lapses</th>{heads}'
        f'<th scope="col">{days}</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _time_table(page: dict[str, Any]) -> str:
    if not page["copies"]:
        return _nothing(page)
    of = page["filter"]["dimension"] or "worst of all dimensions"
    names = [*(day(text) for text in page["moments"][:-1]), "now"]
    rows = []
    for row in page["copies"]:
        cells = []
        for name, verdict in zip(names, row["history"], strict=True):
            label = escape(f"{name}: {verdict or 'not there yet'}")
            cells.append(
                f'<td class="cell"><a class="{css_class(verdict)}" href="{copy_link(page, row, page["filter"]["dimension"] or "")}" '
                f'aria-label="{label}" title="{label}"><b>{sign(verdict)}</b></a></td>'
            )
        rows.append(f"<tr>{_row_head(page, row)}{''.join(cells)}</tr>")
    heads = "".join(
        f'<th scope="col"><time datetime="{text}" title="{text}">{name}</time></th>'
        for name, text in zip(names, page["moments"], strict=True)
    )
    return (
        f'<p class="note">Each column is 00:00 UTC of its day, the last one now: <strong>{escape(of)}</strong>, judged by the rules of '
        "today from what log and proofs say was known then. It may look worse than it looked that day, never better.</p>"
        '<div class="scroll days"><table data-grid><caption class="hidden">Copies, newest checkpoint first, and their verdicts on earlier '
        f'days</caption><thead><tr><th scope="col">step</th><th scope="col">store</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _nothing(page: dict[str, Any]) -> str:
    if page["total"]:
        return '<p class="notice">No copy is like that.</p>'
    return (
        '<p class="notice">Nothing is committed yet. A checkpoint appears here when a sync has put it into the log: '
        f"<code>seawall sync {escape(page['run'])}</code>, or the DAG seawall_sync.</p>"
    )


def _pager(page: dict[str, Any], view: str) -> str:
    first, total, size = page["offset"], page["matching"], page["limit"]
    last = first + len(page["copies"])
    if not total or (first == 0 and last >= total):
        return f'<p class="note">{total:,} copies</p>' if total else ""
    ends = [("First", 0, ""), ("Previous", max(0, first - size), "prev")] if first else []
    if last < total:
        ends += [("Next", last, "next"), ("Last", (total - 1) // size * size, "")]
    links = "".join(
        f'<a href="{here(page, view, offset=offset or None)}#copies"{f" rel={rel}" if rel else ""}>{text}</a>' for text, offset, rel in ends
    )
    return f'<nav class="pager" aria-label="Pages"><span class="note">{first + 1:,} to {last:,} of {total:,} copies</span>{links}</nav>'


def _legend() -> str:
    verdicts = "".join(f"{tag(name, name)}<span>{meaning}</span>" for name, meaning in MEANINGS.items())
    dimensions = "".join(f"<dt>{name}</dt><dd>{meaning}</dd>" for name, meaning in DIMENSIONS.items())
    return (
        f'<h2>How to read this</h2><div class="legend">{verdicts}</div><dl>{dimensions}</dl>'
        '<p class="note">Arrow keys move in a table. This page reads the log and the proofs, and asks the stores for the copies of the '
        "newest three checkpoints: of an older one that nobody proved, it knows nothing.</p>"
    )
