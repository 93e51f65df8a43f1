"""The checkpointer in one process: what it writes, what it refuses, what it removes."""

import logging
import math
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Verdict
from seawall.clock import SystemClock
from seawall.errors import EpochClosedError, SeawallError, UsageError
from seawall.training.checkpointer import Checkpointer
from seawall.training.committed import Committed
from seawall.training.dcp_write import write_now
from seawall.training.epoch import EpochWatch
from seawall.training.heartbeat import Heartbeat
from seawall.training.mark import MARK, UNFINISHED, read_mark
from seawall.training.resume import load
from seawall.training.steps import SavedStep, step_folder, step_states
from seawall.training.writing import finish, make_ready
from tests.training.states import SIZE, empty_state, state_of


def complete(folder: Path) -> list[int]:
    return [state.step for state in step_states(folder) if state.complete]


def value(folder: Path, step: int) -> float:
    state = empty_state()
    load(step_folder(folder, step), state)
    [found] = set(state["model"]["w"].tolist())
    return float(found)


def test_a_saved_checkpoint_is_ok_and_its_tensors_lie_where_they_are_said_to(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, epoch=3) as checkpointer:
        committed = checkpointer.save(20, state_of(20), loss=1 / 3, gradient_norm=2.0)
    assert committed.path == tmp_path / "step_00000020"
    found = inspect(committed.path, deep=True)
    assert (found.verdict, found.reasons) == (Verdict.OK, [])
    assert (found.layout, found.step, found.epoch, found.commit_mark, found.world_size) == ("dcp", 20, 3, MARK, 1)
    assert {tensor.name: (tensor.dtype, tensor.shape) for tensor in found.tensors} == {
        "model.w": ("float32", (SIZE,)),
        "model.b": ("bfloat16", (3, 5)),
        "random.rank0": ("uint8", (16,)),
    }
    [piece] = next(tensor for tensor in found.tensors if tensor.name == "model.w").pieces
    assert piece.start is not None
    raw = (committed.path / piece.file).read_bytes()[piece.start : piece.start + piece.nbytes]
    assert raw == state_of(20)["model"]["w"].numpy().tobytes()


def test_the_mark_says_it_all_exactly(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, epoch=3) as checkpointer:
        checkpointer.save(20, state_of(20), loss=1 / 3, gradient_norm=float("nan"))
        checkpointer.save(21, state_of(21))
    mark = read_mark(step_folder(tmp_path, 20))
    assert (mark.epoch, mark.step, mark.world_size, mark.torch) == (3, 20, 1, str(torch.__version__))
    assert mark.loss is not None
    assert float(mark.loss) == 1 / 3
    assert mark.gradient_norm == "nan"
    bare = read_mark(step_folder(tmp_path, 21))
    assert (bare.loss, bare.gradient_norm) == (None, None)


def test_tensors_changed_right_after_an_asynchronous_save_are_stored_as_they_were(tmp_path: Path) -> None:
    state = state_of(10)
    state["list"] = [1, 2]
    state["big"] = torch.full((4_000_000,), 10.0)
    with Checkpointer(tmp_path, epoch=1) as checkpointer:
        checkpointer.save_async(10, state)
        for tensor in (*state["model"].values(), state["big"]):
            tensor.fill_(-1.0)
        state["list"].append(3)
        state["step"] = 11
        committed = checkpointer.wait()
    assert committed is not None
    assert committed.step == 10
    found = {**empty_state(), "list": [], "big": torch.zeros(4_000_000)}
    load(committed.path, found)
    assert found["model"]["w"].eq(10.0).all()
    assert found["model"]["b"].eq(10.0).all()
    assert found["big"].eq(10.0).all()
    assert found["list"] == [1, 2]
    assert found["step"] == 10


def test_one_asynchronous_save_after_the_other(tmp_path: Path) -> None:
    told: list[int] = []
    state = state_of(0)
    with Checkpointer(tmp_path, epoch=1, on_commit=lambda committed: told.append(committed.step)) as checkpointer:
        for step in range(1, 6):
            state["model"]["w"].fill_(step)
            state["step"] = step
            checkpointer.save_async(step, state)
    assert told == [1, 2, 3, 4, 5]
    assert [value(tmp_path, step) for step in complete(tmp_path)] == [1, 2, 3, 4, 5]


def test_who_is_told_may_fail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(committed: Committed) -> None:
        raise RuntimeError("a listener's own trouble")

    with Checkpointer(tmp_path, epoch=1, on_commit=fail) as checkpointer:
        checkpointer.save(1, state_of(1))
        checkpointer.save_async(2, state_of(2))
    assert complete(tmp_path) == [1, 2]
    assert caplog.text.count("telling others failed") == 2


class Epochs:
    """The epoch of a log, and readings of it that can be waited for."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.fails = False
        self.readings = threading.Semaphore(0)

    def __call__(self) -> int:
        try:
            if self.fails:
                raise OSError("the log's store is not there")
            return self.epoch
        finally:
            self.readings.release()


def seen(watch: EpochWatch, epochs: Epochs) -> None:
    """Two readings that began after now: the first may have been under way."""
    for _ in range(2):
        while epochs.readings.acquire(blocking=False):
            pass
        watch.refresh()
        assert epochs.readings.acquire(timeout=30)


def test_a_closed_epoch_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    epochs = Epochs(1)
    watch = EpochWatch(epochs)
    assert watch.wait_first(30)
    with Checkpointer(tmp_path, epoch=1, epoch_watch=watch) as checkpointer:
        checkpointer.save(1, state_of(1))
        epochs.epoch = 2
        seen(watch, epochs)
        with pytest.raises(EpochClosedError, match="the run is in epoch 2"):
            checkpointer.save(3, state_of(3))
        with pytest.raises(EpochClosedError):
            checkpointer.save_async(4, state_of(4))
    watch.close()
    assert [path.name for path in tmp_path.glob("step_*")] == ["step_00000001"]


def test_an_epoch_that_is_closed_while_a_checkpoint_is_written_leaves_it_without_a_mark(tmp_path: Path) -> None:
    epochs = Epochs(1)
    watch = EpochWatch(epochs)
    assert watch.wait_first(30)

    class Closing:
        """Asked for its state when the writing begins, as DCP asks modules."""

        def state_dict(self) -> dict[str, Any]:
            epochs.epoch = 2
            seen(watch, epochs)
            return {"w": torch.ones(10)}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            raise AssertionError("nothing is loaded here")

    with Checkpointer(tmp_path, epoch=1, epoch_watch=watch) as checkpointer, pytest.raises(EpochClosedError):
        checkpointer.save(5, {"model": Closing()})
    watch.close()
    assert (tmp_path / "step_00000005" / UNFINISHED).exists()
    assert inspect(tmp_path / "step_00000005").verdict is Verdict.INCOMPLETE


def test_a_log_that_cannot_be_read_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    epochs = Epochs(1)
    epochs.fails = True
    watch = EpochWatch(epochs, every=0.01)
    with Checkpointer(tmp_path, epoch=1, epoch_watch=watch) as checkpointer:
        checkpointer.save(1, state_of(1))
        for _ in range(3):
            assert epochs.readings.acquire(timeout=30)
        epochs.fails, epochs.epoch = False, 1
        seen(watch, epochs)
        checkpointer.save(2, state_of(2))
    watch.close()
    assert complete(tmp_path) == [1, 2]
    assert caplog.text.count("the run's log cannot be read") == 1


def test_what_is_known_of_the_epoch_never_goes_down() -> None:
    epochs = Epochs(5)
    watch = EpochWatch(epochs)
    assert watch.wait_first(30)
    epochs.epoch = 4
    seen(watch, epochs)
    watch.close()
    with pytest.raises(EpochClosedError):
        watch.check(4)
    watch.check(5)


def test_a_step_saved_again_sets_the_first_aside(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, epoch=1) as checkpointer:
        checkpointer.save(10, {**state_of(10), "model": {"w": torch.zeros(3)}})
    with Checkpointer(tmp_path, epoch=2) as checkpointer:
        checkpointer.save(10, state_of(10))
        checkpointer.save(10, state_of(10))
    assert complete(tmp_path) == [10]
    assert read_mark(step_folder(tmp_path, 10)).epoch == 2
    aside = sorted(path.name for path in tmp_path.glob(".replaced-*"))
    assert aside == [".replaced-0001-step_00000010", ".replaced-0002-step_00000010"]
    assert read_mark(tmp_path / aside[0]).epoch == 1, "it may be the only copy of what it holds"
    assert inspect(tmp_path).path == str(step_folder(tmp_path, 10))


def test_what_somebody_else_put_there_is_not_touched(tmp_path: Path) -> None:
    theirs = step_folder(tmp_path, 10)
    theirs.mkdir()
    (theirs / "model.safetensors").write_bytes(b"theirs")
    (tmp_path / "step_00000011").symlink_to(theirs)
    with Checkpointer(tmp_path, epoch=1, keep=1, copies_before_pruning=1, proved_copies=lambda saved: 9) as checkpointer:
        for step in (10, 11):
            with pytest.raises(UsageError, match="something else is where the step would be saved"):
                checkpointer.save(step, state_of(step))
        checkpointer.save(20, state_of(20))
        assert checkpointer.prune() == []
    assert (theirs / "model.safetensors").read_bytes() == b"theirs"


SECOND = """
import sys
from seawall.errors import BusyError
from seawall.training.checkpointer import Checkpointer
try:
    Checkpointer(sys.argv[1], epoch=1).close()
except BusyError as error:
    print(error.what)
"""


def test_two_trainers_in_one_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SECOND, str(tmp_path)]
    with Checkpointer(tmp_path, epoch=1):
        assert subprocess.check_output(command, text=True) == "another process saves into this folder\n"
    assert subprocess.check_output(command, text=True) == ""


@pytest.mark.parametrize("name", ["step", "global_step", "iteration"])
def test_a_state_of_another_step_is_refused(tmp_path: Path, name: str) -> None:
    with Checkpointer(tmp_path, epoch=1) as checkpointer:
        with pytest.raises(UsageError, match=f"trainer.{name} = 99"):
            checkpointer.save(100, {"w": torch.ones(2), "trainer": {name: 99}})
        assert list(tmp_path.glob("step_*")) == []
        checkpointer.save(100, {"w": torch.ones(2), "trainer": {name: 100, "steps": 5}})
    assert inspect(tmp_path / "step_00000100").verdict is Verdict.OK


@pytest.mark.parametrize("options", [{"epoch": -1}, {"epoch": 1 << 63}, {"keep": 0}, {"copies_before_pruning": 0}])
def test_numbers_that_cannot_be_meant_are_refused(tmp_path: Path, options: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Checkpointer(tmp_path, **{"epoch": 1, **options})


def test_old_steps_go_only_when_they_are_proved_elsewhere(tmp_path: Path) -> None:
    copies: dict[int, int] = {}
    asked: list[SavedStep] = []

    def proved(saved: SavedStep) -> int:
        asked.append(saved)
        return copies.get(saved.step, 0)

    with Checkpointer(tmp_path, epoch=4, keep=2, proved_copies=proved) as checkpointer:
        for step in (10, 20, 30, 40, 50):
            checkpointer.save(step, state_of(step), loss=math.nan if step == 50 else 1.0)
        copies.update({10: 2, 20: 1, 30: 2})
        checkpointer.prune()
        assert complete(tmp_path) == [20, 30, 40, 50]
        assert SavedStep(20, 4, step_folder(tmp_path, 20)) in asked
        copies.update({20: 2, 40: 2, 50: 2})
        checkpointer.prune()
        assert complete(tmp_path) == [30, 40, 50], "50 is NaN and does not count among the two that are kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".training.lock",
        "step_00000030",
        "step_00000040",
        "step_00000050",
    ]


def test_marks_that_are_not_ours_hold_up_no_pruning(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, epoch=1, keep=1, copies_before_pruning=1, proved_copies=lambda saved: 9) as checkpointer:
        for step in (1, 2, 3, 4):
            checkpointer.save(step, state_of(step))
            if step < 3:
                (step_folder(tmp_path, step) / MARK).write_text("" if step == 1 else "{}")
        checkpointer.prune()
    assert complete(tmp_path) == [1, 2, 4]


def test_a_part_that_is_not_there_is_not_committed(tmp_path: Path) -> None:
    for number, spoil in enumerate((Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1]))):
        path = make_ready(tmp_path, number)
        metadata = write_now(path, state_of(number), None).metadata
        spoil(path / "__0_0.distcp")
        with pytest.raises(SeawallError, match="not whole"):
            finish(path, metadata, step=number, epoch=1, sums=[bytes(32)], loss=None, gradient_norm=None, clock=SystemClock())
        assert not (path / MARK).exists()
        assert inspect(path).verdict >= Verdict.INCOMPLETE


def test_pruning_goes_on_in_the_background(tmp_path: Path) -> None:
    gone = threading.Event()

    def proved(saved: SavedStep) -> int:
        if saved.step == 2:
            gone.set()  # Step 1 was decided about before, in the pruning before this one or in this one.
        return 2

    with Checkpointer(tmp_path, epoch=1, keep=1, proved_copies=proved) as checkpointer:
        for step in (1, 2, 3):
            checkpointer.save(step, state_of(step))
        assert gone.wait(30)
        deadline = 1000
        while complete(tmp_path) != [3] and deadline:
            threading.Event().wait(0.01)
            deadline -= 1
    assert complete(tmp_path) == [3]


def test_proofs_that_cannot_be_read_remove_nothing_and_stop_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked = threading.Semaphore(0)

    def proved(saved: SavedStep) -> int:
        asked.release()
        raise SeawallError("the proofs cannot be read")

    caplog.set_level(logging.WARNING)
    with Checkpointer(tmp_path, epoch=1, keep=1, proved_copies=proved) as checkpointer:
        for step in (1, 2, 3):
            checkpointer.save(step, state_of(step))
        assert asked.acquire(timeout=30)
        with pytest.raises(SeawallError, match="the proofs cannot be read"):
            checkpointer.prune()
    assert complete(tmp_path) == [1, 2, 3]


def test_without_proofs_nothing_is_ever_removed(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, epoch=1, keep=1) as checkpointer:
        for step in (1, 2, 3):
            checkpointer.save(step, state_of(step))
        assert checkpointer.prune() == []
    assert complete(tmp_path) == [1, 2, 3]


FULL = """
import resource, signal, sys
from seawall.errors import SeawallError
from seawall.training.checkpointer import Checkpointer
from seawall.training.writing import finish, make_ready
from tests.training.states import state_of

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Checkpointer(sys.argv[1], epoch=1) as checkpointer:
    checkpointer.save(1, state_of(1))
    for save in (checkpointer.save, checkpointer.save_async):
        # Writes fail beyond this size with EFBIG, in the middle of the rank file.
        resource.setrlimit(resource.RLIMIT_FSIZE, (9000, resource.RLIM_INFINITY))
        try:
            save(2, state_of(2))
            checkpointer.wait()
        except SeawallError as error:
            print(error.what)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(sorted(path.name for path in checkpointer.folder.iterdir()))
    checkpointer.save(2, state_of(2))
"""


def test_a_disk_that_fills_up(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    # What was half written is gone: on a full disk the next save needs the room.
    assert done.stdout.splitlines() == ["the checkpoint was not saved", "['.training.lock', 'step_00000001']"] * 2
    assert complete(tmp_path) == [1, 2]


def test_the_board_shows_a_save(tmp_path: Path) -> None:
    heartbeat = Heartbeat(tmp_path / "board", "gpt", epoch=1, every=0.05)
    phases = []

    class Looking:
        def state_dict(self) -> dict[str, Any]:
            phases.append(heartbeat._said["phase"])
            return {"w": torch.ones(10)}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            raise AssertionError("nothing is loaded here")

    with Checkpointer(tmp_path / "checkpoints", epoch=1, heartbeat=heartbeat) as checkpointer:
        heartbeat.report(1)
        checkpointer.save(1, {"model": Looking()})
        checkpointer.save_async(2, {"model": Looking()})
        assert heartbeat._said["phase"] == "training"
    heartbeat.close()
    assert phases == ["saving", "saving"]
