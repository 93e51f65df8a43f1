"""Receivers of alerts on this machine: an HTTP server that keeps what it was sent, a robot that checks signatures, a real Alertmanager."""

import base64
import hmac
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from seawall.testing.local_server import LocalServer, free_port

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
needs_alertmanager = pytest.mark.skipif(PROGRAM is None, reason="no alertmanager here (`make deps` installs prometheus-alertmanager)")
CONFIGURATION = Path(__file__).parents[2] / "docs" / "alerts" / "alertmanager.yml"


@dataclass
class Request:
    """One POST."""

    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any


@dataclass
class Receiver:
    """``answer`` gives status and JSON of the next answer; what came is in ``requests``."""

    answer: Callable[[Request], tuple[int, Any]] = lambda request: (200, {})
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_for(self, wanted: Callable[[list[Request]], bool], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not wanted(self.requests):
            assert time.monotonic() < deadline, [request.body for request in self.requests]
            time.sleep(0.05)


@contextmanager
def listening(receiver: Receiver) -> Iterator[Receiver]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(parts.path, parse_qs(parts.query), headers, json.loads(raw))
            receiver.requests.append(request)
            status, body = receiver.answer(request)
            if status == 0:
                # The connection ends without an answer.
                return
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Robot:
    """A group robot as DingTalk documents it: token, signature over its own clock's hour, kind of message."""

    token: str
    secret: str
    now: float
    """Its clock, in seconds."""
    receiver: Receiver = field(default_factory=Receiver)

    def __post_init__(self) -> None:
        self.receiver.answer = self._answer

    @property
    def webhook(self) -> str:
        return f"{self.receiver.url}/robot/send?access_token={self.token}"

    @property
    def texts(self) -> list[str]:
        """Messages that were taken."""
        return [request.body["markdown"]["text"] for request in self.receiver.requests if self._answer(request)[1]["errcode"] == 0]

    def _answer(self, request: Request) -> tuple[int, Any]:
        if request.query.get("access_token") != [self.token]:
            return 200, {"errcode": 300001, "errmsg": f"token is not exist: {request.query.get('access_token')}"}
        timestamp = request.query.get("timestamp", ["0"])[0]
        # Written out here, and not with the function under test: https://open.dingtalk.com/document/robots/customize-robot-security-settings
        digest = hmac.new(self.secret.encode(), (timestamp + "\n" + self.secret).encode(), sha256).digest()
        if request.query.get("sign") != [base64.b64encode(digest).decode()]:
            return 200, {"errcode": 310000, "errmsg": "sign not match"}
        if abs(int(timestamp) / 1000 - self.now) > 3600:
            return 200, {"errcode": 310000, "errmsg": "invalid timestamp"}
        if request.body.get("msgtype") != "markdown" or not request.body["markdown"]["title"]:
            return 200, {"errcode": 400105, "errmsg": "unsupported msgtype"}
        return 200, {"errcode": 0, "errmsg": "ok"}


class RealAlertmanager:
    """The server, with the configuration of docs/alerts, that notifies ``receiver`` within a second."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        text = CONFIGURATION.read_text().replace("http://127.0.0.1:9095", receiver.url)
        for slow, fast in (("group_wait: 30s", "group_wait: 100ms"), ("group_interval: 5m", "group_interval: 500ms")):
            assert slow in text
            text = text.replace(slow, fast)
        configuration = folder / "alertmanager.yml"
        configuration.write_text(text)
        command = [str(PROGRAM), f"--config.file={configuration}", f"--storage.path={folder / 'storage'}"]
        command += [f"--web.listen-address=127.0.0.1:{self.port}", "--cluster.listen-address="]
        self.server = LocalServer(command, cwd=folder, log=folder / "alertmanager.log")
        try:
            self.server.wait_until(self._ready, 60)
        except BaseException:
            self.server.kill()
            raise

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def alerts(self) -> list[dict[str, Any]]:
        """What stands."""
        found: list[dict[str, Any]] = httpx.get(f"{self.url}/api/v2/alerts", timeout=10).json()
        return found


@contextmanager
def alertmanager(folder: Path, receiver: Receiver) -> Iterator[RealAlertmanager]:
    """A running one; tried again when another program took its port."""
    server = RealAlertmanager(folder, receiver)
    try:
        yield server
    finally:
        server.server.stop()
