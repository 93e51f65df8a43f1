"""``seawall retention``: what may be deleted, who agrees, and doing it. Nothing else in seawall deletes a stored copy."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, ReasonOption, RunArgument
from seawall.cli.output import emit, human_bytes, say, warn
from seawall.errors import StoreError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.protect.retention import OpenPlan
    from seawall.protect.retention_gather import Desk
    from seawall.protect.retention_plan import Deletion, RetentionDecision

app = typer.Typer(no_args_is_help=True, help="Which copies may be deleted: planned, approved, cooled off, decided again.")

PlanArgument = Annotated[str, typer.Argument(help="The plan's name, as `seawall retention plan` printed it.")]


@app.command()
def plan(run: RunArgument, dry_run: DryRunOption = False, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Decide which copies no rule keeps, and sign the list. Deletes nothing; a list that is the same and still good is found again."""
    from seawall.protect.retention import look_up, make_plan

    site, desk = _open(config, run)
    done = make_plan(desk, None if dry_run else site.signing_key("operator"))
    known = None if done.plan is None else look_up(desk, done.gathered.view.state, done.plan.name)
    site.close()
    status = "dry-run" if dry_run else "nothing" if known is None else "planned" if done.fresh else "unchanged"
    if json:
        moment = done.gathered.moment
        emit(
            {
                "status": status,
                "run": run,
                "at": _text(moment.now),
                "clock": moment.clock,
                "plan": None if known is None else _plan_document(desk, known),
                **_decision_document(desk, done.decision),
                "absent": dict(desk.absent),
            }
        )
        return 0
    _show_decision(desk, done.decision)
    if known is not None:
        say(f"{status}: plan {known.plan.name}")
        _show_next(run, known)
    return 0


@app.command()
def show(
    run: RunArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="[PLAN]", help="One plan, with every copy on it; all that are still good without.")
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """List the plans that are still good, and what they would delete."""
    from seawall.protect.retention import look_up, open_plans
    from seawall.protect.retention_clock import decisive_moment

    site, desk = _open(config, run)
    view, _ = desk.open_view()
    if name is not None:
        found = [look_up(desk, view.state, name)]
    else:
        moment = decisive_moment(desk.coordination, desk.places, view.state, desk.clock, local_clock=desk.settings.local_clock)
        found = open_plans(desk, view.state, moment)
    site.close()
    if json:
        emit({"run": run, "plans": [_plan_document(desk, known) for known in found]})
        return 0
    for known in found:
        say(f"plan {known.plan.name}, signed by {known.plan.signer}, {known.left} of {len(known.plan.delete)} copies left")
        for deletion in known.plan.delete:
            say(f"  {_deletion_line(desk, deletion)}")
        _show_next(run, known)
    if not found:
        say("no plan is open")
    return 0


@app.command()
def approve(run: RunArgument, name: PlanArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Agree to a plan: to exactly its list, by its digest. It still has to cool off."""
    from seawall.protect.retention import approve_plan
    from seawall.protect.retention_clock import decisive_moment

    site, desk = _open(config, run)
    view, _ = desk.open_view()
    moment = decisive_moment(desk.coordination, desk.places, view.state, desk.clock, local_clock=desk.settings.local_clock)
    known = approve_plan(desk, view, moment, name, site.signing_key("operator"))
    site.close()
    if json:
        emit({"status": "approved", "run": run, "plan": _plan_document(desk, known)})
        return 0
    say(f"approved: plan {name}, digest {known.plan.digest}")
    _show_next(run, known)
    return 0


@app.command("run")
def carry_out(
    run: RunArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="[PLAN]", help="The plan's name; without it the newest that is approved and has cooled off.")
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Delete what an approved plan lists and may still go, copy by copy; finish what a run before began. Exit 7 when a store failed."""
    from seawall.cli.spread import spread
    from seawall.protect.retention import run_plan

    site, desk = _open(config, run)
    done = run_plan(desk, name, site.signing_key("operator"), site.config.transfer.transfers)
    behind = spread(site, done.view)
    site.close()
    code = StoreError.exit_code if done.count("cut short") else 0
    names = {place.id: place.name for place in desk.places}
    if json:
        copies = [
            {
                "sealing": c.sealing,
                "step": c.step,
                "store": names.get(c.store, c.store),
                "outcome": c.outcome,
                "why": c.why,
                "objects": c.objects,
            }
            for c in done.copies
        ]
        plan_document = None if done.plan is None else {"name": done.plan.name, "digest": done.plan.digest}
        document = {"run": run, "plan": plan_document, "stopped": list(done.stopped), "copies": copies, "mirrors_behind": behind}
        emit({**document, "exit_code": code})
        return code
    for copy in done.copies:
        say(f"{copy.outcome}: step {copy.step} in {names.get(copy.store, copy.store)}{f': {copy.why}' if copy.why else ''}")
    for why in done.stopped:
        warn(f"stopped: {why}")
    say(f"{done.count('deleted')} copies deleted, {done.count('finished')} finished, {done.count('dropped')} dropped")
    return code


@app.command()
def locks(run: RunArgument, dry_run: DryRunOption = False, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Look at the locks of the copies that are kept, and extend those that would run out. Exit 7 when a store refused."""
    from seawall.protect.lock_audit import FAILED, audit_locks

    site, desk = _open(config, run)
    found = audit_locks(desk, extend=not dry_run, transfers=site.config.transfer.transfers)
    site.close()
    code = StoreError.exit_code if any(lock.outcome == FAILED for lock in found) else 0
    if json:
        rows = [
            {
                "sealing": lock.sealing,
                "step": lock.step,
                "store": _name(desk, lock.store),
                "had_until": None if lock.had_until is None else _text(lock.had_until),
                "wanted_until": _text(lock.wanted_until),
                "outcome": lock.outcome,
                "why": lock.why,
            }
            for lock in found
        ]
        emit({"run": run, "status": "dry-run" if dry_run else "done", "copies": rows, "exit_code": code})
        return code
    for lock in found:
        had = "not locked" if lock.had_until is None else f"locked until {lock.had_until:%Y-%m-%d %H:%M}Z"
        say(f"{lock.outcome:<9} step {lock.step} in {_name(desk, lock.store)}: {had}{f', {lock.why}' if lock.why else ''}")
    if not found:
        say("no store of the run is asked to lock (lock_days under [stores])")
    return code


@app.command("write-off")
def write_off(
    run: RunArgument,
    checkpoint: Annotated[str, typer.Argument(help="A step, or a sealing id or at least 8 digits of its beginning.")],
    reason: ReasonOption,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Give up a checkpoint that cannot be healed. Takes two people, each with an operator's key of their own and the same reason."""
    from seawall.cli.marks import find_sealing
    from seawall.cli.spread import spread
    from seawall.protect.write_off import write_off as give_up

    site, desk = _open(config, run)
    view, _ = desk.open_view()
    sealing = find_sealing(view, checkpoint)
    done = give_up(desk.coordination, view, sealing, reason, site.signing_key("operator"), desk.clock)
    behind = spread(site, done.view) if done.done else {}
    site.close()
    status = "written off" if done.done else "waiting"
    if json:
        emit({"status": status, "run": run, "sealing": sealing, "signers": list(done.signers), "mirrors_behind": behind})
    elif done.done:
        say(f"written off: sealing {sealing}, by {' and '.join(done.signers)}")
    else:
        say(f"waiting: sealing {sealing}; another operator has to say the same, with the same reason")
    return 0


def _open(config: Any, run: str) -> "tuple[Site, Desk]":
    from seawall.cli.config import find_config
    from seawall.cli.retention_desk import retention_desk
    from seawall.cli.site import Site

    site = Site(find_config(config))
    desk = retention_desk(site, run)
    for name, why in desk.absent.items():
        warn(f"store {name} does not answer, so its copies count for nothing and stay: {why}")
    return site, desk


def _text(moment: Any) -> str:
    return str(moment.isoformat()).replace("+00:00", "Z")


def _name(desk: "Desk", store: str) -> str:
    return next((place.name for place in desk.places if place.id == store), f"store {store[:12]}")


def _plan_document(desk: "Desk", known: "OpenPlan") -> dict[str, Any]:
    plan = known.plan
    return {
        "name": plan.name,
        "digest": plan.digest,
        "signer": plan.signer,
        "at": _text(plan.at),
        "ready_at": _text(known.ready_at),
        "not_after": _text(plan.not_after),
        "approved": known.approved,
        "left": known.left,
        "delete": [_deletion_document(desk, deletion) for deletion in plan.delete],
    }


def _deletion_document(desk: "Desk", deletion: "Deletion") -> dict[str, Any]:
    return {
        "sealing": deletion.sealing,
        "step": deletion.step,
        "store": _name(desk, deletion.store),
        "kind": deletion.kind.value,
        "reason": deletion.reason,
        "bytes": str(deletion.nbytes),
    }


def _decision_document(desk: "Desk", decision: "RetentionDecision") -> dict[str, Any]:
    return {
        "stopped": list(decision.stopped),
        "delete": [_deletion_document(desk, deletion) for deletion in decision.delete],
        "keep": [{"sealing": k.sealing, "step": k.step, "protected": k.protected, "reasons": list(k.reasons)} for k in decision.keep],
        "blocked": [{"sealing": b.sealing, "step": b.step, "store": _name(desk, b.store), "why": b.why} for b in decision.blocked],
        "later": decision.later,
    }


def _deletion_line(desk: "Desk", deletion: "Deletion") -> str:
    size = f", {human_bytes(deletion.nbytes)}" if deletion.nbytes else ""
    what = f"sealing {deletion.sealing[:12]}" if deletion.kind.value == "unfinished" else f"step {deletion.step}"
    return f"{what} in {_name(desk, deletion.store)}{size}: {deletion.reason}"


def _show_decision(desk: "Desk", decision: "RetentionDecision") -> None:
    for kept in decision.keep:
        say(f"keep    {'*' if kept.protected else ' '} step {kept.step}: {'; '.join(kept.reasons)}")
    for deletion in decision.delete:
        say(f"delete    {_deletion_line(desk, deletion)}")
    for item in decision.blocked:
        say(f"stays     step {item.step} in {_name(desk, item.store)}: {item.why}")
    for why in decision.stopped:
        warn(f"nothing is deleted: {why}")
    if decision.later:
        say(f"{decision.later} more copies are left to the next plan")
    if not decision.delete and not decision.stopped:
        say("nothing is to be deleted")


def _show_next(run: str, known: "OpenPlan") -> None:
    if not known.approved:
        say(f"  approve it: seawall retention approve {run} {known.plan.name}")
    say(f"  it may run from {known.ready_at:%Y-%m-%d %H:%M}Z until {known.plan.not_after:%Y-%m-%d %H:%M}Z, by the stores' clock")
