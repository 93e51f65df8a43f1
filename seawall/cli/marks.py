"""``seawall log quarantine | hold | lift``: what people say about a checkpoint or a run."""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, ReasonOption, RunArgument
from seawall.cli.output import emit, say
from seawall.errors import NoSuchCopyError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.vault.signing import SigningKey

_ID = re.compile(r"[0-9a-f]{8,32}")
"""A sealing or operation id, or enough of its beginning."""


def quarantine(
    run: RunArgument,
    checkpoint: Annotated[str, typer.Argument(help="A step, or a sealing id or at least 8 digits of its beginning.")],
    reason: ReasonOption,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Say that a checkpoint is no recovery point, until that is lifted. Its copies stay."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.log import verbs

    site = Site(find_config(config))
    site.run(run)
    view, _ = site.view(run)
    sealing = find_sealing(view, checkpoint)
    what = f"quarantine of sealing {sealing}"
    if dry_run:
        return _would(site, view, what, json)
    after = verbs.quarantine(site.coordination.store, view, sealing, reason, speaker(site), site.clock)
    return _tell(site, view, after, _mark(after, sealing, reason), what, json)


def hold(
    run: RunArgument, reason: ReasonOption, dry_run: DryRunOption = False, config: ConfigOption = None, json: JsonOption = False
) -> int:
    """Stop deletions and promotions of a run, until that is lifted. Sync goes on."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.log import verbs

    site = Site(find_config(config))
    site.run(run)
    view, _ = site.view(run)
    what = f"hold of run {run}"
    if dry_run:
        return _would(site, view, what, json)
    after = verbs.hold(site.coordination.store, view, reason, speaker(site), site.clock)
    return _tell(site, view, after, _mark(after, "", reason), what, json)


def lift(
    run: RunArgument,
    operation: Annotated[str, typer.Argument(help="Operation id of the quarantine or hold, or at least 8 digits of its beginning.")],
    reason: ReasonOption,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """End a quarantine or a hold. Only an operator can."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.log import verbs

    site = Site(find_config(config))
    site.run(run)
    view, _ = site.view(run)
    marks = [op for op in view.state.marks if op.startswith(_checked_id(operation))]
    if not marks:
        raise NoSuchCopyError("there is no such quarantine or hold", where=f"{run} {operation}", do="`seawall log show` lists them")
    if len(marks) > 1:
        raise UsageError("several operations begin like that", where=operation, why=", ".join(marks), do="give more digits")
    what = f"lift of operation {marks[0]}"
    if dry_run:
        return _would(site, view, what, json)
    after = verbs.lift(site.coordination.store, view, marks[0], reason, site.signing_key("operator"), site.clock)
    return _tell(site, view, after, after.state.marks[marks[0]].lifted_by, what, json)


def find_sealing(view: "LogView", text: str) -> str:
    """The sealing of a step, or of an id or its beginning; also an orphan's. Decimal digits of any length below 32 are a step."""
    state = view.state
    known = {**state.commits, **state.orphans}
    if text.isdecimal() and len(text) < 32:
        found = [record.sealing for record in known.values() if record.step == int(text)]
    else:
        found = [sealing for sealing in known if sealing.startswith(_checked_id(text))]
    if not found:
        raise NoSuchCopyError("the run has no such checkpoint", where=f"{view.run} {text}", do="`seawall copies` lists them")
    if len(found) > 1:
        raise UsageError("that is more than one checkpoint", where=text, why=", ".join(found), do="name one of these sealings")
    return found[0]


def _checked_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise UsageError("this is no id", where=text, why="ids are 32 hex digits", do="give at least the first 8 of them")
    return text


def speaker(site: "Site") -> "SigningKey":
    """Who may quarantine and hold: an operator, and on a host without an operator's key a verifier."""
    return site.signing_key("operator" if site.has_signing_key("operator") or not site.has_signing_key("verifier") else "verifier")


def _mark(view: "LogView", sealing: str, reason: str) -> str:
    """Operation id of the mark that says this and stands."""
    marks = view.state.marks.values()
    return next(mark.op for mark in marks if (mark.sealing, mark.reason) == (sealing, reason) and not mark.lifted_by)


def _would(site: "Site", view: "LogView", what: str, json: bool) -> int:
    site.close()
    if json:
        emit({"status": "dry-run", "run": view.run, "entries": view.seq, "operation": None, "mirrors_behind": {}})
    else:
        say(f"would append: {what}")
    return 0


def _tell(site: "Site", before: "LogView", after: "LogView", op: str, what: str, json: bool) -> int:
    from seawall.cli.spread import spread

    status = "unchanged" if op in before.state.done else "appended"
    behind = spread(site, after)
    site.close()
    if json:
        emit({"status": status, "run": after.run, "entries": after.seq, "operation": op, "mirrors_behind": behind})
    elif status == "appended":
        say(f"appended: {what}, operation {op}")
    else:
        say(f"unchanged: {what} is in the log already, operation {op}")
    return 0
