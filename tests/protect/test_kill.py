"""kill -9 at every write of a sync leaves no copy or a whole one, and the next sync goes on from there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.protect.little_site import write_checkpoint

PARTS = 2
"""The writes are dealt out to this many tests, so that two workers share them."""


@pytest.mark.parametrize("first", range(1, PARTS + 1))
def test_kill_at_every_write(tmp_path: Path, first: int) -> None:
    files = {"small": os.urandom(1000), "empty": b"", "large": os.urandom((16 << 20) + 5), "other": os.urandom(100_000)}
    write_checkpoint(tmp_path / "ck", files=files)
    driver = subprocess.run(
        [sys.executable, "-m", "tests.protect.kill_driver", str(tmp_path), str(first), str(PARTS)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=110,
    )
    assert driver.returncode == 0, driver.stderr[-3000:]
    rows = [json.loads(line) for line in driver.stdout.splitlines()]
    wrong = [row for row in rows if row["problems"]]
    assert not wrong, wrong[:3]
    killed = [row for row in rows if not row["ended"]]
    # Two stores: keys, plan, files, batches, documents, receipts, log entries and mirrors. Fewer kills mean that the test lost its grip.
    assert len(killed) >= 2 * 34 // PARTS - 4, len(killed)
    assert any(row["adopted"] for row in killed), "no kill left anything to adopt"
