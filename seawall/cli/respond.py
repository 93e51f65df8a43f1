"""``seawall respond``: do what a run's integrity matrix calls for, and tell people."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, RunArgument
from seawall.cli.output import emit, say, warn
from seawall.cli.worst import worst_code
from seawall.errors import CorruptError

if TYPE_CHECKING:
    from seawall.alerts.send import Delivery
    from seawall.cli.judged_run import JudgedRun
    from seawall.cli.site import Site
    from seawall.protect.respond import Answer, Hands, Responded


@dataclass(frozen=True)
class RespondedRun:
    """What was found, done and told."""

    judged: "JudgedRun"
    done: "Responded"
    deliveries: "list[Delivery]" = field(default_factory=list)
    mirrors_behind: dict[str, str] = field(default_factory=dict)


def respond(
    run: RunArgument,
    no_alerts: Annotated[bool, typer.Option("--no-alerts", help="Tell neither Alertmanager nor DingTalk.")] = False,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Judge every copy of a run by log and proofs, and do what that calls for: heal, quarantine, hold, or record an incident.

    Exit 4 when a checkpoint has no good copy left or a heal found no right bytes.
    """
    from seawall.cli.config import find_config
    from seawall.cli.site import Site

    site = Site(find_config(config))
    answered = respond_to_run(
        site, run, dry_run=dry_run, tell=not no_alerts, on_problem=warn, on_answer=(lambda answer: None) if json else _show
    )
    site.close()
    if json:
        emit(_document(run, answered, dry_run))
    else:
        if not answered.done.answers:
            say(f"run {run}: nothing is called for, its copies are {answered.judged.matrix.verdict.value}")
        for delivery in answered.deliveries:
            if delivery.error is not None:
                warn(f"{delivery.receiver} was not told: {delivery.error}")
    errors = [answer.error for answer in answered.done.answers if answer.error is not None]
    return worst_code([*errors, *(CorruptError.exit_code for _ in answered.done.incidents)])


def respond_to_run(
    site: "Site",
    run: str,
    *,
    dry_run: bool = False,
    tell: bool = True,
    link: str = "",
    on_problem: Callable[[str], None],
    on_answer: "Callable[[Answer], None]" = lambda answer: None,
) -> RespondedRun:
    """Judge, act, tell. ``link`` is the address of the task that does it, for those who are told.

    A dry run writes nothing and tells nobody. What could not be told is in the answer and never raised.
    """
    from seawall.alerts.send import send_alerts, send_message
    from seawall.cli.judged_run import judged_run
    from seawall.protect.notices import alerts_of, message_of
    from seawall.protect.respond import respond as carry_out
    from seawall.verify.mirror_proofs import spread
    from seawall.verify.responses import responses

    judged = judged_run(site, run, on_problem)
    done = carry_out(judged.view, responses(judged.matrix), judged.places, hands_of(site), dry_run=dry_run, on_answer=on_answer)
    behind: dict[str, str] = {}
    if done.view.seq > judged.view.seq:
        site.remember(done.view)
        behind = spread(site.coordination.store, done.view, site.mirrors(run))
        for name, why in behind.items():
            on_problem(f"the mirror in {name} is behind: {why}")
    if dry_run or not tell:
        return RespondedRun(judged, done, [], behind)
    receivers, now = site.receivers(), site.clock.now()
    deliveries = send_alerts(receivers, alerts_of(judged.matrix, now, link))
    message = message_of(done, link)
    if message is not None:
        deliveries += send_message(receivers, message, now)
    return RespondedRun(judged, done, deliveries, behind)


def hands_of(site: "Site") -> "Hands":
    """What this host may do: with a writer's key heal, with a verifier's or an operator's quarantine and hold."""
    from seawall.protect.respond import Hands

    speakers = [role for role in ("verifier", "operator") if site.has_signing_key(role)]
    return Hands(
        site.coordination.store,
        site.clock,
        site.signing_key("writer") if site.has_signing_key("writer") else None,
        site.signing_key(speakers[0]) if speakers else None,
        site.scratch,
        site.config.transfer.transfers,
    )


def _document(run: str, answered: RespondedRun, dry_run: bool) -> dict[str, Any]:
    from seawall.cli.alerts import as_json

    return {
        "run": run,
        "status": "dry-run" if dry_run else "done",
        "verdict": answered.judged.matrix.verdict.value,
        "answers": [_answer(answer) for answer in answered.done.answers],
        "catch_up": answered.done.catch_up,
        "incidents": [answer.op for answer in answered.done.incidents],
        "deliveries": [as_json(delivery) for delivery in answered.deliveries],
        "mirrors_behind": answered.mirrors_behind,
    }


def _answer(answer: "Answer") -> dict[str, Any]:
    call = answer.call
    return {
        "response": call.response.value,
        "dimension": call.dimension.value,
        "step": call.step,
        "sealing": call.sealing,
        "store": answer.store,
        "reason": call.reason,
        "status": answer.status,
        "detail": answer.detail,
        "operation": answer.op,
    }


def _show(answer: "Answer") -> None:
    call = answer.call
    where = f" in {answer.store}" if answer.store else ""
    what = f"{call.response.value} {'run' if call.step is None else f'step {call.step}'}{where}"
    say(f"{what}: {answer.status}{', ' + answer.detail if answer.detail else ''}")
    say(f"  because of {call.reason}")
