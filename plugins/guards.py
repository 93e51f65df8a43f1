"""Who may ask, and from where. Airflow leaves both to the plugin."""

from typing import Any
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.sdk.configuration import conf
from fastapi import Depends, HTTPException, Request
from starlette.status import HTTP_403_FORBIDDEN


def same_origin(origin: str, host: str, base_url: str) -> bool:
    """Whether a browser's ``Origin`` is this server, as it was called or as ``[api] base_url`` says that people call it."""
    found = urlsplit(origin)
    if found.scheme not in ("http", "https") or not found.netloc:
        return False
    base = urlsplit(base_url)
    return found.netloc == host or (found.scheme, found.netloc) == (base.scheme, base.netloc)


def refuse_other_sites(request: Request) -> None:
    """403 for a change that another site's page asks for with this browser's cookie (OWASP, Cross-Site Request Forgery Prevention).

    A bearer token is not sent by a browser on its own, so with one the origin does not matter; but a foreign origin is refused even then.
    """
    origin = request.headers.get("origin")
    # What browsers of today add by themselves; a page cannot set it.
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(HTTP_403_FORBIDDEN, "a change cannot be asked for from another site")
    if origin is None:
        if not request.headers.get("authorization", "").lower().startswith("bearer "):
            raise HTTPException(HTTP_403_FORBIDDEN, "a change needs a bearer token, or comes from a page of this server")
    elif not same_origin(origin, request.headers.get("host", ""), str(conf.get("api", "base_url", fallback="") or "")):
        raise HTTPException(HTTP_403_FORBIDDEN, "a change cannot be asked for from another site")


def is_operator(user: Any) -> bool:
    """Whether a person may change connections, which is what Airflow lets its role Op do and User not."""
    return bool(get_auth_manager().is_authorized_connection(method="PUT", user=user))


def require_operator(user: GetUserDep) -> None:
    """403 for who is no operator."""
    if not is_operator(user):
        raise HTTPException(HTTP_403_FORBIDDEN, "this needs the rights of an operator of this Airflow")


CHANGES = [Depends(refuse_other_sites), Depends(require_operator)]
"""Dependencies of every route that changes something."""
