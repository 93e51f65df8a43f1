"""Telling people what a task found or did, with a link to it. Nobody who does not answer fails the task."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow.sdk.definitions.context import Context

if TYPE_CHECKING:
    from seawall.alerts.send import Delivery
    from seawall.cli.judged_run import JudgedRun
    from seawall.operators.site import AirflowSite
    from seawall.protect.respond import Responded


def task_link(context: Context) -> str:
    """Address of the running task's log; empty where an operator is called by hand."""
    return str(getattr(context.get("ti"), "log_url", "") or "")


def tell_matrix(site: "AirflowSite", judged: "JudgedRun", context: Context, warn: Callable[[str], None]) -> None:
    """Every Alertmanager hears what stands and what is over. The same matrix says nothing new."""
    from seawall.alerts.send import send_alerts
    from seawall.protect.notices import alerts_of

    receivers = site.receivers()
    if receivers.alertmanagers:
        _note(send_alerts(receivers, alerts_of(judged.matrix, site.clock.now(), task_link(context))), warn)


def tell_answers(site: "AirflowSite", done: "Responded", context: Context, warn: Callable[[str], None]) -> None:
    """The chat hears what was done, and what could not be."""
    from seawall.alerts.send import send_message
    from seawall.protect.notices import message_of

    message = message_of(done, task_link(context))
    if message is not None:
        _note(send_message(site.receivers(), message, site.clock.now()), warn)


def _note(deliveries: "list[Delivery]", warn: Callable[[str], None]) -> None:
    for delivery in deliveries:
        if delivery.error is not None:
            warn(f"{delivery.receiver} was not told: {delivery.error}")
