"""The plugin's routes below ``/seawall``. Every one of them asks for a user, because the application does."""

from functools import cache
from typing import Annotated, Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_view
from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from seawall.errors import KeyMissingError, NoSuchCopyError, SeawallError, StoreError, UsageError
from seawall.plugins import answers, page
from seawall.plugins.guards import CHANGES

_HEADERS = {
    # The page has no script, and only Airflow's own pages may frame it.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_STATUS: tuple[tuple[type[SeawallError], int], ...] = (
    (NoSuchCopyError, 404),
    (KeyMissingError, 409),
    (StoreError, 502),
    (UsageError, 400),
)

Offset = Annotated[int, Query(ge=0)]
Limit = Annotated[int, Query(ge=1, le=200)]


class Hold(BaseModel):
    """Body of a hold."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(min_length=1, max_length=800)


class Quarantine(Hold):
    """Body of a quarantine. ``checkpoint`` is a step, or a sealing id or at least 8 digits of its beginning."""

    checkpoint: str = Field(min_length=1, max_length=32)


def status_of(error: SeawallError) -> int:
    """The HTTP status that says what the error says."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


@cache
def application() -> FastAPI:
    """The application, made once. Its routes run in threads: they read stores."""
    app = FastAPI(
        title="Seawall", dependencies=[Depends(requires_access_view(AccessView.PLUGINS))], docs_url=None, redoc_url=None, openapi_url=None
    )

    @app.exception_handler(SeawallError)
    def _failed(_: Request, error: SeawallError) -> Response:
        return JSONResponse(error.as_json(), status_of(error), headers=_HEADERS)

    @app.get("/api/runs")
    def runs(response: Response, offset: Offset = 0, limit: Limit = page.PAGE) -> dict[str, Any]:
        response.headers.update(_HEADERS)
        with answers.opened_site() as site:
            return answers.runs_page(site, offset, limit)

    @app.get("/api/runs/{run}/copies")
    def copies(run: str, response: Response, offset: Offset = 0, limit: Limit = page.PAGE) -> dict[str, Any]:
        response.headers.update(_HEADERS)
        with answers.opened_site() as site:
            return answers.copies_page(site, run, offset, limit)

    @app.get("/api/runs/{run}/log")
    def log(run: str, response: Response, before: Annotated[int | None, Query(ge=1)] = None, limit: Limit = page.PAGE) -> dict[str, Any]:
        response.headers.update(_HEADERS)
        with answers.opened_site() as site:
            return answers.log_page(site, run, before, limit)

    @app.post("/api/runs/{run}/quarantine", dependencies=CHANGES)
    def quarantine(run: str, body: Quarantine, user: GetUserDep) -> dict[str, Any]:
        with answers.opened_site() as site:
            return answers.quarantine(site, run, body.checkpoint, _signed(body.reason, user))

    @app.post("/api/runs/{run}/hold", dependencies=CHANGES)
    def hold(run: str, body: Hold, user: GetUserDep) -> dict[str, Any]:
        with answers.opened_site() as site:
            return answers.hold(site, run, _signed(body.reason, user))

    @app.get("/", response_class=HTMLResponse)
    def show(run: str | None = None, offset: Offset = 0) -> HTMLResponse:
        try:
            with answers.opened_site() as site:
                if run is None:
                    body = page.runs_body(answers.runs_page(site, offset, page.PAGE))
                else:
                    body = page.copies_body(answers.copies_page(site, run, offset, page.PAGE))
            return HTMLResponse(page.document(body), headers=_HEADERS)
        except SeawallError as error:
            return HTMLResponse(page.document(page.error_body(str(error))), status_of(error), headers=_HEADERS)

    return app


def _signed(reason: str, user: Any) -> str:
    """The log is signed by the host's key; which person asked is part of the reason."""
    return f"{reason} (by {user.get_name()} in Airflow)"
