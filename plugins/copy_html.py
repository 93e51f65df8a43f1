"""The page of one copy: verdicts with their evidence, earlier days, proofs and the tasks that made them."""

from html import escape
from typing import Any
from urllib.parse import quote

from seawall.plugins.heat import css_class, day, sign
from seawall.plugins.marks_html import marks_of_checkpoint
from seawall.plugins.page import link
from seawall.plugins.words_html import copy_link, lapse, moment, tag

_CALLS = {
    "prove": "Prove it: read it back and sign what is found (the DAG seawall_verify, or seawall verify).",
    "heal": "Heal it: the damaged records are fetched from a good copy (seawall heal).",
    "quarantine": "Quarantine: no recovery point until a person lifts it.",
    "quarantine_and_hold": "Quarantine, and a hold of the run: nothing is deleted or promoted.",
    "catch_up": "Sync now: the copy is late.",
    "incident": "Incident: no good copy is left. Nothing is overwritten; a person decides.",
    "review": "A person has to decide.",
}


def copy_body(page: dict[str, Any], can_lift: str) -> str:
    """The page of a copy. ``can_lift`` as in :func:`seawall.plugins.integrity_html.integrity_body`."""
    row = page["copy"]
    back = link("integrity", run=page["run"])
    others = "".join(
        f' <a href="{copy_link(page, {"sealing": row["sealing"], "store": store})}">in {escape(store)}</a>' for store in page["others"]
    )
    level = (
        f"proved to <strong>{escape(row['level'])}</strong>, lapses {lapse(row['lapses_at'], page['at'])}"
        if row["level"]
        else "proved to nothing now"
    )
    place = ", ".join(text for text in (row["medium"], row["fault_domain"], row["zone"] and f"zone {row['zone']}") if text)
    problems = "".join(f'<div class="notice bad-notice">{escape(text)}</div>' for text in page["problems"])
    return (
        f'<div class="head"><a href="{back}">{escape(page["run"])}</a><h1>Step {row["step"]} in {escape(row["store"])}</h1>'
        f'{tag(row["verdict"], row["verdict"])}<span class="note">judged {moment(page["at"])}</span></div>{problems}'
        f"<dl><dt>level</dt><dd>{level}</dd><dt>sealing</dt><dd><code>{escape(row['sealing'])}</code></dd>"
        f"<dt>committed</dt><dd>{moment(row['committed_at'])}</dd><dt>store</dt><dd>{escape(row['store'])} ({escape(place)})</dd>"
        f"{f'<dt>other copies</dt><dd>{others}</dd>' if others else ''}</dl>"
        f"{_days(page)}<h2>Verdicts and their evidence</h2>"
        f'<div class="cells">{"".join(_cell(page, name, cell) for name, cell in row["cells"].items())}</div>'
        f"{marks_of_checkpoint(page, can_lift)}{_proofs(page)}"
    )


def _days(page: dict[str, Any]) -> str:
    names = [*(day(text) for text in page["moments"][:-1]), "now"]
    heads = "".join(
        f'<th scope="col"><time datetime="{text}" title="{text}">{name}</time></th>'
        for name, text in zip(names, page["moments"], strict=True)
    )
    rows = []
    for dimension, cell in page["copy"]["cells"].items():
        cells = []
        for name, verdict in zip(names, cell["history"], strict=True):
            label = escape(f"{name}: {verdict or 'not there yet'}")
            cells.append(
                f'<td class="cell"><a class="{css_class(verdict)}" href="#{dimension}" aria-label="{label}" title="{label}">'
                f"<b>{sign(verdict)}</b></a></td>"
            )
        rows.append(f'<tr><th scope="row">{dimension}</th>{"".join(cells)}</tr>')
    return (
        '<h2>Over time</h2><div class="scroll days"><table data-grid><caption class="hidden">Dimensions and their verdicts on earlier days'
        f'</caption><thead><tr><th scope="col">dimension</th>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _cell(page: dict[str, Any], name: str, cell: dict[str, Any]) -> str:
    verdict = cell["verdict"]
    facts = [f"<dt>{escape(key)}</dt><dd>{escape(text)}</dd>" for key, text in cell["evidence"].items() if text and key != "task"]
    known = f"<dt>as of</dt><dd>{moment(cell['at'])}</dd>" if cell["at"] else ""
    lapses = f"<dt>lapses</dt><dd>{lapse(cell['lapses_at'], page['at'])}</dd>" if cell["lapses_at"] else ""
    made = [proof for proof in page["proofs"] if proof["at"] == cell["at"] and proof["task"]]
    task = f"<dt>made by</dt><dd>{task_link(made[0]['task'])}</dd>" if made else ""
    call = f"<p><strong>{escape(_CALLS[cell['response']])}</strong></p>" if cell["response"] in _CALLS else ""
    return (
        f'<section id="{name}"><h3>{name} {tag(verdict, verdict)}</h3><p>{escape(cell["why"])}.</p>{call}'
        f"<dl>{known}{lapses}{task}{''.join(facts)}</dl></section>"
    )


def _proofs(page: dict[str, Any]) -> str:
    total = page["proofs_total"]
    if not total:
        return '<h2 id="proofs">Proofs</h2><p class="note">Nobody ever proved anything about this copy.</p>'
    rows = []
    for proof in page["proofs"]:
        evidence = "".join(f"<dt>{escape(key)}</dt><dd>{escape(text)}</dd>" for key, text in proof["evidence"].items())
        count = f"{len(proof['evidence'])} fact{'' if len(proof['evidence']) == 1 else 's'}"
        shown = f"<details><summary>{count}</summary><dl>{evidence}</dl></details>" if evidence else ""
        task = task_link(proof["task"]) if proof["task"] else '<span class="note">not known</span>'
        rows.append(
            f'<tr><th scope="row">{moment(proof["at"])}</th><td>{escape(proof["level"])}</td>'
            f"<td>{tag(proof['result'], proof['result'])}</td><td>{escape(proof['store'])}</td><td>{escape(proof['method'])}</td>"
            f'<td>{task}</td><td class="wrap">{shown}</td></tr>'
        )
    left = f'<p class="note">The newest {len(rows)} of {total:,}.</p>' if total > len(rows) else ""
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("when", "level", "result", "read in", "method", "made by", "evidence"))
    return (
        f'<h2 id="proofs">Proofs</h2><div class="scroll"><table><caption class="hidden">Proofs about this copy, newest first</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{left}"
    )


def task_link(task: dict[str, Any]) -> str:
    """To the try of a task in Airflow, below whose address the plugin's pages lie."""
    dag, run, name = (quote(str(task[key]), safe="") for key in ("dag", "run", "task"))
    mapped = f"/mapped/{task['map_index']}" if task["map_index"] >= 0 else ""
    address = escape(f"../dags/{dag}/runs/{run}/tasks/{name}{mapped}?try_number={task['try_number']}")
    text = f"{task['dag']} · {task['task']}" + (f" [{task['map_index']}]" if mapped else "")
    return f'<a data-airflow href="{address}" title="{escape(str(task["run"]))}, try {task["try_number"]}">{escape(text)}</a>'
