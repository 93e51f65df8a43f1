"""Airflow 3's REST interface, as far as an asset event needs it: a token, the asset's id, the event.

``POST /auth/token``, ``GET /api/v2/assets?name_pattern=``, ``POST /api/v2/assets/events`` (Airflow 3.3 public API reference).
"""

import json
import logging
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from seawall import __version__
from seawall.errors import ConfigurationError, Outcome, SeawallError
from seawall.training.credentials import CredentialsSource

_log = logging.getLogger(__name__)

DEFAULT_ASSET = "checkpoint_ready"
_MAX_ANSWER = 4 << 20
_EVENT_REFUSED = (400, 409, 413, 422)
"""Answers that are about the event itself. All others are about the server, its rights or its state, and may change."""


class AirflowUnavailableError(SeawallError):
    """Airflow did not take the event now: it is down, slow, restarting, refuses the credentials, or has no such asset yet."""

    outcome: ClassVar[Outcome] = "transient"


class AirflowRefusedError(SeawallError):
    """Airflow refused this event and always will."""


class AirflowEvents:
    """Creates events of one asset. Not for several threads at once."""

    def __init__(
        self,
        url: str,
        credentials: CredentialsSource,
        *,
        asset: str = DEFAULT_ASSET,
        connect_seconds: float = 5.0,
        read_seconds: float = 10.0,
    ) -> None:
        """``url`` is Airflow's base url. Nothing is sent. :class:`ConfigurationError` for a url that is none."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ConfigurationError("this is no url of an Airflow", where=parts.hostname or "", do="write https://host[:port][/prefix]")
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            _log.warning("credentials go to %s over plain http: anybody on the way can read them", parts.hostname)
        self._base = url.rstrip("/")
        self._credentials = credentials
        self._asset = asset
        self._pool = urllib3.PoolManager(
            num_pools=1,
            retries=False,
            timeout=urllib3.Timeout(connect=connect_seconds, read=read_seconds),
            headers={"User-Agent": f"seawall/{__version__}"},
        )
        self._token = ""
        self._asset_id: int | None = None

    def create(self, extra: Mapping[str, object]) -> None:
        """Create one event. :class:`AirflowUnavailableError` when it is worth trying again, :class:`AirflowRefusedError` when not.

        When the answer is lost the event may exist already; trying again makes a second one, which readers of the asset expect.
        """
        if self._asset_id is None:
            self._asset_id = self._find_asset()
        status, _ = self._authorised("POST", "/api/v2/assets/events", {"asset_id": self._asset_id, "extra": dict(extra)})
        if status in _EVENT_REFUSED:
            raise AirflowRefusedError("Airflow refused the event", where=self._base, why=f"HTTP {status}")
        if not 200 <= status < 300:
            # A database that was set up anew has other numbers.
            self._asset_id = None
            raise self._unavailable("POST /api/v2/assets/events", status)

    def close(self) -> None:
        """Give back connections."""
        self._pool.clear()

    def _find_asset(self) -> int:
        # The pattern is a part of the name, in which _ stands for any letter, so the answer is looked through.
        status, answer = self._authorised("GET", f"/api/v2/assets?limit=100&name_pattern={quote(self._asset, safe='')}")
        if status != 200:
            raise self._unavailable("GET /api/v2/assets", status)
        assets = answer.get("assets")
        for asset in assets if isinstance(assets, list) else ():
            if isinstance(asset, dict) and asset.get("name") == self._asset and isinstance(asset.get("id"), int):
                return int(asset["id"])
        raise AirflowUnavailableError(
            "Airflow has no such asset yet",
            where=f"{self._base} {self._asset}",
            do="it comes with the DAG that names it: is that one parsed?",
        )

    def _authorised(self, method: str, path: str, body: Mapping[str, object] | None = None) -> tuple[int, dict[str, object]]:
        fresh = not self._token
        self._token = self._token or self._new_token()
        status, answer = self._request(method, path, body, self._token)
        if status == 401 and not fresh:
            # It expired, or the server was set up anew; a token that was just issued is not asked for a second time.
            self._token = self._new_token()
            status, answer = self._request(method, path, body, self._token)
        if status == 401:
            self._token = ""
        return status, answer

    def _new_token(self) -> str:
        self._token = ""
        credentials = self._credentials()
        if credentials.token:
            return credentials.token
        status, answer = self._request("POST", "/auth/token", {"username": credentials.username, "password": credentials.password})
        token = answer.get("access_token")
        if not 200 <= status < 300 or not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise self._unavailable("POST /auth/token", status)
        return token

    def _request(self, method: str, path: str, body: Mapping[str, object] | None = None, token: str = "") -> tuple[int, dict[str, object]]:
        headers = {**self._pool.headers, "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            # Redirects are not followed: the next host would be given the token.
            response = self._pool.request(
                method,
                self._base + path,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                redirect=False,
                preload_content=False,
            )
            try:
                raw = response.read(_MAX_ANSWER)
                response.drain_conn() if len(raw) < _MAX_ANSWER else response.close()
            finally:
                response.release_conn()
        except (HTTPError, OSError) as error:
            raise AirflowUnavailableError("Airflow did not answer", where=self._base, why=type(error).__name__) from error
        try:
            answer = json.loads(raw) if raw else {}
        except ValueError:
            answer = {}
        return response.status, answer if isinstance(answer, dict) else {}

    def _unavailable(self, request: str, status: int) -> AirflowUnavailableError:
        return AirflowUnavailableError("Airflow did not take the request", where=f"{self._base} {request}", why=f"HTTP {status}")
