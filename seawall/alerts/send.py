"""Sending to all receivers, within bounds: whoever reports on work must not break it."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from seawall.alerts.alert import Alert, Message
from seawall.alerts.alertmanager import Alertmanager
from seawall.alerts.dingtalk import DingTalk
from seawall.alerts.http import shown
from seawall.errors import AlertError, AlertUnavailableError

ATTEMPTS = 3
SECONDS = 20.0
"""For all attempts at one receiver."""

# Retries are told to whoever configured logging, instead of to stderr by Python's last resort.
logging.getLogger("stamina").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Receivers:
    """Whom to tell. Nobody is a choice."""

    alertmanagers: tuple[Alertmanager, ...] = ()
    dingtalk: DingTalk | None = None


@dataclass(frozen=True)
class Delivery:
    """What became of one sending."""

    receiver: str
    """Kind and address, without secrets."""
    error: AlertError | None = None
    """None when it was taken."""


def send_alerts(receivers: Receivers, alerts: Sequence[Alert]) -> list[Delivery]:
    """Tell every Alertmanager. Raises nothing: what was not taken is in the answer, for whoever called to say."""
    if not alerts:
        return []
    return [_delivered(f"alertmanager {shown(one.url)}", lambda one=one: one.send(alerts)) for one in receivers.alertmanagers]  # type: ignore[misc]


def send_message(receivers: Receivers, message: Message, now: datetime) -> list[Delivery]:
    """Tell the chat, likewise."""
    robot = receivers.dingtalk
    return [] if robot is None else [_delivered(f"dingtalk {robot.where}", lambda: robot.send(message, now))]


def _delivered(receiver: str, send: Callable[[], None]) -> Delivery:
    import stamina
    from stamina.instrumentation import LoggingOnRetryHook, set_on_retry_hooks

    set_on_retry_hooks([LoggingOnRetryHook])
    try:
        for attempt in stamina.retry_context(on=AlertUnavailableError, attempts=ATTEMPTS, timeout=SECONDS, wait_initial=0.2, wait_max=5.0):
            with attempt:
                send()
    except AlertError as error:
        return Delivery(receiver, error)
    return Delivery(receiver)
