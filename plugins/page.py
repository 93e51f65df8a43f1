"""Pages as plain HTML: what every page has, and the pages of runs and of the copies of one. What is not markup here is escaped."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

from seawall.errors import BusyError, KeyMissingError, NoSuchCopyError, SeawallError, UsageError

PAGE = 20
_CLASS = {"proved": "ok", "failed": "bad", "lapsed": "old"}


@cache
def _style() -> str:
    text = files("seawall.plugins").joinpath("integrity.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/\s*", "", text, flags=re.DOTALL)


@cache
def _script() -> str:
    return files("seawall.plugins").joinpath("integrity.js").read_text(encoding="utf-8")


@cache
def content_policy() -> str:
    """What a browser may do with a page: this style and this script by their digests, forms to this server, frames of this server."""
    style, script = (b64encode(sha256(text.encode()).digest()).decode() for text in (_style(), _script()))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "frame-ancestors 'self'; base-uri 'none'; form-action 'self'"
    )


def document(body: str, title: str = "Seawall") -> str:
    """A whole page around ``body``, which is markup."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_style()}</style><script>{_script()}</script></head><body><main>{body}</main></body></html>"
    )


def address(path: str, **query: object) -> str:
    """An address, without the parts of its query that are None or empty."""
    given = {name: str(value) for name, value in query.items() if value is not None and value != ""}
    return f"{path}?{urlencode(given)}" if given else path


def link(path: str, **query: object) -> str:
    """:func:`address`, escaped for an attribute."""
    return escape(address(path, **query))


def runs_body(page: dict[str, Any], path: str = "") -> str:
    """The list of runs. ``path`` is where a run's name leads."""
    rows = "".join(
        f'<tr><td><a href="{path}?run={quote(run["run"], safe="")}">{escape(run["run"])}</a></td>'
        f"<td>{escape(', '.join(run['copies']))}</td><td>{escape(run['required_level'])}</td><td>{run['rpo_minutes']} min</td></tr>"
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
        f'<div class="head"><a href="?">All runs</a><h1>{escape(page["run"])}</h1>'
        f'<a href="{link("integrity", run=page["run"])}">Integrity</a></div><p class="{"ok" if point else "bad"}">{said}</p>'
        f'<p class="note">Epoch {page["epoch"]}, freshness {escape(page["freshness"])}.</p>{listed}'
        f"{_table(('Step', 'Sealing', 'Committed', *stores, ''), rows)}{more}"
    )


def error_body(text: str, back: str = "?") -> str:
    """What went wrong. ``back`` is markup-safe."""
    return f'<p><a href="{back}">All runs</a></p><p class="bad" role="alert">{escape(text)}</p>'


def failure_body(error: SeawallError, back: str = "?") -> str:
    """What the library could not do: what, where, why, and what to do next."""
    facts = (("Where", error.where), ("Why", error.why), ("Next", error.do), ("Kind", f"{type(error).__name__}, {error.outcome}"))
    listed = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts if text)
    asked_wrongly = isinstance(error, UsageError | NoSuchCopyError | KeyMissingError | BusyError)
    unknown = "" if asked_wrongly else "Nothing is known about any copy until this works: that is unknown, and neither good nor bad."
    return (
        f'<p><a href="{back}">All runs</a></p><div class="notice bad-notice" role="alert">'
        f"<p><strong>{escape(error.what[:1].upper() + error.what[1:])}</strong></p>"
        f'<dl>{listed}</dl></div><p class="note">{unknown}</p>'
    )


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
