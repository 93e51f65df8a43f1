"""The heartbeat: what is on the board, how often it is written, and that nothing of it reaches training."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from seawall.errors import UsageError
from seawall.testing.fake_clock import FakeClock
from seawall.training.heartbeat import Heartbeat, board_folder


@contextmanager
def beating(board: Path, **options: Any) -> Iterator[Heartbeat]:
    heartbeat = Heartbeat(board, "gpt", **options)
    try:
        yield heartbeat
    finally:
        heartbeat.close()


def on_board(heartbeat: Heartbeat) -> dict[str, Any]:
    found = json.loads(heartbeat.path.read_text())
    assert isinstance(found, dict)
    return found


def until(heartbeat: Heartbeat, **wanted: object) -> dict[str, Any]:
    """Look at the board until it says what is wanted."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if heartbeat.path.exists() and wanted.items() <= (found := on_board(heartbeat)).items():
            return found
        threading.Event().wait(0.005)
    pytest.fail(f"the board never said {wanted}")


def test_the_board_says_where_training_is(tmp_path: Path) -> None:
    clock = FakeClock()
    with beating(tmp_path, rank=12, epoch=3, every=0.02, clock=clock) as heartbeat:
        assert heartbeat.path == tmp_path / "gpt" / "rank-00012.json"
        assert until(heartbeat, phase="starting")["step"] is None
        heartbeat.report(100, loss=2.5, gradient_norm=1 / 3)
        clock.sleep(3)
        heartbeat.report(102, loss=2.25, gradient_norm=1 / 3)
        found = until(heartbeat, step=102)
    assert {key: found[key] for key in ("run", "rank", "epoch", "pid", "phase", "loss", "gradient_norm", "step_seconds")} == {
        "run": "gpt",
        "rank": 12,
        "epoch": 3,
        "pid": os.getpid(),
        "phase": "training",
        "loss": "2.25",
        "gradient_norm": "0.3333333333333333",
        "step_seconds": 1.5,
    }
    assert on_board(heartbeat)["phase"] == "ended"
    assert [path.name for path in heartbeat.path.parent.iterdir()] == ["rank-00012.json"], "no temporary file stays"


def test_a_process_that_lives_and_makes_no_progress_shows(tmp_path: Path) -> None:
    clock = FakeClock()
    with beating(tmp_path, every=0.02, clock=clock) as heartbeat:
        heartbeat.report(7)
        said = until(heartbeat, step=7)["at"]
        clock.sleep(600)
        deadline = time.monotonic() + 30
        while on_board(heartbeat)["alive_at"] < "2026" or on_board(heartbeat)["alive_at"] == said:
            assert time.monotonic() < deadline
            threading.Event().wait(0.005)
        assert on_board(heartbeat)["at"] == said


def test_a_phase_shows_soon_and_ends(tmp_path: Path) -> None:
    with beating(tmp_path, every=2.0) as heartbeat:
        heartbeat.report(7)
        began = time.monotonic()
        with heartbeat.phase("saving"):
            assert until(heartbeat, phase="saving")["step"] == 7
        assert time.monotonic() - began < 1.9, "not only at the next beat"


def test_the_time_of_a_step_does_not_contain_a_save(tmp_path: Path) -> None:
    clock = FakeClock()
    with beating(tmp_path, every=0.02, clock=clock) as heartbeat:
        heartbeat.report(7)
        with heartbeat.phase("saving"):
            clock.sleep(1000)
        heartbeat.report(8)
        assert until(heartbeat, step=8)["step_seconds"] is None
        clock.sleep(2)
        heartbeat.report(9)
        assert until(heartbeat, step=9)["step_seconds"] == 2


def test_losses_that_are_not_finite_are_still_json(tmp_path: Path) -> None:
    with beating(tmp_path, every=0.02) as heartbeat:
        heartbeat.report(7, loss=float("nan"), gradient_norm=float("inf"))
        until(heartbeat, loss="nan", gradient_norm="inf")


def test_reports_are_cheap_and_the_board_is_written_seldom(tmp_path: Path) -> None:
    with beating(tmp_path, every=30.0) as heartbeat:
        first = until(heartbeat, phase="starting")
        for step in range(10_000):
            heartbeat.report(step, loss=1.0)
        assert on_board(heartbeat) == first


def test_a_board_that_cannot_be_written_is_logged_once_and_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    board = tmp_path / "board"
    board.write_text("a file where the folder should be")
    with beating(board, every=0.01) as heartbeat:
        for step in range(5):
            heartbeat.report(step)
        deadline = time.monotonic() + 30
        while "cannot be written" not in caplog.text:
            assert time.monotonic() < deadline
            threading.Event().wait(0.005)
        heartbeat.report(6)
        board.unlink()
        until(heartbeat, step=6)
    assert caplog.text.count("cannot be written") == 1


def test_where_a_board_is() -> None:
    assert board_folder("file:///mnt/health%20board") == Path("/mnt/health board")
    assert board_folder("relative/board") == Path("relative/board")
    with pytest.raises(UsageError):
        board_folder("s3://bucket/board")
    with pytest.raises(UsageError):
        Heartbeat("/board", "../run")
