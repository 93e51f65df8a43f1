"""What people are told: an alert that stands or is over, and a message about something that happened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

Severity = Literal["critical", "warning", "info"]


@dataclass(frozen=True)
class Alert:
    """A state of affairs. Alertmanager knows it again by its labels, so what changes while it stands belongs into ``description``."""

    name: str
    """``alertname``: CamelCase, one severity each."""
    severity: Severity
    summary: str
    """One line."""
    starts_at: datetime
    labels: Mapping[str, str] = field(default_factory=dict)
    """Beside name and severity: run, store, dimension. Empty ones are left out."""
    description: str = ""
    ends_at: datetime | None = None
    """When it was over; None while it stands."""
    link: str = ""
    """Where to look: the Airflow task. A whole URL, or empty."""

    def over(self, now: datetime) -> bool:
        """Whether it is over at ``now``."""
        return self.ends_at is not None and self.ends_at <= now

    def all_labels(self) -> dict[str, str]:
        """What it is known by."""
        own = {name: value for name, value in self.labels.items() if value}
        return {"alertname": self.name, "severity": self.severity, "service": "seawall", **own}


@dataclass(frozen=True)
class Message:
    """Something that happened, for a chat: a title, and lines of Markdown."""

    title: str
    lines: tuple[str, ...]
    link: str = ""


def rfc3339(moment: datetime) -> str:
    """As Alertmanager's API takes it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
