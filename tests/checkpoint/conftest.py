"""The cases on disk, built once for all workers, by a process of its own."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def case_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder with one sub-folder a case, and the working directory in which a payload would leave its marker."""
    shared = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    folder = shared / "checkpoint-cases"
    with (shared / "checkpoint-cases.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "cases.json").exists():
            command = [sys.executable, "-m", "tests.cases.build", str(folder)]
            done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=100)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder
