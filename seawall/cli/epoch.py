"""``seawall log epoch``: open the next epoch of a run, which fences off everybody who wrote in the one before."""

import re
import secrets
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, ReasonOption, RunArgument
from seawall.cli.output import emit, say
from seawall.errors import UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView

_OPERATION = re.compile(r"[0-9a-f]{32}")


def epoch(
    run: RunArgument,
    reason: ReasonOption,
    writer: Annotated[
        list[str] | None,
        typer.Option(
            "--writer", help="Key id that may commit from now on; may be given again. This host's by default.", show_default=False
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    operation: Annotated[
        str | None, typer.Option("--operation", help="Operation id of an earlier try whose outcome is unknown.", show_default=False)
    ] = None,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Close the epoch in force and open the next one. Checkpoints that are committed under the old one from now on are orphans."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.cli.spread import spread
    from seawall.log.verbs import new_epoch

    site = Site(find_config(config))
    site.run(run)
    view, _ = site.view(run)
    writers = _writers(site, view, writer)
    # Reserved before anything is done (law 4), and named by the error if the outcome stays unknown.
    op = operation or secrets.token_hex(16)
    if not _OPERATION.fullmatch(op):
        raise UsageError("--operation wants 32 hex digits", where=op)
    again = next((record for record in view.state.epochs.values() if record.op == op), None)
    plan = _plan(view, writers, op)
    if again is None and not dry_run:
        _confirm(plan, yes, json)
    if dry_run:
        site.close()
        emit({"status": "dry-run", **plan}) if json else _show(plan)
        return 0
    after = new_epoch(site.coordination.store, view, writers, reason, site.signing_key("coordinator"), op, site.clock)
    opened = next(record for record in after.state.epochs.values() if record.op == op)
    behind = spread(site, after)
    site.close()
    if json:
        status = "unchanged" if again else "opened"
        emit({"status": status, **plan, "epoch": opened.number, "entries": after.seq, "mirrors_behind": behind})
    else:
        say(f"epoch {opened.number} of {run} {'is open already' if again else 'is open'} for {', '.join(opened.writers)} (operation {op})")
    return 0


def _writers(site: "Site", view: "LogView", given: list[str] | None) -> list[str]:
    trust = view.state.trust
    assert trust is not None, "a log that was read begins with a trust list"
    if not given:
        given = [site.signing_key("writer").key_id]
    for key_id in given:
        why = trust.why_not(key_id, ("writer",))
        if why:
            raise UsageError(
                "this key may not be admitted as a writer", where=key_id, why=why, do="`seawall keys trust show` lists the keys"
            )
    return sorted(set(given))


def _plan(view: "LogView", writers: list[str], op: str) -> dict[str, Any]:
    record = view.state.epoch_record()
    before = record.writers if record else ()
    newest = max(view.state.commits.values(), key=lambda commit: commit.seq, default=None)
    return {
        "run": view.run,
        "closes": view.epoch,
        "opens": view.epoch + 1,
        "fenced": [key_id for key_id in before if key_id not in writers],
        "stay": [key_id for key_id in before if key_id in writers],
        "admitted": [key_id for key_id in writers if key_id not in before],
        "newest_step": newest.step if newest else None,
        "operation": op,
    }


def _show(plan: dict[str, Any]) -> None:
    for line in _lines(plan):
        say(line)


def _lines(plan: dict[str, Any]) -> list[str]:
    lines = [f"run {plan['run']}: epoch {plan['closes']} is closed, epoch {plan['opens']} is opened"]
    lines += [f"  fenced off: writer {key_id}" for key_id in plan["fenced"]]
    lines += [f"  stays:      writer {key_id}" for key_id in plan["stay"]]
    lines += [f"  admitted:   writer {key_id}" for key_id in plan["admitted"]]
    newest = "none" if plan["newest_step"] is None else f"step {plan['newest_step']}"
    lines.append(
        f"  newest committed checkpoint: {newest}; what was written under epoch {plan['closes']} and is not committed becomes an orphan"
    )
    lines.append(f"  operation {plan['operation']}")
    return lines


def _confirm(plan: dict[str, Any], yes: bool, json: bool) -> None:
    """Show what is about to be fenced, and go on only with a yes. There is no way back but a further epoch."""
    if not json:
        sys.stderr.write("\n".join(_lines(plan)) + "\n")
    if yes:
        return
    if json or not sys.stdin.isatty():
        raise UsageError("a new epoch needs --yes", why="it cannot be undone and nobody can be asked here", do="look at --dry-run first")
    if not typer.confirm("Open the new epoch?", err=True):
        raise UsageError("not confirmed; nothing was changed")
