"""kill -9 at every write of a retention run leaves whole copies or buried ones, and the next run ends what was begun."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PARTS = 2
"""The writes are dealt out to this many tests, so that two workers share them."""


def kills(folder: Path, *arguments: object) -> list[dict[str, Any]]:
    """What the driver says of each kill."""
    driver = subprocess.run(
        [sys.executable, "-m", "tests.protect.retention_kill_driver", str(folder), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=110,
    )
    assert driver.returncode == 0, driver.stderr[-3000:]
    return [json.loads(line) for line in driver.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, PARTS + 1))
def test_kill_at_every_write(tmp_path: Path, first: int) -> None:
    rows = kills(tmp_path, first, PARTS)
    wrong = [row for row in rows if row["problems"]]
    assert not wrong, wrong[:3]
    # A lease, and for each of two copies an intent, a tombstone and nine objects. Fewer kills mean that the test lost its grip.
    assert len(rows) >= 22 // PARTS, len(rows)
    assert any(row["waited"] for row in rows), "no kill left a lease behind"


def test_the_wrong_order_is_found_out(tmp_path: Path) -> None:
    rows = kills(tmp_path, 4, 100, "tombstone-last")
    assert "is gone without a tombstone" in rows[0]["problems"][0], rows[0]
