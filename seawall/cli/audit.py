"""``seawall audit``: what was proved of the checkpoints of an interval, as it was known then."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, JsonOption, RunArgument
from seawall.cli.output import emit, say, warn

if TYPE_CHECKING:
    from seawall.audit.record import Audited


def audit(
    run: RunArgument,
    start: Annotated[str, typer.Option("--start", help="A day (UTC), or a moment with its zone.")],
    end: Annotated[str, typer.Option("--end", help="The same; not part of the interval.")],
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Only look: write no report. Needs no verifier key.")] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Report what was proved, what failed and what was unknown of the checkpoints committed in an interval. Signed, and written once.

    The same interval gives the same report whenever it is asked for; exit 10 when it does not.
    """
    from seawall.audit.record import make_report
    from seawall.audit.terms import Interval, parse_moment
    from seawall.cli.audit_terms import audit_terms
    from seawall.cli.config import find_config
    from seawall.cli.site import Site

    site = Site(find_config(config))
    interval = Interval(parse_moment(start), parse_moment(end))
    key = None if unsigned else site.signing_key("verifier")
    view, _ = site.view(run)
    terms, names = audit_terms(site, run, lambda name, error: warn(f"{name} is not asked about: {error}"))
    done = make_report(site.coordination.store, view, interval, terms, key, site.clock.now())
    site.close()
    if json:
        emit({"run": run, "record": done.name, "status": done.status, "digest": done.digest, "report": done.body})
    else:
        _show(run, done, names)
    return 0


def _show(run: str, done: "Audited", names: Mapping[str, str]) -> None:
    body = done.body
    start, end = body["interval"]["start"], body["interval"]["end"]
    say(f"{run}, {start} to {end}, as it was known at {body['cut']} (log entry {body['log']['seq']})")
    for row in body["checkpoints"]:
        notes = [*(["committed late"] if row["late"] else []), *(["orphan"] if row["orphan"] else []), *row["quarantine"]]
        say(f"step {row['step']}, stored {row['stored_at'] or row['committed_at']}{': ' + '; '.join(notes) if notes else ''}")
        for copy in row["copies"]:
            say(f"  {names.get(copy['store'], copy['store'][:12]):<12} {_copy(copy)}")
    counts = body["counts"]
    copies = ", ".join(f"{counts[word]} {word}" for word in ("ok", "failed", "unknown", "deleted"))
    say(f"{counts['checkpoints']} checkpoints; copies: {copies}. Report audit/{done.name}: {done.status}")


def _copy(copy: dict[str, Any]) -> str:
    if copy["failure"]:
        failure = copy["failure"]
        return f"failed at {failure['level']}, {failure['at']}{': ' + failure['damage'] if failure['damage'] else ''}"
    known = ", ".join(f"{level} {found['result']}" for level, found in copy["levels"].items() if found["at"])
    return f"{copy['result']}{' at ' + copy['level'] if copy['level'] else ''}{' (' + known + ')' if known else ''}"
