"""Memory has a bound that does not grow with the file: sync, verify and restore in one process of its own."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1 << 20


def peaks(folder: Path, mib: int, timeout: float, codec: str = "none") -> dict[str, int]:
    """Peak resident MiB after each verb."""
    driver = subprocess.run(
        [sys.executable, "-m", "tests.protect.memory_driver", str(folder), str(mib), codec],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=timeout,
    )
    shutil.rmtree(folder)
    assert driver.returncode == 0, driver.stderr[-3000:]
    found = json.loads(driver.stdout)
    assert found["before"] < found["sync"], "the control: a driver that does nothing would show no growth"
    return {verb: nbytes // MIB for verb, nbytes in found.items()}


def test_256_mib(tmp_path: Path) -> None:
    found = peaks(tmp_path / "work", 256, 100)
    assert max(found.values()) < 350, found


@pytest.mark.parametrize("codec", [pytest.param("fast", marks=pytest.mark.nightly), "balanced"])
def test_byte_planes_of_256_mib(tmp_path: Path, codec: str) -> None:
    """Sealing holds planes of a record beside it, opening a record beside its planes; derived weights take small pieces of their master."""
    found = peaks(tmp_path / "work", 256, 100, codec)
    assert max(found.values()) < 350, found


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_4_gib(tmp_path: Path) -> None:
    found = peaks(tmp_path / "work", 4096, 1700)
    assert max(found.values()) < 600, found
