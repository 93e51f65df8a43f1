"""What stands above the copies of a run: recovery point, counts, log, and what has to be done. What is not markup here is escaped."""

from datetime import timedelta
from html import escape
from typing import Any

from seawall.clock import parse_utc
from seawall.plugins.heat import css_class, sign
from seawall.plugins.words_html import copy_link, here, lapse, length, tag


def point_card(page: dict[str, Any]) -> str:
    point, now = page["recovery_point"], page["at"]
    over = page["passed_over"]
    more = page["passed_over_total"] - len(over)
    newer = "".join(f"<li>step {row['step']}: {escape(row['why'])}</li>" for row in over) + (
        f"<li>and {more:,} more</li>" if more > 0 else ""
    )
    listed = f"<details><summary>{page['passed_over_total']:,} newer that are not it</summary><ul>{newer}</ul></details>" if over else ""
    if point is None:
        return (
            f'<section class="card wide"><h2>Recovery point</h2><p class="big bad">{sign("failed")} None</p>'
            f"<p>No checkpoint is proved to {escape(page['required_level'])} now. What to do: prove one "
            f"(<code>seawall verify {escape(page['run'])}</code>), or see below what failed.</p>{listed}</section>"
        )
    age = parse_utc(now) - parse_utc(point["committed_at"])
    late = age > timedelta(minutes=page["rpo_minutes"])
    old = tag("suspect", f"older than the RPO of {page['rpo_minutes']} min") if late else ""
    return (
        f'<section class="card wide"><h2>Recovery point</h2><p class="big">step {point["step"]}</p>'
        f"<p>proved to <strong>{escape(point['level'])}</strong> in <strong>{escape(', '.join(point['stores']))}</strong>, "
        f"that lapses {lapse(point['lapses_at'], now)}</p><p>committed {length(age)} ago {old}</p>{listed}</section>"
    )


def score_card(page: dict[str, Any]) -> str:
    """3-2-1-1-0, each digit with what makes it true, or why it is not."""
    score = page["score"]
    if score is None:
        return ""
    digits = "".join(_digit(digit, page["at"]) for digit in score["digits"])
    said = "3-2-1-1-0 holds" if score["ok"] else "of 3-2-1-1-0"
    missing = sum(not digit["ok"] for digit in score["digits"])
    summary = f"{missing} of the 5 rules do not hold" if missing else "what makes it hold"
    return (
        f'<section class="card"><h2>Score of step {score["step"]}</h2><p class="big">{escape(score["score"])}</p>'
        f"<p>{said}{_until(score['lapses_at'], page['at'])}</p><details><summary>{summary}</summary><ul>{digits}</ul></details></section>"
    )


def _digit(digit: dict[str, Any], now: str) -> str:
    said = tag("ok" if digit["ok"] else "suspect", f"{digit['have']} {digit['rule']}, {digit['want']} wanted")
    return f"<li>{said} {escape('; '.join(digit['evidence']))}{_until(digit['lapses_at'], now)}</li>"


def _until(text: str | None, now: str) -> str:
    return f", lapses {lapse(text, now)}" if text else ""


def count_card(page: dict[str, Any], view: str) -> str:
    tags = "".join(
        f'<li><a class="tag {css_class(verdict)}" href="{here(page, view, verdict=verdict, dimension=None, offset=None)}#copies">'
        f'<b aria-hidden="true">{sign(verdict)}</b> {count:,} {verdict}</a></li>'
        for verdict, count in page["counts"]["worst"].items()
        if count
    )
    return (
        f'<section class="card"><h2>Copies, by the worst of each</h2><p class="big">{page["total"]:,}</p>'
        f'<ul class="tags">{tags}</ul><p class="note">of {page["checkpoints"]:,} checkpoints</p></section>'
    )


def log_card(page: dict[str, Any]) -> str:
    held, quarantined = len(page["held"]), page["quarantines_total"]
    said = f"{held} hold{'' if held == 1 else 's'}, {quarantined:,} quarantine{'' if quarantined == 1 else 's'}"
    marks = f'<a href="#marks">{tag("suspect", said)}</a>' if held or quarantined else "no holds, no quarantines"
    fresh = tag("ok", "freshness proved") if page["freshness"] == "proved" else tag("unknown", "freshness unproved")
    return (
        f'<section class="card"><h2>Log</h2><p class="big">{page["entries"]:,} entries</p>'
        f"<p>epoch {page['epoch']}, {fresh}</p><p>{marks}</p></section>"
    )


def calls_list(page: dict[str, Any]) -> str:
    """What has to be done, the most severe first."""
    if not page["calls"]:
        said = (
            "No copy failed and none is suspect"
            if not page["bad"]
            else "What failed or is suspect is answered: quarantined, or lifted by a person"
        )
        return f'<h2 id="calls">What this calls for</h2><p>{tag("ok", said)}</p>' if page["total"] else ""
    items = []
    for call in page["calls"]:
        sign_of = "suspect" if call["response"] in ("quarantine", "quarantine_and_hold", "review") else "failed"
        copies = ", ".join(
            f'<a href="{copy_link(page, {**call, "store": name}, call["dimension"])}">step {call["step"]} in {escape(name)}</a>'
            for name in call["stores"]
        )
        items.append(f"<li>{tag(sign_of, call['response'].replace('_', ' '))} {copies}: {escape(call['reason'])}</li>")
    left = page["calls_total"] - len(items)
    more = f"<li>and {left:,} more</li>" if left else ""
    if page["bad"] > page["calls_looked_at"]:
        more += f"<li>Of {page['bad']:,} copies that failed or are suspect, the newest {page['calls_looked_at']} were looked at here.</li>"
    return f'<h2 id="calls">What this calls for</h2><ul class="calls">{"".join(items)}{more}</ul>'
