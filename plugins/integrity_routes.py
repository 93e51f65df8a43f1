"""The routes of the integrity page and its JSON twins."""

from typing import Annotated, Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import FastAPI, Form, Query, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.status import HTTP_303_SEE_OTHER

from seawall.plugins import answers, integrity, page
from seawall.plugins.copy_html import copy_body
from seawall.plugins.guards import CHANGES, is_operator
from seawall.plugins.headers import HEADERS
from seawall.plugins.integrity_html import integrity_body
from seawall.plugins.marks_html import MAX_REASON
from seawall.plugins.words_html import NOW, TIME

Offset = Annotated[int, Query(ge=0)]
Limit = Annotated[int, Query(ge=1, le=200)]
Text = Annotated[str, Query(max_length=64)]
_OPERATION = r"^[0-9a-f]{32}$"


class LiftRequest(BaseModel):
    """Body of a lift. ``operation`` is that of the quarantine or hold."""

    model_config = ConfigDict(extra="forbid")

    operation: str = Field(pattern=_OPERATION)
    reason: str = Field(min_length=1, max_length=MAX_REASON)


def add_integrity_routes(app: FastAPI) -> None:
    """Give ``app`` the page and the routes below ``/api/runs/{run}/integrity``. The application asks for a user."""

    @app.get("/api/runs/{run}/integrity")
    def overview(
        run: str,
        response: Response,
        verdict: Text = "",
        dimension: Text = "",
        step: Text = "",
        sealing: Text = "",
        offset: Offset = 0,
        limit: Limit = integrity.PAGE,
    ) -> dict[str, Any]:
        response.headers.update(HEADERS)
        with answers.opened_site() as site:
            return integrity.integrity_page(site, run, integrity.Filter.parse(verdict, dimension, step, sealing), offset, limit)

    @app.get("/api/runs/{run}/integrity/{sealing}/{store}")
    def one_copy(run: str, sealing: str, store: str, response: Response) -> dict[str, Any]:
        response.headers.update(HEADERS)
        with answers.opened_site() as site:
            return integrity.copy_page(site, run, sealing, store)

    @app.post("/api/runs/{run}/lift", dependencies=CHANGES)
    def lift(run: str, body: LiftRequest, user: GetUserDep) -> dict[str, Any]:
        with answers.opened_site() as site:
            return answers.lift(site, run, body.operation, answers.said_by(body.reason, user.get_name()))

    @app.get("/integrity", response_class=HTMLResponse)
    def show(
        user: GetUserDep,
        run: Annotated[str, Query(max_length=200)] = "",
        view: Text = NOW,
        verdict: Text = "",
        dimension: Text = "",
        step: Text = "",
        offset: Offset = 0,
        sealing: Text = "",
        store: Text = "",
        lifted: Text = "",
        every: Annotated[bool, Query(alias="all")] = False,
    ) -> HTMLResponse:
        with answers.opened_site() as site:
            names = sorted(site.config.runs)
            if not run and (every or len(names) != 1):
                return _html(page.runs_body(answers.runs_page(site, offset, page.PAGE), "integrity"), "Integrity")
            run = run or names[0]
            if sealing and store:
                document = integrity.copy_page(site, run, sealing, store)
                body = copy_body(document, _why_no_lift(user, document["can_lift"], run))
                return _html(body, f"{run} step {document['copy']['step']} in {store}")
            wanted = integrity.Filter.parse(verdict, dimension, step, sealing)
            document = integrity.integrity_page(site, run, wanted, offset, integrity.PAGE)
            done = answers.lift_told(site, run, lifted) if lifted else ""
            body = integrity_body(document, TIME if view == TIME else NOW, _why_no_lift(user, document["can_lift"], run), done)
            return _html(body, f"Integrity of {run}")

    @app.post("/integrity/lift", dependencies=CHANGES, response_class=HTMLResponse)
    def lift_by_form(
        user: GetUserDep,
        run: Annotated[str, Form(max_length=200)],
        operation: Annotated[str, Form(pattern=_OPERATION)],
        reason: Annotated[str, Form(min_length=1, max_length=MAX_REASON)],
    ) -> Response:
        with answers.opened_site() as site:
            answers.lift(site, run, operation, answers.said_by(reason, user.get_name()))
        # Read again by GET: reloading the page asks for nothing twice.
        return RedirectResponse(page.address("../integrity", run=run, lifted=operation), HTTP_303_SEE_OTHER, headers=HEADERS)


def _html(body: str, title: str) -> HTMLResponse:
    return HTMLResponse(page.document(body, title), headers=HEADERS)


def _why_no_lift(user: Any, has_key: bool, run: str) -> str:
    """Why this person cannot lift here; empty for one who can. The route asks again."""
    if not is_operator(user):
        return "Lifting one needs the rights of an operator of this Airflow (role Op or Admin)."
    if not has_key:
        return (
            "This server's host has no operator key ([keys.signing] operator in seawall.toml), so nothing can be lifted here. "
            f"On a host that has one: seawall log lift {run} OPERATION --reason …"
        )
    return ""
