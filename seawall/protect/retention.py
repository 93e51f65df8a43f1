"""Retention: plan, approve, run. Safe to ask twice, at once, and again after a kill at any instant.

1. :func:`make_plan` decides from fresh facts and signs the list of copies. Nothing is deleted for the cooling-off time.
2. :func:`approve_plan`: an operator agrees to exactly that list, by its digest.
3. :func:`run_plan` takes the run's retention lease and decides again before every copy. What got worse meanwhile drops out, and what
   stops retention stops it there. :mod:`seawall.protect.retention_copy` says how one copy goes.
"""

import contextlib
from dataclasses import dataclass
from datetime import datetime

from seawall.clock import utc_text
from seawall.errors import CorruptError, IncompleteError, NoSuchCopyError, NoSuchObjectError, ObjectExistsError, TrustError, UsageError
from seawall.log.read import LogView
from seawall.log.records import list_records, read_record, record_key, sign_record
from seawall.log.state import RunState
from seawall.protect.retention_clock import Moment, has_clock
from seawall.protect.retention_document import APPROVAL, PLAN, Plan, name_of_moment, plan_body, plan_name, read_plan
from seawall.protect.retention_gather import Desk, Gathered, gather
from seawall.protect.retention_plan import RetentionDecision, decide
from seawall.protect.retention_work import RetentionRun, work_off
from seawall.vault.signing import SigningKey


@dataclass(frozen=True)
class Planned:
    """What :func:`make_plan` found and wrote."""

    gathered: Gathered
    decision: RetentionDecision
    plan: Plan | None
    """The signed plan; None when nothing is to be deleted, or nothing was to be written."""
    fresh: bool = False
    """False when an earlier plan says the same and is still good."""


@dataclass(frozen=True)
class OpenPlan:
    """A plan that may still be carried out, now or later."""

    plan: Plan
    ready_at: datetime
    """When it will have cooled off, counted from its arrival by the store's clock."""
    approved: bool
    left: int
    """Copies of it that have no tombstone yet."""


def make_plan(desk: Desk, operator: SigningKey | None) -> Planned:
    """Decide, and sign the list if there is one. Without ``operator`` nothing is written.

    A plan of the same copies that is still good is found instead of written again, so that a daily task does not start the
    cooling-off anew. Raises what :func:`~seawall.protect.retention_gather.gather` raises.
    """
    gathered = gather(desk)
    decision = decide(gathered.facts, desk.settings)
    if operator is None or not decision.delete:
        return Planned(gathered, decision, None)
    wanted = frozenset(deletion.copy for deletion in decision.delete)
    for known in open_plans(desk, gathered.view.state, gathered.moment):
        if known.plan.copies == wanted:
            return Planned(gathered, decision, known.plan)
    body = plan_body(gathered, decision, desk.settings)
    record = sign_record(desk.coordination.store, desk.run, PLAN, plan_name(body), body, [operator])
    return Planned(gathered, decision, read_plan(record), fresh=True)


def open_plans(desk: Desk, state: RunState, moment: Moment) -> list[OpenPlan]:
    """Plans that are not too old, newest first. Those whose signer's key was revoked since are none."""
    oldest = name_of_moment(moment.now - desk.settings.cooling_off - desk.settings.plan_valid)
    names = sorted(list_records(desk.coordination.store, desk.run, PLAN, after=oldest), reverse=True)
    found = []
    for name in names:
        # What somebody planted there, or signed with a key that was revoked since, is no plan.
        with contextlib.suppress(TrustError, CorruptError):
            found.append(look_up(desk, state, name))
    return [known for known in found if moment.now <= known.plan.not_after]


def look_up(desk: Desk, state: RunState, name: str) -> OpenPlan:
    """The plan of that name. :class:`NoSuchCopyError` if there is none."""
    store, run = desk.coordination.store, desk.run
    try:
        plan = read_plan(read_record(store, run, PLAN, name, state.resolver("operator")))
        arrived = store.head(record_key(run, PLAN, name)).modified
    except NoSuchObjectError as error:
        raise NoSuchCopyError("there is no such plan", where=f"{run} {name}", do="`seawall retention plan` makes one") from error
    # A plan says itself when it was made; when it arrived is what the store says.
    at = plan.at
    if arrived is not None and has_clock(desk.coordination, desk.settings.local_clock):
        at = max(at, arrived)
    ready = at + max(desk.settings.cooling_off, plan.not_before - plan.at)
    left = sum(not state.is_deleted(deletion.sealing, deletion.store) for deletion in plan.delete)
    return OpenPlan(plan, ready, _is_approved(desk, state, plan), left)


def _is_approved(desk: Desk, state: RunState, plan: Plan) -> bool:
    try:
        record = read_record(desk.coordination.store, desk.run, APPROVAL, plan.digest, state.resolver("operator"))
    except (NoSuchObjectError, TrustError, CorruptError):
        return False
    return record.body.get("plan") == plan.digest


def approve_plan(desk: Desk, view: LogView, moment: Moment, name: str, operator: SigningKey) -> OpenPlan:
    """Agree to a plan, by its digest. Approving twice is no error. :class:`UsageError` for a plan that is too old."""
    known = look_up(desk, view.state, name)
    _check_age(known.plan, moment)
    if not known.approved:
        body = {"plan": known.plan.digest, "at": utc_text(moment.now)}
        # Another operator may approve it in the same moment.
        with contextlib.suppress(ObjectExistsError):
            sign_record(desk.coordination.store, desk.run, APPROVAL, known.plan.digest, body, [operator])
        known = look_up(desk, view.state, name)
    if not known.approved:
        raise TrustError(
            "the plan cannot be approved", where=f"{desk.run} {name}", why="a record that does not count lies in the approval's place"
        )
    return known


def run_plan(desk: Desk, name: str | None, operator: SigningKey, transfers: int = 16) -> RetentionRun:
    """Carry out the named plan, or the newest that is approved and has cooled off; and finish what an earlier run began.

    Raises :class:`IncompleteError` for a plan that is not approved or has not cooled off, :class:`UsageError` for one that is too
    old, :class:`BusyError` while somebody else holds the lease or when it was lost.
    """
    gathered = gather(desk)
    state, moment = gathered.view.state, gathered.moment
    if name is not None:
        chosen: OpenPlan | None = look_up(desk, state, name)
    else:
        ready = [known for known in open_plans(desk, state, moment) if known.left and known.approved and known.ready_at <= moment.now]
        chosen = ready[0] if ready else None
    if chosen is not None:
        _check_ready(chosen, moment)
    elif not gathered.buried:
        return RetentionRun(None, gathered.view)
    return work_off(desk, gathered, chosen.plan if chosen is not None else None, operator, transfers)


def _check_age(plan: Plan, moment: Moment) -> None:
    if moment.now > plan.not_after:
        raise UsageError(
            "the plan is too old to be carried out",
            where=f"{plan.run} {plan.name}",
            why=f"it was good until {plan.not_after:%Y-%m-%d %H:%M}Z, by {moment.clock} it is {moment.now:%Y-%m-%d %H:%M}Z",
            do="make a new plan",
        )


def _check_ready(known: OpenPlan, moment: Moment) -> None:
    _check_age(known.plan, moment)
    where = f"{known.plan.run} {known.plan.name}"
    if not known.approved:
        raise IncompleteError("the plan is not approved", where=where, do=f"`seawall retention approve {known.plan.run} {known.plan.name}`")
    if moment.now < known.ready_at:
        raise IncompleteError(
            "the plan has not cooled off yet",
            where=where,
            why=f"it may run from {known.ready_at:%Y-%m-%d %H:%M}Z on, by {moment.clock} it is {moment.now:%Y-%m-%d %H:%M}Z",
            do="run it after that",
        )
