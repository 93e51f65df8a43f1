"""A server program that runs on this machine for a while: started with free ports, awaited, and ended by its process group."""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from seawall.errors import ConfigurationError, StoreUnavailableError

_STOP_SECONDS = 15.0
"""SeaweedFS writes its last pages within a second or two of SIGTERM; whatever takes longer is killed."""
_POLL_SECONDS = 0.05


def program(name: str, wheel: str) -> str:
    """Path of a program that a wheel put beside this interpreter, or that the system has."""
    beside = Path(sys.executable).parent
    found = shutil.which(name, path=str(beside)) or shutil.which(name)
    if found is None:
        raise ConfigurationError(f"{name} is not installed", where=str(beside), do=f"install the package {wheel}")
    return found


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port that was free a moment ago. Another program may take it before the server does: the caller tries again."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class LocalServer:
    """One child process in a session of its own, so that its children end with it. Its output goes to ``log``."""

    def __init__(self, command: Sequence[str], *, cwd: Path, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return as soon as ``ready`` holds; raise with the end of the log when the process ends or the time is over."""
        deadline = time.monotonic() + seconds
        while not ready():
            if self._process.poll() is not None:
                raise StoreUnavailableError("the server ended while it started", where=str(self._process.args), why=self._log_end())
            if time.monotonic() > deadline:
                self.kill()
                raise StoreUnavailableError(
                    f"the server was not ready after {seconds:.0f} s", where=str(self._process.args), why=self._log_end()
                )
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """End it politely, then for certain."""
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it as a power cut would, as far as a process can tell."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _log_end(self) -> str:
        return self.log.read_bytes()[-2000:].decode("utf-8", "replace")


def answers_http(port: int, path: str = "/") -> bool:
    """Whether something on this port of 127.0.0.1 answers HTTP, with whatever status below 500."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def stop_group(pid: int, program_name: str, *, polite: bool = True) -> None:
    """End a process group that another process of ours started: politely unless told otherwise, then for certain.

    Nothing happens when it is gone.

    ``program_name`` must be in the command line of ``pid``, lest a recycled number hits somebody else.
    """
    for number, seconds in ((signal.SIGTERM, _STOP_SECONDS if polite else 0.0), (signal.SIGKILL, _STOP_SECONDS)):
        if not _runs(pid, program_name):
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
        deadline = time.monotonic() + seconds
        while _runs(pid, program_name) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


def _runs(pid: int, program_name: str) -> bool:
    try:
        # A process that ended and was not collected by its parent yet has an empty command line.
        return program_name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
