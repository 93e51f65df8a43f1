"""``seawall alerts``: whether those who are to be told can be told."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import typer

from seawall.cli.options import ConfigOption, JsonOption
from seawall.cli.output import emit, say, warn
from seawall.cli.worst import worst_code
from seawall.errors import UsageError

if TYPE_CHECKING:
    from seawall.alerts.send import Delivery

app = typer.Typer(no_args_is_help=True, help="Telling people.")

_STANDS = timedelta(minutes=1)
"""How long the test's alert stands: long enough for a notification under short group waits, and gone by itself."""


@app.callback()
def _group() -> None:
    """Keeps `test` a subcommand although it is the only one."""


@app.command("test")
def send_test(config: ConfigOption = None, json: JsonOption = False) -> int:
    """Send a test alert to every Alertmanager, and a test message to the DingTalk robot. Exit 7 when one does not take it."""
    from seawall.alerts.alert import Alert, Message
    from seawall.alerts.send import send_alerts, send_message
    from seawall.cli.config import find_config
    from seawall.cli.site import Site

    site = Site(find_config(config))
    receivers = site.receivers()
    if not receivers.alertmanagers and receivers.dingtalk is None:
        raise UsageError(
            "nobody is to be told",
            where=str(site.path),
            why="[alerts] names no receiver, and $SEAWALL_DINGTALK_WEBHOOK is not set",
            do="add alertmanager or dingtalk_file under [alerts]",
        )
    now = site.clock.now()
    summary = "a test: whoever reads this would be told of a damaged copy"
    alert = Alert("SeawallTest", "info", summary, now, ends_at=now + _STANDS)
    deliveries = [*send_alerts(receivers, [alert]), *send_message(receivers, Message("seawall: a test", (summary,)), now)]
    if json:
        emit({"deliveries": [as_json(delivery) for delivery in deliveries]})
    else:
        tell(deliveries)
    return worst_code(delivery.error for delivery in deliveries if delivery.error is not None)


def as_json(delivery: "Delivery") -> dict[str, Any]:
    """One sending, for ``--json``."""
    return {"receiver": delivery.receiver, "sent": delivery.error is None, "why": "" if delivery.error is None else str(delivery.error)}


def tell(deliveries: "list[Delivery]") -> None:
    """What became of sendings, a line each."""
    for delivery in deliveries:
        if delivery.error is None:
            say(f"told {delivery.receiver}")
        else:
            warn(f"{delivery.receiver} was not told: {delivery.error}")
