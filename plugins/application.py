"""The plugin's routes below ``/seawall``. Every one of them asks for a user, because the application does."""

from functools import cache
from typing import Annotated, Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_view
from fastapi import Depends, FastAPI, Query, Request
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from seawall.errors import SeawallError
from seawall.plugins import answers, page
from seawall.plugins.guards import CHANGES
from seawall.plugins.headers import HEADERS, status_of
from seawall.plugins.integrity_routes import add_integrity_routes

Offset = Annotated[int, Query(ge=0)]
Limit = Annotated[int, Query(ge=1, le=200)]


class Hold(BaseModel):
    """Body of a hold."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(min_length=1, max_length=800)


class Quarantine(Hold):
    """Body of a quarantine. ``checkpoint`` is a step, or a sealing id or at least 8 digits of its beginning."""

    checkpoint: str = Field(min_length=1, max_length=32)


@cache
def application() -> FastAPI:
    """The application, made once. Its routes run in threads: they read stores."""
    app = FastAPI(
        title="Seawall", dependencies=[Depends(requires_access_view(AccessView.PLUGINS))], docs_url=None, redoc_url=None, openapi_url=None
    )

    @app.exception_handler(SeawallError)
    def _failed(request: Request, error: SeawallError) -> Response:
        if _is_page(request):
            return HTMLResponse(page.document(page.failure_body(error, _back(request))), status_of(error), headers=HEADERS)
        return JSONResponse(error.as_json(), status_of(error), headers=HEADERS)

    @app.exception_handler(HTTPException)
    async def _refused(request: Request, error: HTTPException) -> Response:
        if _is_page(request):
            return HTMLResponse(page.document(page.error_body(error.detail, _back(request))), error.status_code, headers=HEADERS)
        return await http_exception_handler(request, error)

    @app.exception_handler(RequestValidationError)
    async def _not_understood(request: Request, error: RequestValidationError) -> Response:
        if _is_page(request):
            said = "; ".join(f"{'.'.join(str(part) for part in problem['loc'][1:])}: {problem['msg']}" for problem in error.errors())
            return HTMLResponse(page.document(page.error_body(said, _back(request))), 422, headers=HEADERS)
        return await request_validation_exception_handler(request, error)

    @app.get("/api/runs")
    def runs(response: Response, offset: Offset = 0, limit: Limit = page.PAGE) -> dict[str, Any]:
        response.headers.update(HEADERS)
        with answers.opened_site() as site:
            return answers.runs_page(site, offset, limit)

    @app.get("/api/runs/{run}/copies")
    def copies(run: str, response: Response, offset: Offset = 0, limit: Limit = page.PAGE) -> dict[str, Any]:
        response.headers.update(HEADERS)
        with answers.opened_site() as site:
            return answers.copies_page(site, run, offset, limit)

    @app.get("/api/runs/{run}/log")
    def log(run: str, response: Response, before: Annotated[int | None, Query(ge=1)] = None, limit: Limit = page.PAGE) -> dict[str, Any]:
        response.headers.update(HEADERS)
        with answers.opened_site() as site:
            return answers.log_page(site, run, before, limit)

    @app.post("/api/runs/{run}/quarantine", dependencies=CHANGES)
    def quarantine(run: str, body: Quarantine, user: GetUserDep) -> dict[str, Any]:
        with answers.opened_site() as site:
            return answers.quarantine(site, run, body.checkpoint, answers.said_by(body.reason, user.get_name()))

    @app.post("/api/runs/{run}/hold", dependencies=CHANGES)
    def hold(run: str, body: Hold, user: GetUserDep) -> dict[str, Any]:
        with answers.opened_site() as site:
            return answers.hold(site, run, answers.said_by(body.reason, user.get_name()))

    @app.get("/", response_class=HTMLResponse)
    def show(run: str | None = None, offset: Offset = 0) -> HTMLResponse:
        with answers.opened_site() as site:
            if run is None:
                body = page.runs_body(answers.runs_page(site, offset, page.PAGE))
            else:
                body = page.copies_body(answers.copies_page(site, run, offset, page.PAGE))
        return HTMLResponse(page.document(body), headers=HEADERS)

    add_integrity_routes(app)
    return app


def _is_page(request: Request) -> bool:
    """Whether a person looks at the answer."""
    route = request.scope.get("route")
    return route is not None and not str(route.path).startswith("/api/")


def _back(request: Request) -> str:
    """From a page to the list of runs."""
    depth = str(request.scope["route"].path).count("/") - 1
    return "../" * depth + ("integrity?all=1" if "integrity" in str(request.scope["route"].path) else "?")
