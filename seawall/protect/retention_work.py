"""Carrying out an approved plan under the run's retention lease, copy by copy, with the decision made again before each."""

import contextlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from seawall.clock import parse_utc
from seawall.errors import BusyError, StoreError, TrustError
from seawall.log import verbs
from seawall.log.bodies import RETENTION
from seawall.log.read import LogView, read_log
from seawall.log.state import LeaseRecord
from seawall.protect.place import Place
from seawall.protect.retention_clock import decisive_moment
from seawall.protect.retention_copy import MAX_ROUNDS, DoomedObject, intended, objects_of, remove, remove_leftovers, write_intent
from seawall.protect.retention_document import Plan
from seawall.protect.retention_gather import Desk, Gathered, gather
from seawall.protect.retention_plan import Deletion, RetentionDecision, decide
from seawall.vault.signing import SigningKey

DECISION_LASTS = timedelta(minutes=5)
"""Nothing is deleted on facts older than this, even if the log has not changed: a proof may have lapsed meanwhile."""

DELETED, FINISHED, DROPPED, CUT_SHORT = "deleted", "finished", "dropped", "cut short"


@dataclass(frozen=True, slots=True)
class CopyOutcome:
    """What became of one copy."""

    sealing: str
    store: str
    step: int
    outcome: str
    """``deleted``; ``finished`` (a run before had begun); ``dropped`` (it may not go any more); ``cut short`` (the store failed)."""
    why: str = ""
    objects: int = 0


@dataclass
class RetentionRun:
    """What a run of a plan did."""

    plan: Plan | None
    view: LogView
    stopped: tuple[str, ...] = ()
    """Why it ended before the end of the plan."""
    copies: list[CopyOutcome] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        """Copies with this outcome."""
        return sum(copy.outcome == outcome for copy in self.copies)


def work_off(desk: Desk, gathered: Gathered, plan: Plan | None, operator: SigningKey, transfers: int) -> RetentionRun:
    """Finish what earlier runs began, then carry out ``plan``, which is approved and has cooled off.

    Raises :class:`BusyError` while somebody else holds the lease, or when it was lost; running it again goes on.
    """
    run = RetentionRun(plan, gathered.view)
    run.stopped = _in_the_way_of_all(gathered, desk)
    if run.stopped:
        return run
    worker = _Worker(desk, gathered, operator, transfers)
    worker.hold()
    try:
        for sealing, store in gathered.buried:
            run.copies.append(worker.finish_buried(sealing, store))
        for deletion in plan.delete if plan is not None else ():
            if worker.is_buried(deletion):
                continue
            stopped, why = worker.why_not(deletion)
            if stopped:
                run.stopped = stopped
                break
            if why:
                run.copies.append(CopyOutcome(deletion.sealing, deletion.store, deletion.step, DROPPED, why))
                continue
            assert plan is not None, "it has this deletion"
            run.copies.append(worker.delete(deletion, plan.digest))
    finally:
        run.view = worker.release()
    return run


def _in_the_way_of_all(gathered: Gathered, desk: Desk) -> tuple[str, ...]:
    """Why not even what was begun goes on: what is still stored of it may be wanted as evidence, or as all that is left."""
    decision = decide(gathered.facts, desk.settings)
    if decision.stopped or any(kept.protected for kept in decision.keep):
        return decision.stopped
    return ("no checkpoint is proved well enough to be counted on",)


class _Worker:
    """One process's turn: its lease, its view of the log, and the decision that it acts on."""

    def __init__(self, desk: Desk, gathered: Gathered, operator: SigningKey, transfers: int) -> None:
        self._desk = desk
        self._operator = operator
        self._transfers = transfers
        # The same policy without the bound on one plan: what the plan lists is bounded already.
        self._policy = desk.settings.model_copy(update={"max_deletions": 1 << 31})
        self._view = gathered.view
        self._holder = f"{operator.key_id} {secrets.token_hex(8)}"
        self._lease: LeaseRecord | None = None
        self._decision: RetentionDecision | None = None
        self._decided_at = gathered.moment.now
        self._decided_seq = 0

    def hold(self) -> int:
        """Take the lease, or extend it when half of it is over; its fencing number."""
        now, length = self._now(), self._desk.settings.lease
        if self._lease is None or parse_utc(self._lease.until) - now < length / 2:
            self._take(now, now + length)
        assert self._lease is not None, "it was just taken"
        return self._lease.seq

    def release(self) -> LogView:
        """Give the lease back, so that nobody waits for its end; the log as it is then."""
        # What is raised on the way out is what the caller has to hear. The lease ends by itself.
        with contextlib.suppress(BusyError, StoreError, TrustError):
            now = self._now()
            self._take(now, now)
        return self._view

    def _take(self, taken: datetime, until: datetime) -> None:
        before = self._view
        self._view, self._lease = verbs.take_lease(
            self._desk.coordination.store, before, self._holder, RETENTION, taken, until, self._operator, self._desk.clock
        )
        self._covers_own_entry(before)

    def _covers_own_entry(self, before: LogView) -> None:
        # An entry of ours changes no fact. If somebody else's came with it, the decision is made again.
        if self._decided_seq == before.seq and self._view.seq <= before.seq + 1:
            self._decided_seq = self._view.seq

    def _now(self) -> datetime:
        desk = self._desk
        return decisive_moment(desk.coordination, desk.places, self._view.state, desk.clock, local_clock=desk.settings.local_clock).now

    def is_buried(self, deletion: Deletion) -> bool:
        """Whether the log has its tombstone already."""
        return self._view.state.is_deleted(deletion.sealing, deletion.store)

    def why_not(self, deletion: Deletion) -> tuple[tuple[str, ...], str]:
        """What stops everything now, and why this copy may not go; both empty when it may. The log is read to its end first."""
        store = self._desk.coordination.store
        self._view = read_log(store, self._view.run, self._view.state.root, self._view)
        now = self._now()
        if self._decision is None or self._view.seq != self._decided_seq or now - self._decided_at > DECISION_LASTS:
            gathered = gather(self._desk)
            self._view, self._decided_seq, self._decided_at = gathered.view, gathered.view.seq, gathered.moment.now
            self._decision = decide(gathered.facts, self._policy)
        if self._decision.stopped:
            return self._decision.stopped, ""
        if deletion.copy in {fresh.copy for fresh in self._decision.delete}:
            return (), ""
        kept = next((kept.reasons for kept in self._decision.keep if kept.sealing == deletion.sealing), ())
        blocked = [item.why for item in self._decision.blocked if (item.sealing, item.store) == deletion.copy]
        return (), "; ".join([*kept, *blocked]) or "there is no such copy any more"

    def delete(self, deletion: Deletion, plan: str) -> CopyOutcome:
        """One copy: its objects written down, its tombstone, its objects."""
        desk = self._desk
        place = desk.place_of(deletion.store)
        assert place is not None, "the decision named a store that answers"
        lease = self.hold()
        doomed = objects_of(place, desk.run, deletion.sealing, self._transfers)
        locked = max((item.locked_until for item in doomed if item.locked_until is not None), default=None)
        if locked is not None and self._now() < locked:
            # A tombstone now would leave half a copy behind until the lock ends.
            return CopyOutcome(deletion.sealing, place.id, deletion.step, DROPPED, f"locked until {locked:%Y-%m-%d %H:%M}Z")
        write_intent(desk.coordination.store, desk.run, place, deletion.sealing, doomed, plan, lease, self._operator)
        before = self._view
        self._view = verbs.tombstone(desk.coordination.store, before, deletion.sealing, place.id, plan, lease, self._operator, desk.clock)
        self._covers_own_entry(before)
        return self._finish(place, deletion.sealing, deletion.step, plan, DELETED)

    def finish_buried(self, sealing: str, store: str) -> CopyOutcome:
        """Go on with a copy that has its tombstone and of which something is still stored."""
        state = self._view.state
        place = self._desk.place_of(store)
        assert place is not None, "something was found in it"
        commit = state.commits.get(sealing) or state.orphans.get(sealing)
        (plan,) = [record.plan for record in state.tombstones[sealing] if record.store == store]
        return self._finish(place, sealing, commit.step if commit is not None else 0, plan, FINISHED)

    def _finish(self, place: Place, sealing: str, step: int, plan: str, outcome: str) -> CopyOutcome:
        done = 0
        try:
            for _ in range(MAX_ROUNDS):
                doomed = objects_of(place, self._desk.run, sealing, self._transfers)
                if not doomed:
                    remove_leftovers(place, self._desk.run, sealing)
                    return CopyOutcome(sealing, place.id, step, outcome, objects=done)
                done += self._round(place, sealing, plan, doomed)
        except BusyError:
            raise
        except StoreError as error:
            return CopyOutcome(sealing, place.id, step, CUT_SHORT, str(error), done)
        return CopyOutcome(sealing, place.id, step, CUT_SHORT, "something is written there again and again", done)

    def _round(self, place: Place, sealing: str, plan: str, doomed: Sequence[DoomedObject]) -> int:
        desk = self._desk
        lease = self.hold()
        known = intended(desk.coordination.store, self._view.state, place, sealing)
        news = [item for item in doomed if (item.key, item.version) not in known]
        if news:
            # A version that came to light, or what a sync wrote before it heard of the tombstone.
            write_intent(desk.coordination.store, desk.run, place, sealing, news, plan, lease, self._operator)
        return remove(place, desk.run, sealing, doomed, self._transfers)
