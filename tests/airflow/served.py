"""Airflow's whole API server on a port of this machine, with its real authentication: for browsers and for HTTP clients."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

from seawall.testing.local_server import free_port
from tests.airflow.conftest import HOME

PASSWORDS = {name: f"password of {name}" for name in ("admin", "oper", "someone", "viewer")}


@dataclass
class Served:
    """The server and a client of it."""

    url: str
    client: httpx.Client

    def token(self, name: str) -> str:
        """What the login of a user gives."""
        return _token(self.client, name)

    def bearer(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(name)}"}

    def get(self, path: str, name: str) -> httpx.Response:
        """As somebody's program asks."""
        return self.client.get(path, headers=self.bearer(name))

    def post(self, path: str, name: str, **body: Any) -> httpx.Response:
        return self.client.post(path, headers=self.bearer(name), **body)

    def post_with_cookie(self, path: str, name: str, headers: dict[str, str], form: dict[str, str]) -> httpx.Response:
        """As somebody's browser sends a form."""
        return self.client.post(path, headers={"Cookie": f"_token={self.token(name)}", **headers}, data=form)


@cache
def _token(client: httpx.Client, name: str) -> str:
    answer = client.post("/auth/token", json={"username": name, "password": PASSWORDS[name]})
    assert answer.status_code == 201, answer.text
    client.cookies.clear()
    return str(answer.json()["access_token"])


@contextmanager
def running_server() -> Iterator[Served]:
    """The server in a thread of this process, so that a test can give it another configuration."""
    import uvicorn
    from airflow.api_fastapi.app import create_app

    (HOME / "passwords.json").write_text(json.dumps(PASSWORDS))
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(create_app(apps="core"), host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, name="api-server")
    thread.start()
    try:
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, timeout=60) as client:
            for _ in range(600):
                if server.started or not thread.is_alive():
                    break
                thread.join(0.1)
            assert server.started
            yield Served(url, client)
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
