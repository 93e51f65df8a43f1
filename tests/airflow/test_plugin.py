"""The plugin inside Airflow's own application: nothing without a user, changes only by who may and not from other sites, text escaped."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from seawall.plugins import page
from seawall.plugins.application import application
from seawall.plugins.guards import same_origin
from tests.airflow.conftest import CHECKOUT, HOME
from tests.airflow.tasks import Hand, new_hand
from tests.protect.command_line import RUN

PASSWORDS = {name: f"password of {name}" for name in ("admin", "oper", "someone", "viewer")}
HELD = "/seawall/api/runs/gpt/hold"


@pytest.fixture(scope="module")
def client(database: None) -> Iterator[TestClient]:
    """Airflow's whole API server, in this process, with its real authentication."""
    from airflow.api_fastapi.app import create_app

    (HOME / "passwords.json").write_text(json.dumps(PASSWORDS))
    with TestClient(create_app(apps="core"), base_url="http://testserver", follow_redirects=False) as client:
        yield client


@pytest.fixture(scope="module")
def tokens(client: TestClient) -> dict[str, str]:
    found = {}
    for name, password in PASSWORDS.items():
        answer = client.post("/auth/token", json={"username": name, "password": password})
        assert answer.status_code == 201, answer.text
        found[name] = answer.json()["access_token"]
    client.cookies.clear()
    return found


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hand]:
    hand = new_hand(tmp_path_factory.mktemp("plugin"))
    for step in (1, 2, 3):
        hand.desk.save(step)
        hand.sync()
    newest = hand.desk("copies", RUN, "--json").json["checkpoints"][0]["sealing"]
    hand.certify(hand.check([copy for copy in hand.due() if copy["sealing"] == newest]))
    before = os.environ.get("AIRFLOW__SEAWALL__CONFIG")
    os.environ["AIRFLOW__SEAWALL__CONFIG"] = str(hand.desk.config)
    yield hand
    os.environ.pop("AIRFLOW__SEAWALL__CONFIG")
    assert before is None


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def routes() -> list[tuple[str, str]]:
    found = [(method, route.path) for route in application().routes if isinstance(route, APIRoute) for method in route.methods]
    assert len(found) >= 6
    return sorted(found)


def test_the_plugin_is_registered_once(client: TestClient, tokens: dict[str, str]) -> None:
    plugins = client.get("/api/v2/plugins", headers=bearer(tokens["admin"])).json()["plugins"]
    assert [plugin["name"] for plugin in plugins].count("seawall") == 1
    assert client.get("/api/v2/plugins/importErrors", headers=bearer(tokens["admin"])).json()["import_errors"] == []


def test_a_plugins_folder_that_is_ours_registers_nothing() -> None:
    from airflow._shared.module_loading import find_path_from_directory

    assert list(find_path_from_directory(str(CHECKOUT / "plugins"), ".airflowignore", "glob")) == []


def test_the_connection_form(client: TestClient, tokens: dict[str, str]) -> None:
    hooks = client.get("/ui/connections/hook_meta", headers=bearer(tokens["admin"])).json()
    (form,) = [hook for hook in hooks if hook["connection_type"] == "seawall_store"]
    assert form["hook_name"] == "Seawall store"
    assert form["standard_fields"]["host"]["title"] == "Store in seawall.toml"
    assert {name for name, field in form["standard_fields"].items() if field and field["hidden"]} == {
        "login",
        "password",
        "port",
        "url_schema",
    }
    assert set(form["extra_fields"]) == {"aws_conn_id", "config"}


def test_the_server_finds_credentials_in_its_own_database(
    client: TestClient, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page reads the coordination store with the connection that people typed into the form."""
    from seawall.operators.site import connection_keys

    # What the commands api-server and scheduler set; without it the library for tasks looks for a task's supervisor.
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    typed = {
        "connection_id": "seawall_typed",
        "conn_type": "aws",
        "login": "typed",
        "password": "into the form",
    }  # pragma: allowlist secret
    assert client.post("/api/v2/connections", headers=bearer(tokens["admin"]), json=typed).status_code == 201
    assert connection_keys("seawall_typed")().access_key_id == "typed"


@pytest.mark.parametrize(("method", "path"), routes())
def test_no_route_answers_who_is_not_known(client: TestClient, method: str, path: str) -> None:
    url = "/seawall" + path.replace("{run}", RUN)
    assert client.request(method, url, json={}).status_code == 401
    assert client.request(method, url, headers=bearer("no token"), json={}).status_code in (401, 403)
    assert client.request(method, url, headers={"Origin": "http://evil.example"}, json={}).status_code in (401, 403)
    assert client.request(method, url, headers={"Cookie": "_token=forged"}, data={}).status_code in (401, 403)


def test_pages_of_copies_and_log(client: TestClient, tokens: dict[str, str], hand: Hand) -> None:
    viewer = bearer(tokens["viewer"])
    listed = client.get("/seawall/api/runs", headers=viewer).json()
    assert (listed["total"], listed["runs"][0]["run"], listed["runs"][0]["copies"]) == (1, RUN, ["a", "c"])
    copies = client.get(f"/seawall/api/runs/{RUN}/copies?offset=1&limit=1", headers=viewer).json()
    assert (copies["total"], [row["step"] for row in copies["checkpoints"]], copies["recovery_point"]["step"]) == (3, [2], 3)
    numbers, before = [], None
    while True:
        query = "" if before is None else f"&before={before}"
        answer = client.get(f"/seawall/api/runs/{RUN}/log?limit=2{query}", headers=viewer).json()
        numbers += [entry["seq"] for entry in answer["entries"]]
        before = answer["next_before"]
        if before is None:
            break
    assert numbers == list(range(answer["total"], 0, -1))
    assert client.get("/seawall/api/runs/nobody/copies", headers=viewer).status_code == 400
    assert client.get(f"/seawall/api/runs/{RUN}/copies?limit=100000", headers=viewer).status_code == 422


def test_the_page_shows_runs_and_copies(client: TestClient, tokens: dict[str, str], hand: Hand) -> None:
    viewer = bearer(tokens["viewer"])
    first = client.get("/seawall/", headers=viewer)
    assert first.status_code == 200 and f'href="?run={RUN}"' in first.text
    shown = client.get(f"/seawall/?run={RUN}", headers=viewer)
    assert "recovery point" in shown.text and "L4 proved" in shown.text and "never proved" in shown.text
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in shown.headers["content-security-policy"]
    missing = client.get("/seawall/?run=<script>alert(1)</script>", headers=viewer)
    said = missing.text.partition("<main>")[2]
    assert missing.status_code == 400 and "<script>" not in said and "&lt;script&gt;" in said


def test_what_a_store_or_a_person_said_is_escaped() -> None:
    evil = '"><script>alert(1)</script>'
    copy = {"state": evil, "level": None}
    row = {"step": 1, "sealing": evil, "committed_at": evil, "copies": {evil: copy}, "quarantine": [evil], "orphan": evil, "why_not": evil}
    table = {
        "run": evil,
        "epoch": 1,
        "freshness": evil,
        "required_level": evil,
        "recovery_point": {"step": 1, "level": evil, "stores": [evil]},
        "held": [evil],
        "unknown_verifiers": {evil: evil},
        "problems": [evil],
        "checkpoints": [{**row, "recovery_point": False}],
        "total": 9,
        "offset": 0,
    }
    runs = {"runs": [{"run": evil, "copies": [evil], "required_level": evil, "rpo_minutes": 60}], "total": 9, "offset": 0}
    for body in (page.copies_body(table), page.runs_body(runs), page.error_body(evil)):
        assert evil not in body and "<script" not in body
        assert "&quot;&gt;&lt;script&gt;alert" in body


@pytest.mark.parametrize(("name", "status"), [("viewer", 403), ("someone", 403), ("oper", 200), ("admin", 200)])
def test_only_operators_change_anything(client: TestClient, tokens: dict[str, str], hand: Hand, name: str, status: int) -> None:
    answer = client.post(HELD, headers=bearer(tokens[name]), json={"reason": f"asked by {name}"})
    assert answer.status_code == status, answer.text
    held = client.get(f"/seawall/api/runs/{RUN}/copies", headers=bearer(tokens["viewer"])).json()["held"]
    assert (f"asked by {name} (by {name} in Airflow)" in held) is (status == 200)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://testserver.evil.example"}, 403),
        ({"Origin": "http://testserver"}, 200),
    ],
)
def test_a_cookie_changes_nothing_from_another_site(
    client: TestClient, tokens: dict[str, str], hand: Hand, headers: dict[str, str], status: int
) -> None:
    cookie = {"Cookie": f"_token={tokens['admin']}"}
    answer = client.post(HELD, headers={**headers, **cookie}, json={"reason": f"from {headers}"})
    assert answer.status_code == status, answer.text
    assert client.get(f"/seawall/api/runs/{RUN}/copies", headers=cookie).status_code == 200, "the cookie is good"


def test_a_token_does_not_make_a_foreign_page_welcome(client: TestClient, tokens: dict[str, str], hand: Hand) -> None:
    headers = {**bearer(tokens["admin"]), "Origin": "http://evil.example"}
    assert client.post(HELD, headers=headers, json={"reason": "no"}).status_code == 403


def test_a_quarantine_by_step(client: TestClient, tokens: dict[str, str], hand: Hand) -> None:
    url = f"/seawall/api/runs/{RUN}/quarantine"
    admin = bearer(tokens["admin"])
    assert client.post(url, headers=admin, json={"checkpoint": "2"}).status_code == 422
    assert client.post(url, headers=admin, json={"checkpoint": "99", "reason": "x"}).status_code == 404
    answer = client.post(url, headers=admin, json={"checkpoint": "2", "reason": "loss spike"})
    assert (answer.status_code, answer.json()["status"]) == (200, "appended")
    assert client.post(url, headers=admin, json={"checkpoint": "2", "reason": "loss spike"}).json()["status"] == "unchanged"
    rows = client.get(f"/seawall/api/runs/{RUN}/copies", headers=admin).json()["checkpoints"]
    assert {row["step"]: row["quarantine"] for row in rows}[2] == ["loss spike (by admin in Airflow)"]


def test_a_server_without_a_key_says_so(client: TestClient, tokens: dict[str, str], hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = hand.desk.config.with_name("reader.toml")
    lines = hand.desk.config.read_text().splitlines()
    reader.write_text("\n".join(line for line in lines if not line.startswith(("operator =", "verifier ="))))
    monkeypatch.setenv("AIRFLOW__SEAWALL__CONFIG", str(reader))
    answer = client.post(HELD, headers=bearer(tokens["admin"]), json={"reason": "no key"})
    assert (answer.status_code, answer.json()["error"]) == (409, "KeyMissingError")
    assert client.get("/seawall/api/runs", headers=bearer(tokens["viewer"])).status_code == 200


@pytest.mark.parametrize(
    ("origin", "host", "base", "same"),
    [
        ("https://airflow.example", "airflow.example", "", True),
        ("https://airflow.example", "10.0.0.3:8080", "https://airflow.example/team", True),
        ("http://airflow.example", "10.0.0.3:8080", "https://airflow.example/team", False),
        ("https://airflow.example.evil", "airflow.example", "https://airflow.example", False),
        ("https://airflow.example:444", "airflow.example", "https://airflow.example", False),
        ("null", "airflow.example", "", False),
        ("file://", "", "", False),
        ("", "", "", False),
    ],
)
def test_which_origins_are_ours(origin: str, host: str, base: str, same: Any) -> None:
    assert same_origin(origin, host, base) is same
