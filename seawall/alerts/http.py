"""One POST with JSON to a receiver of alerts, with time-outs, without secrets in what is said or logged.

httpx logs every URL that it requests, and a chat robot's URL holds its token: a filter keeps the lines of these requests out.
"""

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from seawall.errors import AlertAmbiguousError, AlertRefusedError, AlertUnavailableError

TIMEOUT_SECONDS = 5.0
"""For connecting, and for each read and write: an alert is small, and whoever sends it has other work to do."""
_MAX_SAID = 300
_quiet: ContextVar[bool] = ContextVar("seawall_alerts_quiet", default=False)


class _Filter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not _quiet.get()


_FILTER = _Filter()


def shown(url: str) -> str:
    """The part of a URL that may be said: scheme, host, port and path. Robots carry their token in the query, people in the user part."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port is not None else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"


def post_json(url: str, body: Any, *, headers: Mapping[str, str] | None = None, idempotent: bool) -> tuple[int, Any]:
    """Status (200 to 299) and decoded answer, None when it is no JSON.

    Raises :class:`AlertUnavailableError` when nothing was taken (no connection, 429, 5xx) or when taking it twice is harmless
    (``idempotent``), :class:`AlertAmbiguousError` when it may have been taken, :class:`AlertRefusedError` for another answer.
    """
    import httpx

    for name in ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy"):
        logging.getLogger(name).addFilter(_FILTER)
    token = _quiet.set(True)
    try:
        with httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False) as client:
            answer = client.post(url, json=body, headers=dict(headers or {}))
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
        raise AlertUnavailableError("a receiver of alerts cannot be reached", where=shown(url), why=type(error).__name__) from None
    except httpx.TransportError as error:
        kind = AlertUnavailableError if idempotent else AlertAmbiguousError
        raise kind("a receiver of alerts did not answer", where=shown(url), why=type(error).__name__) from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise AlertRefusedError("this is no address of a receiver of alerts", where=shown(url), why=type(error).__name__) from None
    finally:
        _quiet.reset(token)
    if answer.status_code == 429 or answer.status_code >= 500:
        raise AlertUnavailableError("a receiver of alerts is busy or broken", where=shown(url), why=f"HTTP {answer.status_code}")
    if not answer.is_success:
        why = f"HTTP {answer.status_code}: {answer.text[:_MAX_SAID]}"
        raise AlertRefusedError("a receiver of alerts refused", where=shown(url), why=why, do="check its address in [alerts]")
    try:
        return answer.status_code, answer.json()
    except ValueError:
        return answer.status_code, None
