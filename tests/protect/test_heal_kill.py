"""kill -9 at every write of a heal leaves each object damaged as it was or whole, and the next heal ends it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seawall.testing.seaweedfs import SeaweedFS
from tests.protect.little_site import write_checkpoint


@pytest.mark.slow
def test_kill_at_every_write(tmp_path: Path) -> None:
    rows = _kills(tmp_path, 1, 1)
    # The act, keys, two missing objects (one in parts), three replaced, two documents, receipt, the act's end.
    assert len(rows) >= 13, len(rows)
    assert {row["repairs"] for row in rows} >= {8, 0}, "from all of it to nothing but the receipt"


@pytest.mark.slow
def test_kill_on_s3(tmp_path: Path, seaweed: SeaweedFS, s3_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", seaweed.keys.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", seaweed.keys.secret_access_key)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    rows = _kills(tmp_path, 7, 9, s3_url, seaweed.endpoint)
    assert rows and all(row["repairs"] for row in rows), rows


def _kills(folder: Path, *arguments: object) -> list[dict[str, Any]]:
    """Run the driver; the kills, after checking that every one left nothing wrong."""
    # Files by name: _COMMITTED, a, b, large, small; file-3 goes in parts.
    files = {"a": os.urandom(1000), "b": os.urandom(40_000), "large": os.urandom((16 << 20) + 5), "small": b"1"}
    write_checkpoint(folder / "ck", files=files)
    driver = subprocess.run(
        [sys.executable, "-m", "tests.protect.heal_kill_driver", str(folder), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=110,
    )
    assert driver.returncode == 0, driver.stderr[-3000:]
    rows = [json.loads(line) for line in driver.stdout.splitlines()]
    wrong = [row for row in rows if row["problems"]]
    assert not wrong, wrong[:3]
    killed = [row for row in rows if row["killed"]]
    assert len(killed) == len(rows) - 1, "the last heal came to its end"
    return killed
