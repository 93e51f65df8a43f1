"""A real Chromium, spoken to over the WebDriver protocol (W3C) through chromedriver: what a person sees and types."""

import base64
import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from seawall.testing.local_server import LocalServer, free_port

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = "" if CHROMIUM and DRIVER else "chromium and chromedriver are not installed here; `make deps` brings them"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_PATIENCE = 60.0
"""Seconds; Airflow's own page takes some on two busy cores."""
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Home": "\ue011", "End": "\ue010"}
KEYS |= {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}


class Browser:
    """One window."""

    def __init__(self, client: httpx.Client, session: str) -> None:
        self._client = client
        self._session = session

    def call(self, method: str, path: str, **body: Any) -> Any:
        """One command of the protocol; what the browser refuses fails the test with its own words."""
        answer = self._client.request(method, f"/session/{self._session}/{path}", json=body if method == "POST" else None)
        assert answer.is_success, answer.text
        return answer.json()["value"]

    def open(self, url: str) -> None:
        """Until it is loaded."""
        self.call("POST", "url", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page; what it returns."""
        return self.call("POST", "execute/sync", script=script, args=list(arguments))

    def cookie(self, name: str, value: str) -> None:
        """For the site of the page that is open."""
        self.call("POST", "cookie", cookie={"name": name, "value": value, "path": "/"})

    def find(self, selector: str) -> Any:
        """The first element that fits, for :meth:`click`, :meth:`type` and :meth:`run`."""
        return self.call("POST", "element", using="css selector", value=selector)

    def await_true(self, script: str) -> Any:
        """The first answer of a script that is something."""
        deadline = time.monotonic() + _PATIENCE
        while not (found := self.run(script)):
            assert time.monotonic() < deadline, f"never came true: {script}"
            threading.Event().wait(0.1)
        return found

    def await_one(self, selector: str) -> Any:
        """The first element that fits, once there is one."""
        return self.await_true(f"return document.querySelector({json.dumps(selector)})")

    def click(self, element: Any) -> None:
        self.call("POST", f"element/{element[_ELEMENT]}/click")

    def type(self, element: Any, text: str) -> None:
        self.call("POST", f"element/{element[_ELEMENT]}/value", text=text)

    def press(self, *names: str) -> None:
        """Keys, to whatever has the focus."""
        keys = [{"type": kind, "value": KEYS[name]} for name in names for kind in ("keyDown", "keyUp")]
        self.call("POST", "actions", actions=[{"type": "key", "id": "keyboard", "actions": keys}])

    def enter_frame(self, element: Any) -> None:
        self.call("POST", "frame", id=element)

    def leave_frame(self) -> None:
        """Back to the whole page."""
        self.call("POST", "frame", id=None)

    def resize(self, width: int, height: int) -> None:
        self.call("POST", "goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params={
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False,
        })  # fmt: skip

    def prefer(self, scheme: str) -> None:
        """``light`` or ``dark``, as an operating system says it."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("POST", "goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": features})

    def picture(self, path: Path) -> None:
        """The window as PNG."""
        path.write_bytes(base64.b64decode(self.call("GET", "screenshot")))

    def log(self) -> list[str]:
        """What the console said since it was last asked: errors, and what the content policy refused."""
        return [entry["message"] for entry in self.call("POST", "se/log", type="browser")]


@contextmanager
def open_browser(folder: Path) -> Iterator[Browser]:
    """A new browser with an empty profile in ``folder``."""
    assert CHROMIUM and DRIVER
    port = free_port()
    server = LocalServer([DRIVER, f"--port={port}"], cwd=folder, log=folder / "chromedriver.log")
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=90) as client:

            def ready() -> bool:
                try:
                    return bool(client.get("/status").json()["value"]["ready"])
                except httpx.TransportError:
                    return False

            server.wait_until(ready, 60)
            options = {"binary": CHROMIUM, "args": [*_FLAGS, f"--user-data-dir={folder / 'profile'}"]}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            answer = client.post("/session", json={"capabilities": {"alwaysMatch": wanted}})
            assert answer.is_success, answer.text
            session = answer.json()["value"]["sessionId"]
            try:
                yield Browser(client, session)
            finally:
                client.delete(f"/session/{session}")
    finally:
        server.stop()
