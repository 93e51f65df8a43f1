"""The three routes of Airflow's REST interface that an asset event needs, as a real server, and ways for it to fail."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USERNAME, PASSWORD = "trainer", "a pass phrase"


class LittleAirflow:
    """Answers as Airflow 3.3 does. What tests set: ``assets``, ``failing`` (status for the next events), ``held`` (answers wait for it)."""

    def __init__(self, port: int = 0) -> None:
        self.assets = [{"id": 3, "name": "checkpoint_ready_old"}, {"id": 7, "name": "checkpoint_ready"}]
        self.events: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.tokens: set[str] = set()
        self.issued = 0
        self.failing: list[int] = []
        self.cut_after_taking = 0
        self.held = threading.Event()
        self.held.set()
        self.arrived = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def steps(self) -> list[int]:
        return [event["extra"]["step"] for event in self.events]

    def wait_for(self, count: int, timeout: float = 30.0) -> bool:
        """Wait until ``count`` events are there."""
        with self.arrived:
            return self.arrived.wait_for(lambda: len(self.events) >= count, timeout)

    def wait_for_requests(self, path: str, count: int, timeout: float = 30.0) -> bool:
        with self.arrived:
            return self.arrived.wait_for(lambda: sum(p.startswith(path) for p in self.paths) >= count, timeout)

    def stop(self) -> None:
        self.held.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer("GET")

            def do_POST(self) -> None:
                self._answer("POST")

            def _answer(self, method: str) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                with server.arrived:
                    server.paths.append(self.path)
                    server.arrived.notify_all()
                server.held.wait()
                status, body = server._route(method, self.path, json.loads(raw) if raw else {}, self.headers.get("Authorization", ""))
                if status == 0:
                    self.close_connection = True
                    return
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

    def _route(self, method: str, path: str, body: dict[str, Any], authorization: str) -> tuple[int, dict[str, Any]]:
        if (method, path) == ("POST", "/auth/token"):
            if body != {"username": USERNAME, "password": PASSWORD}:
                return 401, {"detail": "Invalid credentials"}
            self.issued += 1
            token = f"secret-token-{self.issued}"
            self.tokens.add(token)
            return 201, {"access_token": token}
        if authorization.removeprefix("Bearer ") not in self.tokens:
            return 401, {"detail": "Invalid JWT token"}
        if method == "GET" and path.startswith("/api/v2/assets?"):
            return 200, {"assets": self.assets, "total_entries": len(self.assets)}
        if (method, path) == ("POST", "/api/v2/assets/events"):
            if self.failing:
                return self.failing.pop(0), {"detail": "no"}
            if body["asset_id"] not in {asset["id"] for asset in self.assets}:
                return 404, {"detail": "The Asset was not found"}
            with self.arrived:
                self.events.append(body)
                self.arrived.notify_all()
            if self.cut_after_taking:
                self.cut_after_taking -= 1
                return 0, {}
            return 200, {"id": len(self.events), "asset_id": body["asset_id"], "extra": {**body["extra"], "from_rest_api": True}}
        return 404, {"detail": "Not Found"}
