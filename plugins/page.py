"""The page: runs, and the checkpoints of one, as plain HTML. Everything that is not markup here is escaped."""

from html import escape
from typing import Any
from urllib.parse import quote

PAGE = 20
_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 1.5rem; color: #1d2733; background: #fff }
table { border-collapse: collapse; margin: .75rem 0 } th, td { text-align: left; padding: .3rem .8rem; border-bottom: 1px solid #d9e0e6 }
code { font-size: 12px } a { color: #0b5c8a } .ok { color: #14713d } .bad { color: #a61b1b; font-weight: 600 } .old { color: #7a5200 }
tr:target { background: #eef6fb } .note { color: #56636f }
@media (prefers-color-scheme: dark) {
  body { color: #dde4ea; background: #14191e } th, td { border-color: #333d46 } a { color: #79bde6 } .ok { color: #6fcf97 }
  .bad { color: #ff8a80 } .old { color: #e6b450 } tr:target { background: #1d2a35 } .note { color: #9aa7b3 }
}
"""
_CLASS = {"proved": "ok", "failed": "bad", "lapsed": "old"}


def document(body: str) -> str:
    """A whole page around ``body``, which is markup."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Seawall</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def runs_body(page: dict[str, Any]) -> str:
    """The list of runs."""
    rows = "".join(
        f'<tr><td><a href="?run={quote(run["run"], safe="")}">{escape(run["run"])}</a></td><td>{escape(", ".join(run["copies"]))}</td>'
        f"<td>{escape(run['required_level'])}</td><td>{run['rpo_minutes']} min</td></tr>"
        for run in page["runs"]
    )
    more = _more(page["offset"] + len(page["runs"]), page["total"], "")
    return f"<h1>Runs</h1>{_table(('Run', 'Copies in', 'Recovery point needs', 'RPO'), rows)}{more}"


def copies_body(page: dict[str, Any]) -> str:
    """The checkpoints of one run."""
    stores = list(dict.fromkeys(name for row in page["checkpoints"] for name in row["copies"]))
    rows = "".join(_row(row, stores) for row in page["checkpoints"])
    point = page["recovery_point"]
    said = (
        f"Recovery point: step {point['step']}, proved to {escape(point['level'])}, in {escape(', '.join(point['stores']))}."
        if point
        else f"No recovery point: no checkpoint is proved to {escape(page['required_level'])}."
    )
    notes = [f"On hold: {reason}" for reason in page["held"]] + page["problems"]
    notes += [f"What verifier {verifier} said is unknown: {why}" for verifier, why in page["unknown_verifiers"].items()]
    listed = "".join(f'<p class="bad">{escape(note)}</p>' for note in notes)
    more = _more(page["offset"] + len(page["checkpoints"]), page["total"], f"run={quote(page['run'], safe='')}&amp;")
    return (
        f'<p><a href="?">All runs</a></p><h1>{escape(page["run"])}</h1><p class="{"ok" if point else "bad"}">{said}</p>'
        f'<p class="note">Epoch {page["epoch"]}, freshness {escape(page["freshness"])}.</p>{listed}'
        f"{_table(('Step', 'Sealing', 'Committed', *stores, ''), rows)}{more}"
    )


def error_body(text: str) -> str:
    """What went wrong."""
    return f'<p><a href="?">All runs</a></p><p class="bad">{escape(text)}</p>'


def _row(row: dict[str, Any], stores: list[str]) -> str:
    cells = "".join(_cell(row["copies"].get(name)) for name in stores)
    notes = [*(f"quarantined: {reason}" for reason in row["quarantine"]), *([f"orphan: {row['orphan']}"] if row["orphan"] else [])]
    notes = notes or ([row["why_not"]] if row["why_not"] else [])
    mark = "recovery point" if row["recovery_point"] else "; ".join(notes)
    return (
        f'<tr id="{escape(row["sealing"])}"><td>{row["step"]}</td><td><code>{escape(row["sealing"][:12])}</code></td>'
        f"<td>{escape(row['committed_at'][:19])}Z</td>{cells}<td>{escape(mark)}</td></tr>"
    )


def _cell(copy: dict[str, Any] | None) -> str:
    if copy is None:
        return "<td></td>"
    text = copy["state"] if copy["level"] is None else f"{copy['level']} {copy['state']}"
    return f'<td class="{_CLASS.get(copy["state"], "note")}">{escape(text)}</td>'


def _table(heads: tuple[str, ...], rows: str) -> str:
    if not rows:
        return '<p class="note">None yet.</p>'
    return f"<table><thead><tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr></thead><tbody>{rows}</tbody></table>"


def _more(shown: int, total: int, query: str) -> str:
    return f'<p><a href="?{query}offset={shown}">{total - shown} more</a></p>' if shown < total else ""
