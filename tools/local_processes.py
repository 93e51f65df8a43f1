"""Processes that outlive the command that started them: which they are, and how all of them end.

Airflow puts every task into a process group of its own, so a group is not everything that a component started. Its session is.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from seawall.testing.local_server import stop_group

_STOP_SECONDS = 15.0


class ProcessList:
    """Name → process id, in a file that knows each process from the moment it runs: a command that was killed leaves nothing unknown."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, int]:
        """What was noted; empty when there is no file."""
        try:
            known: dict[str, int] = json.loads(self.path.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return known

    def note(self, name: str, pid: int) -> None:
        """Add one, or replace it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({**self.read(), name: pid}, indent=1))
        fresh.replace(self.path)

    def running(self) -> dict[str, int]:
        """Those that run. A number that the system gave to somebody else since is not one of them."""
        return {name: pid for name, pid in self.read().items() if _leads(pid, _program(name))}

    def stop(self, *last: str) -> None:
        """End all of them with everything that they started, at once; those named ``last`` after the others, in that order."""
        known = self.read()
        with ThreadPoolExecutor(max_workers=max(1, len(known))) as pool:
            list(pool.map(lambda name: end_session(known[name], _program(name)), [name for name in known if name not in last]))
        for name in last:
            if name in known:
                end_session(known[name], _program(name))
        self.path.unlink(missing_ok=True)


def end_session(leader: int, program: str) -> None:
    """End the process ``leader`` of that program politely, then whatever else is in its session for certain."""
    if not _leads(leader, program) and not members(leader, program):
        return
    stop_group(leader, program)
    left = members(leader, program)
    for process in left:
        try:
            process.terminate()
        except psutil.NoSuchProcess:
            continue
    _, stubborn = psutil.wait_procs(left, _STOP_SECONDS)
    for process in stubborn:
        process.kill()
    psutil.wait_procs(stubborn, _STOP_SECONDS)


def members(session: int, program: str) -> list[psutil.Process]:
    """Processes of a session other than its leader, as long as ``program`` is in their command lines."""
    return [process for pid in psutil.pids() if pid != session and (process := _member(pid, session, program)) is not None]


def _member(pid: int, session: int, program: str) -> psutil.Process | None:
    try:
        if os.getsid(pid) != session:
            return None
        process = psutil.Process(pid)
        return process if program in " ".join(process.cmdline()) else None
    except (OSError, psutil.Error):
        return None


def _leads(pid: int, program: str) -> bool:
    """Whether ``pid`` is that program and leads its session, as everything does that was started here."""
    try:
        return os.getsid(pid) == pid and program in " ".join(psutil.Process(pid).cmdline())
    except (OSError, psutil.Error):
        return False


def _program(name: str) -> str:
    return "weed" if name == "weed" else "airflow"
