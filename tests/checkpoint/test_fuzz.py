"""Damaged input never crashes, hangs, exhausts memory or runs anything, whichever parser gets it."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkpoint.conftest import CHECKOUT
from tests.checkpoint.fuzz import KINDS


def fuzz(folder: Path, kind: str, count: int, seed: int) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.checkpoint.fuzz", str(folder), kind, str(count), str(seed)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    met: dict[str, int] = ast.literal_eval(done.stdout)
    return met


@pytest.mark.parametrize("kind", KINDS)
def test_500_mutations(kind: str, case_folder: Path) -> None:
    met = fuzz(case_folder, kind, 500, 1)
    assert sum(met.values()) == 500
    # A fuzzer whose inputs are all refused at the door, or all pass, tests nothing.
    assert len(met) >= 2, met


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_10000_mutations(kind: str, case_folder: Path) -> None:
    assert sum(fuzz(case_folder, kind, 10_000, 2).values()) == 10_000
