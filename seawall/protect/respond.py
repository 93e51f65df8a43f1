"""Carrying out what the integrity matrix calls for. The choice is made by :mod:`seawall.verify.responses`; here it is done, each act
under an operation id that is reserved beforehand, and what this host may not or must not do is handed on.

Which key does what: a writer heals; a verifier (or an operator) quarantines and holds; any of them records an incident.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seawall.clock import Clock
from seawall.errors import SeawallError
from seawall.log import verbs
from seawall.log.bodies import MAX_REASON
from seawall.log.entries import operation_id
from seawall.log.read import LogView
from seawall.protect.acts import Act, finish, record_incident, reserve
from seawall.protect.heal import Healed, HealError, heal
from seawall.protect.place import Place
from seawall.stores.base import Store
from seawall.vault.signing import SigningKey
from seawall.verify.matrix import Response
from seawall.verify.responses import Call

DONE = "done"
NOTHING = "nothing to do"
"""It was done before, or is not needed any more."""
WOULD = "would do"
HANDED_ON = "handed on"
"""For another task, host or person: ``detail`` says which."""
FAILED = "failed"
QUARANTINES = (Response.QUARANTINE, Response.QUARANTINE_AND_HOLD)


@dataclass(frozen=True)
class Hands:
    """What this host may do: the keys that it holds, and where."""

    coordination: Store
    clock: Clock
    writer: SigningKey | None = None
    speaker: SigningKey | None = None
    """A verifier's or an operator's key."""
    scratch: Path | None = None
    transfers: int = 16

    @property
    def any(self) -> SigningKey | None:
        """The key that an incident is signed with."""
        return self.speaker or self.writer


@dataclass(frozen=True)
class Answer:
    """What became of one call, about one copy where it is about copies."""

    call: Call
    status: str
    """One of the constants above."""
    detail: str = ""
    store: str = ""
    """Name of the place, for a copy."""
    op: str = ""
    """Operation id of the act or the incident; empty where nothing was written."""
    healed: Healed | None = None
    error: SeawallError | None = None


@dataclass
class Responded:
    """What was done about a matrix."""

    view: LogView
    """The log with what was appended."""
    answers: list[Answer] = field(default_factory=list)

    @property
    def catch_up(self) -> bool:
        """Whether a sync is called for now: Airflow starts one, a person is told to."""
        return any(answer.call.response is Response.CATCH_UP for answer in self.answers)

    @property
    def incidents(self) -> list[Answer]:
        """Those that found no safe way."""
        return [answer for answer in self.answers if answer.call.response is Response.INCIDENT or isinstance(answer.error, HealError)]


def respond(
    view: LogView,
    calls: Sequence[Call],
    places: Sequence[Place],
    hands: Hands,
    *,
    dry_run: bool = False,
    on_answer: Callable[[Answer], None] = lambda answer: None,
) -> Responded:
    """Carry out ``calls``, the most severe first as they come. ``places`` are the run's.

    One that fails is an answer and does not keep the others from being done. With ``dry_run`` nothing is written.
    """
    done = Responded(view)
    for call in calls:
        for answer in _answers(done, call, places, hands, dry_run):
            done.answers.append(answer)
            on_answer(answer)
    return done


def _answers(done: Responded, call: Call, places: Sequence[Place], hands: Hands, dry_run: bool) -> Iterator[Answer]:
    if call.response is Response.HEAL:
        yield from _heal(done.view, call, places, hands, dry_run)
        return
    try:
        if call.response in QUARANTINES:
            yield _quarantine(done, call, hands, dry_run)
        elif call.response is Response.INCIDENT:
            yield _incident(done.view, call, hands, dry_run)
        elif call.response is Response.CATCH_UP:
            yield Answer(call, HANDED_ON, f"`seawall sync {done.view.run}`, or the DAG of the sync, catches up")
        elif call.response is Response.PROVE:
            yield Answer(call, HANDED_ON, f"`seawall verify {done.view.run}` proves it again")
        elif call.response is Response.REVIEW:
            yield Answer(call, HANDED_ON, "a person has to decide; nothing was changed")
    except SeawallError as error:
        yield Answer(call, FAILED, str(error), error=error)


def _heal(view: LogView, call: Call, places: Sequence[Place], hands: Hands, dry_run: bool) -> Iterator[Answer]:
    """Every copy that the call is about, from the copies that are good, and after those from the others."""
    by_id = {place.id: place for place in places}
    commit = view.state.commit_of(call.sealing)
    sources = [by_id[store] for store in call.sources if store in by_id]
    sources += [place for place in places if place not in sources and not view.state.is_deleted(call.sealing, place.id)]
    for store in call.stores:
        target = by_id.get(store)
        if target is None:
            yield Answer(call, FAILED, f"store {store} is not configured here", store=store)
            continue
        if hands.writer is None and not dry_run:
            yield Answer(call, HANDED_ON, f"healing needs a writer's key: `seawall heal {view.run} --step {commit.step}`", target.name)
            continue
        try:
            healed = heal(
                view,
                commit,
                target,
                [place for place in sources if place is not target],
                coordination=hands.coordination,
                writer=None if dry_run else hands.writer,
                clock=hands.clock,
                scratch=hands.scratch,
                transfers=hands.transfers,
            )
        except HealError as error:
            yield _unhealed(view, call, target, error, hands, dry_run)
        except SeawallError as error:
            yield Answer(call, FAILED, str(error), target.name, error=error)
        else:
            yield Answer(call, _status(healed, dry_run), _said(healed), target.name, healed=healed)


def _status(healed: Healed, dry_run: bool) -> str:
    if healed.receipt is not None:
        return DONE
    return WOULD if dry_run and healed.repairs else NOTHING


def _said(healed: Healed) -> str:
    if not healed.repairs:
        return "every stored byte is what was signed"
    return f"{len(healed.repairs)} objects: {', '.join(repair.object for repair in healed.repairs[:8])}"


def _unhealed(view: LogView, call: Call, target: Place, error: HealError, hands: Hands, dry_run: bool) -> Answer:
    """The copies together do not hold it: an incident, and nothing was overwritten."""
    if dry_run or hands.any is None:
        return Answer(call, FAILED, str(error), target.name, error=error)
    op = report_unhealed(view, call.sealing, [target.id], error, hands)
    return Answer(call, FAILED, str(error), target.name, op, error=error)


def report_unhealed(view: LogView, sealing: str, stores: Sequence[str], error: HealError, hands: Hands) -> str:
    """Record as an incident that a copy cannot be healed; its operation id."""
    assert hands.any is not None
    return record_incident(hands.coordination, view, sealing, stores, error.what, error.missing, hands.any, hands.clock)


def _quarantine(done: Responded, call: Call, hands: Hands, dry_run: bool) -> Answer:
    view, reason, held = done.view, _cut(call.reason), call.response is Response.QUARANTINE_AND_HOLD
    marks = [view.state.marks[op] for op in view.state.quarantined.get(call.sealing, ())]
    needed = not any(mark.reason == reason for mark in marks), held and _hold_reason(call) not in view.state.hold_reasons()
    if not any(needed):
        return Answer(call, NOTHING, "it stands already")
    what = " and ".join(words for words, need in zip(("quarantine of the checkpoint", "hold of the run"), needed, strict=True) if need)
    if dry_run:
        return Answer(call, WOULD, what)
    if hands.speaker is None:
        return Answer(call, HANDED_ON, f"{what}: needs a verifier's or an operator's key")
    # What was lifted since is part of the request: after a lift the same words may be meant anew.
    lifted = sorted(mark.op for mark in view.state.marks.values() if mark.lifted_by and mark.sealing in ("", call.sealing))
    op = operation_id("respond", view.run, call.response.value, call.sealing, reason, *lifted)
    act = Act(call.response.value, op, call.sealing, call.stores, reason)
    reserve(hands.coordination, view, act, hands.speaker, hands.clock)
    if needed[0]:
        done.view = verbs.quarantine(hands.coordination, done.view, call.sealing, reason, hands.speaker, hands.clock)
    if needed[1]:
        done.view = verbs.hold(hands.coordination, done.view, _hold_reason(call), hands.speaker, hands.clock)
    finish(hands.coordination, done.view, act, what, hands.speaker, hands.clock)
    return Answer(call, DONE, what, op=op)


def _hold_reason(call: Call) -> str:
    """Why the run is held: the finding, and the step that it is about."""
    return _cut(f"step {call.step}: {call.reason}")


def _cut(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON else reason[: MAX_REASON - 1] + "…"


def _incident(view: LogView, call: Call, hands: Hands, dry_run: bool) -> Answer:
    advice = f"`seawall heal {view.run} --step {call.step} --dry-run` says whether the copies together still hold it"
    if dry_run:
        return Answer(call, WOULD, f"record of an incident; {advice}")
    if hands.any is None:
        return Answer(call, HANDED_ON, f"an incident is signed by a writer's, verifier's or operator's key; {advice}")
    op = record_incident(hands.coordination, view, call.sealing, call.stores, call.reason, {}, hands.any, hands.clock)
    return Answer(call, DONE, f"nothing was overwritten; {advice}", op=op)
