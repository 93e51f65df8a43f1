"""A trainer killed at each of its file operations, and in the middle of its writes: no mark on what is not whole, and nothing lost."""

import subprocess
import sys
from pathlib import Path

import pytest

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Verdict
from seawall.training.checkpointer import Checkpointer
from seawall.training.mark import MARK
from seawall.training.resume import load
from seawall.training.steps import step_states
from tests.training.states import empty_state, state_of


@pytest.fixture(scope="module", params=[("save", 1), ("save_async", 3)], ids=["save", "save_async"])
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The run folders that kills left, and one of a trainer that was not killed."""
    how, stride = request.param
    base = tmp_path_factory.mktemp(how)
    command = [sys.executable, "-m", "tests.training.kill_driver", str(base), how, str(stride)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25, "two saves and two removals are more operations than that"
    return sorted(base.iterdir())


def test_a_mark_is_on_nothing_that_is_not_whole(killed: list[Path]) -> None:
    seen = set()
    for run in killed:
        for folder in sorted(run.glob("step_*")):
            found = inspect(folder, deep=True)
            marked = (folder / MARK).exists()
            seen.add((marked, found.verdict))
            if marked:
                assert found.verdict is Verdict.OK, (run, folder, found.reasons)
                assert found.epoch == 1
                state = empty_state()
                load(folder, state)
                assert state["model"]["w"].eq(int(folder.name[5:])).all()
            else:
                # Also between DCP's own .metadata and the mark, and in the middle of a removal.
                assert found.verdict is Verdict.INCOMPLETE, (run, folder, found.reasons)
    assert seen == {(True, Verdict.OK), (False, Verdict.INCOMPLETE)}


def test_one_whole_checkpoint_is_there_at_every_instant(killed: list[Path]) -> None:
    newest = []
    for run in killed:
        found = inspect(run)
        assert found.verdict in (Verdict.OK, Verdict.WARN), (run, found.reasons)
        assert found.step is not None
        newest.append(found.step)
    assert set(newest) == {0, 1, 2}


def test_the_next_trainer_goes_on_and_clears_up(killed: list[Path]) -> None:
    for run in killed:
        state = empty_state()
        step = load(run, state).step
        with Checkpointer(run, epoch=1, keep=1, copies_before_pruning=1) as checkpointer:
            checkpointer._proved_copies = lambda saved: 1
            # The step that the killed one was at, perhaps, and one that it never came to.
            for again in (step + 1, 9):
                checkpointer.save(again, state_of(again))
            checkpointer.prune()
        assert [state.step for state in step_states(run)] == [9], run
        assert sorted(path.name for path in run.iterdir()) == [".training.lock", "step_00000009"]
