"""Telling people what a task found or did, with a link to it. Nobody who does not answer fails the task."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from airflow.sdk.definitions.context import Context

from seawall.operators.notifiers import task_address

if TYPE_CHECKING:
    from seawall.alerts.send import Delivery
    from seawall.cli.judged_run import JudgedRun
    from seawall.operators.site import AirflowSite
    from seawall.protect.respond import Responded


def tell_matrix(site: "AirflowSite", judged: "JudgedRun", context: Context, warn: Callable[[str], None]) -> None:
    """Every Alertmanager hears what stands and what is over. The same matrix says nothing new."""
    from seawall.alerts.send import send_alerts
    from seawall.protect.notices import alerts_of

    receivers = site.receivers()
    if receivers.alertmanagers:
        _note(send_alerts(receivers, alerts_of(judged.matrix, site.clock.now(), task_address(context))), warn)


def tell(site: "AirflowSite", title: str, lines: Sequence[str], context: Context, warn: Callable[[str], None]) -> None:
    """The chat hears of something that a person should look at."""
    from seawall.alerts.alert import Message
    from seawall.alerts.send import send_message

    _note(send_message(site.receivers(), Message(title, tuple(lines), task_address(context)), site.clock.now()), warn)


def tell_answers(site: "AirflowSite", done: "Responded", context: Context, warn: Callable[[str], None]) -> None:
    """The chat hears what was done, and what could not be."""
    from seawall.alerts.send import send_message
    from seawall.protect.notices import message_of

    message = message_of(done, task_address(context))
    if message is not None:
        _note(send_message(site.receivers(), message, site.clock.now()), warn)


def _note(deliveries: "list[Delivery]", warn: Callable[[str], None]) -> None:
    for delivery in deliveries:
        if delivery.error is not None:
            warn(f"{delivery.receiver} was not told: {delivery.error}")
