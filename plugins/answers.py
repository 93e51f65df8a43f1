"""What the routes answer, from the library. Knows nothing of HTTP."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from seawall.operators.site import AirflowSite, airflow_site

if TYPE_CHECKING:
    from seawall.log.read import LogView
    from seawall.vault.signing import SigningKey


@contextmanager
def opened_site() -> Iterator[AirflowSite]:
    """The API server's own site, for one answer."""
    site = airflow_site()
    try:
        yield site
    finally:
        site.close()


def runs_page(site: AirflowSite, offset: int, limit: int) -> dict[str, Any]:
    """Names and settings of the configured runs. Reads no log: whether a run is well is asked for each."""
    names = sorted(site.config.runs)
    shown = [
        {
            "run": name,
            "copies": list(settings.copies),
            "required_level": settings.required_level,
            "rpo_minutes": settings.rpo_minutes,
        }
        for name, settings in ((name, site.config.runs[name]) for name in names[offset : offset + limit])
    ]
    return {"runs": shown, "total": len(names), "offset": offset}


def copies_page(site: AirflowSite, run: str, offset: int, limit: int) -> dict[str, Any]:
    """A run's checkpoints, newest first, with what is proved about each copy, as ``seawall copies --json`` gives them."""
    from seawall.cli.copy_table import copy_table, newest_first

    problems: list[str] = []
    table = copy_table(site, run, lambda state: newest_first(state)[offset : offset + limit], problems.append)
    return {**table.document, "offset": offset, "problems": problems}


def log_page(site: AirflowSite, run: str, before: int | None, limit: int) -> dict[str, Any]:
    """Entries of a run's log below number ``before``, newest first."""
    from seawall.cli.log_page import entries_before, entry_document

    site.run(run)
    view, report = site.view(run)
    entries = entries_before(site, view, view.seq + 1 if before is None else before, limit)
    last = entries[-1].entry.seq if entries else 1
    return {
        "run": run,
        "epoch": view.epoch,
        "freshness": report.freshness.value,
        "total": view.seq,
        "entries": [entry_document(view.state, entry) for entry in entries],
        "next_before": last if last > 1 else None,
    }


def quarantine(site: AirflowSite, run: str, checkpoint: str, reason: str) -> dict[str, Any]:
    """Say that a checkpoint is no recovery point. Needs an operator's or verifier's key on the API server's host."""
    from seawall.cli.marks import find_sealing
    from seawall.log import verbs

    def act(view: "LogView", key: "SigningKey") -> "LogView":
        return verbs.quarantine(site.coordination.store, view, find_sealing(view, checkpoint), reason, key, site.clock)

    return _say(site, run, act)


def hold(site: AirflowSite, run: str, reason: str) -> dict[str, Any]:
    """Stop deletions and promotions of a run. Needs an operator's or verifier's key on the API server's host."""
    from seawall.log import verbs

    return _say(site, run, lambda view, key: verbs.hold(site.coordination.store, view, reason, key, site.clock))


def lift(site: AirflowSite, run: str, operation: str, reason: str) -> dict[str, Any]:
    """End a quarantine or a hold. Needs an operator's key on the API server's host; the log has who asked, and why."""
    from seawall.log import verbs

    site.run(run)
    key = site.signing_key("operator")
    before, _ = site.view(run)
    return _told(site, before, verbs.lift(site.coordination.store, before, operation, reason, key, site.clock))


def lift_told(site: AirflowSite, run: str, operation: str) -> str:
    """One sentence on a mark that was lifted, from the log; empty when none was."""
    view, _ = site.view(run)
    mark = view.state.marks.get(operation)
    if mark is None or not mark.lifted_by:
        return ""
    return f"Lifted, entry {view.state.done[mark.lifted_by].seq} of the log: {mark.reason}. Why: {mark.lifted_why}."


def said_by(reason: str, name: str) -> str:
    """The log is signed by the host's key; which person asked is part of the reason."""
    return f"{reason} (by {name} in Airflow)"


def _say(site: AirflowSite, run: str, act: "Callable[[LogView, SigningKey], LogView]") -> dict[str, Any]:
    from seawall.cli.marks import speaker

    site.run(run)
    key = speaker(site)
    before, _ = site.view(run)
    return _told(site, before, act(before, key))


def _told(site: AirflowSite, before: "LogView", after: "LogView") -> dict[str, Any]:
    from seawall.cli.spread import spread

    behind = spread(site, after)
    return {
        "status": "appended" if after.seq > before.seq else "unchanged",
        "run": after.run,
        "entries": after.seq,
        "mirrors_behind": behind,
    }
