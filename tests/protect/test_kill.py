"""kill -9 at every write of a sync leaves no copy or a whole one, and the next sync goes on from there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seawall.testing.seaweedfs import SeaweedFS
from tests.protect.little_site import write_checkpoint

PARTS = 2
"""The writes are dealt out to this many tests, so that two workers share them."""


@pytest.mark.parametrize("first", range(1, PARTS + 1))
def test_kill_at_every_write(tmp_path: Path, first: int) -> None:
    rows = _kills(tmp_path, first, PARTS)
    # Two stores: keys, plan, files, batches, documents, receipts, log entries and mirrors. Fewer kills mean that the test lost its grip.
    assert len(rows) >= 38 // PARTS, len(rows)


def test_kill_on_s3(tmp_path: Path, seaweed: SeaweedFS, s3_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", seaweed.keys.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", seaweed.keys.secret_access_key)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    rows = _kills(tmp_path, 5, 7, s3_url, seaweed.endpoint)
    assert len(rows) >= 5, len(rows)


def _kills(folder: Path, *arguments: object) -> list[dict[str, Any]]:
    """Run the driver; the kills, after checking that every one left nothing wrong."""
    files = {"small": os.urandom(1000), "empty": b"", "large": os.urandom((16 << 20) + 5), "other": os.urandom(100_000)}
    write_checkpoint(folder / "ck", files=files)
    driver = subprocess.run(
        [sys.executable, "-m", "tests.protect.kill_driver", str(folder), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=110,
    )
    assert driver.returncode == 0, driver.stderr[-3000:]
    rows = [json.loads(line) for line in driver.stdout.splitlines()]
    wrong = [row for row in rows if row["problems"] or row["leftovers"]]
    assert not wrong, wrong[:3]
    killed = [row for row in rows if not row["ended"]]
    assert any(row["adopted"] for row in killed), "no kill left anything to adopt"
    return killed
