"""Alertmanager's API, version 2 (https://github.com/prometheus/alertmanager, api/v2/openapi.yaml): ``POST /api/v2/alerts``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seawall.alerts.alert import Alert, rfc3339
from seawall.alerts.http import post_json

_PATH = "/api/v2/alerts"
BATCH = 500
"""Alerts a request."""


@dataclass(frozen=True)
class Alertmanager:
    """One instance. A cluster's are told each, because they agree among themselves on who notifies."""

    url: str
    """Without path, or with the prefix that it is served under."""
    authorization: str = field(default="", repr=False)
    """Value of the Authorization header; a secret."""

    def send(self, alerts: Sequence[Alert]) -> None:
        """Post the alerts. Taking one twice is harmless. Raises an :class:`~seawall.errors.AlertError`."""
        headers: Mapping[str, str] = {"Authorization": self.authorization} if self.authorization else {}
        for start in range(0, len(alerts), BATCH):
            body = [_posted(alert) for alert in alerts[start : start + BATCH]]
            post_json(self.url.rstrip("/") + _PATH, body, headers=headers, idempotent=True)


def _posted(alert: Alert) -> dict[str, Any]:
    posted: dict[str, Any] = {
        "labels": alert.all_labels(),
        "annotations": {"summary": alert.summary, **({"description": alert.description} if alert.description else {})},
        "startsAt": rfc3339(alert.starts_at),
    }
    if alert.ends_at is not None:
        posted["endsAt"] = rfc3339(alert.ends_at)
    if alert.link:
        posted["generatorURL"] = alert.link
    return posted
