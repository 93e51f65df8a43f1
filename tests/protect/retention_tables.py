"""Reads the tables of tests/protect/retention: a heading, lines ``name: value``, and a table of checkpoints with what is expected of each.

``stores: a=s3/x c=disk/y`` names medium and fault domain. ``age`` is in days before ``now``. A copy is a level, with ``lapsed``,
``failed``, ``locked`` or ``silent`` behind it, or ``-`` for none. ``expect`` is keep, KEEP (a rule counts on it) or delete.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from seawall.protect.retention_facts import Copy, Kind, Point, RunFacts, Site
from seawall.protect.retention_settings import RetentionSettings
from seawall.verify.levels import Level

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
DEFAULT_STORES = "a=s3/x c=disk/y"


@dataclass(frozen=True)
class Expected:
    """What a row says of its checkpoint."""

    verdict: str
    because: str


@dataclass(frozen=True)
class Table:
    """One table."""

    title: str
    facts: RunFacts
    policy: RetentionSettings
    expected: dict[int, Expected]
    stopped: tuple[str, ...]


def read_table(path: Path) -> Table:
    """The facts, policy and expectations of a file."""
    lines = path.read_text().splitlines()
    values: dict[str, list[str]] = {}
    rows: list[dict[str, str]] = []
    heads: list[str] = []
    for line in lines[1:]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not heads:
                heads = cells
            elif not set(line) <= set("|-: "):
                rows.append(dict(zip(heads, cells, strict=True)))
        elif match := re.fullmatch(r"(stores|policy|stopped|hold|unknown|begun): (.+)", line):
            values.setdefault(match[1], []).append(match[2])
    sites = tuple(_site(text) for text in values.get("stores", [DEFAULT_STORES])[0].split())
    steps = [int(row["step"]) for row in rows]
    assert len(set(steps)) == len(steps), path
    points = tuple(_point(row, [site.name for site in sites], order) for order, row in enumerate(rows, 1))
    begun = [NOW - timedelta(days=float(values["begun"][0]))] if "begun" in values else [p.stored_at for p in points if p.stored_at]
    return Table(
        lines[0].removeprefix("# "),
        RunFacts("gpt", NOW, sites, points, min(begun, default=None), tuple(values.get("hold", [])), tuple(values.get("unknown", []))),
        _policy(" ".join(values.get("policy", []))),
        {int(row["step"]): Expected(row["expect"], row["because"]) for row in rows},
        tuple(values.get("stopped", [])),
    )


def _site(text: str) -> Site:
    name, _, place = text.partition("=")
    medium, _, domain = place.partition("/")
    return Site(name, name, medium, domain)


def _policy(text: str) -> RetentionSettings:
    # Tables are about one rule each: what they do not name is switched off.
    given: dict[str, object] = {"daily": 0, "weekly": 0, "monthly": 0, "keep_best": 0, "keep_last": 1}
    for item in text.split():
        name, _, value = item.partition("=")
        given[name] = [int(step) for step in value.split(",")] if name == "protect_steps" else value
    return RetentionSettings.model_validate(given, strict=False)


def _point(row: dict[str, str], stores: list[str], order: int) -> Point:
    marks = [mark.strip() for mark in row.get("facts", "").split(",") if mark.strip()]
    named = dict(mark.split("=") for mark in marks if "=" in mark)
    known = {"quarantined", "written-off", "orphan", "unfinished", "no keys", "keys unknown", "L5 once", "archived"}
    assert {mark for mark in marks if "=" not in mark} <= known, marks
    kind = Kind.ORPHAN if "orphan" in marks else Kind.UNFINISHED if "unfinished" in marks else Kind.CHECKPOINT
    return Point(
        f"s{row['step']}",
        int(row["step"]),
        kind,
        order,
        tuple(_copy(store, row[store]) for store in stores if row[store] != "-"),
        None if row["age"] == "?" else NOW - timedelta(days=float(row["age"])),
        quarantine=("odd",) if "quarantined" in marks else (),
        written_off="written-off" in marks,
        loss=float(named["loss"]) if "loss" in named else None,
        base=f"s{named['base']}" if "base" in named else "",
        keys=None if "keys unknown" in marks else "no keys" not in marks,
        archived="archived" in marks,
        resumed="L5 once" in marks,
    )


def _copy(store: str, text: str) -> Copy:
    level, *words = text.split()
    assert set(words) <= {"lapsed", "failed", "locked", "silent"}, text
    return Copy(
        store,
        None if level == "none" or "failed" in words or "lapsed" in words else Level.parse(level),
        None if level == "none" else NOW + timedelta(days=-1 if "lapsed" in words else 5),
        failure="L2 failed" if "failed" in words else "",
        answers="silent" not in words,
        locked_until=NOW + timedelta(days=2) if "locked" in words else None,
    )
