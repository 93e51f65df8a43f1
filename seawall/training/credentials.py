"""How training proves to Airflow who it is: a token, or a name and password, from the environment or a file that only its owner reads."""

import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from seawall.errors import ConfigurationError

TOKEN, USERNAME, PASSWORD = "SEAWALL_AIRFLOW_TOKEN", "SEAWALL_AIRFLOW_USERNAME", "SEAWALL_AIRFLOW_PASSWORD"
_MAX_FILE = 1 << 16


@dataclass(frozen=True)
class Credentials:
    """Either a bearer token, or username and password to get one with. Shows nothing of them when it is printed."""

    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


CredentialsSource = Callable[[], Credentials]
"""Asked again whenever a token is refused, so that rotated credentials are picked up without a restart."""


def from_file(path: Path) -> CredentialsSource:
    """Reads ``{"username": …, "password": …}`` or ``{"token": …}`` from a file of mode 0600 or stricter.

    :class:`ConfigurationError` for a file that is missing, open to others, or of another form. The first reading is done at once.
    """

    def read() -> Credentials:
        try:
            with path.open("rb") as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                    raise ConfigurationError("others may read the credentials", where=str(path), do=f"chmod 600 {path}")
                said = json.loads(file.read(_MAX_FILE))
        except OSError as error:
            raise ConfigurationError("the credentials cannot be read", where=str(path), why=error.strerror or "") from None
        except ValueError:
            # The parser's message may quote what is in the file.
            raise ConfigurationError("the credentials are no JSON", where=str(path)) from None
        return _checked(said if isinstance(said, dict) else {}, str(path))

    read()
    return read


def from_environment(environment: Mapping[str, str] = os.environ) -> CredentialsSource:
    """Reads ``SEAWALL_AIRFLOW_TOKEN``, or ``SEAWALL_AIRFLOW_USERNAME`` and ``SEAWALL_AIRFLOW_PASSWORD``."""

    def read() -> Credentials:
        said = {"token": environment.get(TOKEN), "username": environment.get(USERNAME), "password": environment.get(PASSWORD)}
        return _checked({key: value for key, value in said.items() if value}, "environment")

    read()
    return read


def _checked(said: Mapping[str, object], where: str) -> Credentials:
    unknown = sorted(set(said) - {"username", "password", "token"})
    if not unknown and all(isinstance(value, str) and value and value.isprintable() for value in said.values()):
        if set(said) in ({"token"}, {"username", "password"}):
            return Credentials(**{key: str(value) for key, value in said.items()})
    raise ConfigurationError(
        "there are no credentials for Airflow",
        where=where,
        why=f"unknown: {', '.join(unknown)}" if unknown else "",
        do="give a token, or username and password",
    )
