"""The ``[alerts]`` table of seawall.toml, and the secrets that never stand in it."""

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, field_validator

from seawall.errors import ConfigurationError, KeyMissingError

if TYPE_CHECKING:
    from seawall.alerts.alertmanager import Alertmanager
    from seawall.alerts.dingtalk import DingTalk

WEBHOOK = "SEAWALL_DINGTALK_WEBHOOK"
SECRET = "SEAWALL_DINGTALK_SECRET"  # pragma: allowlist secret
AUTHORIZATION = "SEAWALL_ALERTMANAGER_AUTHORIZATION"
_MAX_FILE_BYTES = 4096


class AlertSettings(BaseModel):
    """``[alerts]``: whom to tell."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    alertmanager: tuple[str, ...] = ()
    """URL of every instance. Credentials in it are refused."""
    dingtalk_file: str | None = None
    """File of mode 0600 with ``webhook`` and ``secret`` of a robot."""
    dingtalk_conn_id: str | None = None
    """Inside Airflow: the connection with the robot's token and secret."""

    @field_validator("alertmanager")
    @classmethod
    def _plain_addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("an Alertmanager is written http://host:port")
            if parts.username or parts.password or parts.query:
                raise ValueError(f"credentials do not stand in this file: give the header's value in ${AUTHORIZATION}")
        return urls


def alertmanagers(settings: AlertSettings, environment: Mapping[str, str] = os.environ) -> "tuple[Alertmanager, ...]":
    """The configured instances, with the header's value of ``$SEAWALL_ALERTMANAGER_AUTHORIZATION`` where it is set."""
    # Here, because every command reads this file's settings, and few tell anybody anything.
    from seawall.alerts.alertmanager import Alertmanager

    return tuple(Alertmanager(url, environment.get(AUTHORIZATION, "")) for url in settings.alertmanager)


def dingtalk_of_host(settings: AlertSettings, folder: Path, environment: Mapping[str, str] = os.environ) -> "DingTalk | None":
    """The robot of ``$SEAWALL_DINGTALK_WEBHOOK``, else of the configured file (relative to ``folder``), else None.

    Raises :class:`KeyMissingError` when the file is not there, :class:`ConfigurationError` when it is not what it should be.
    """
    if environment.get(WEBHOOK):
        return checked_robot(environment[WEBHOOK], environment.get(SECRET, ""), f"${WEBHOOK}")
    if settings.dingtalk_file is None:
        return None
    path = folder / Path(settings.dingtalk_file).expanduser()
    try:
        raw = _read_private(path)
        document = tomllib.loads(raw.decode())
    except OSError as error:
        raise KeyMissingError("the robot's file is not there", where=str(path), why=error.strerror or "") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise ConfigurationError("the robot's file is no TOML", where=str(path), do='write webhook = "…" and secret = "…"') from None
    if set(document) - {"webhook", "secret"} or not all(isinstance(value, str) for value in document.values()):
        raise ConfigurationError("the robot's file holds webhook and secret, both text", where=str(path))
    return checked_robot(document.get("webhook", ""), document.get("secret", ""), str(path))


def checked_robot(webhook: str, secret: str, where: str) -> "DingTalk":
    """A robot whose address is one. The error names where it came from, never what it is."""
    try:
        parts = urlsplit(webhook)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and "access_token=" in parts.query
    except ValueError:
        valid = False
    if not valid:
        raise ConfigurationError(
            "this is no robot's webhook", where=where, do="copy it whole from the group's settings, https://…?access_token=…"
        )
    from seawall.alerts.dingtalk import DingTalk

    return DingTalk(webhook, secret)


def _read_private(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise ConfigurationError("others may read the robot's file", where=str(path), why=f"mode {mode:04o}", do=f"chmod 600 {path}")
        return file.read(_MAX_FILE_BYTES)
