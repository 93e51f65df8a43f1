"""Loading: only what was inspected, and all of it."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from seawall.errors import CorruptError, HostileError, IncompleteError, NoSuchCopyError, SeawallError, UnknownLayoutError, UsageError
from seawall.training.checkpointer import Checkpointer
from seawall.training.mark import MARK, UNFINISHED
from seawall.training.resume import find, load
from seawall.training.steps import step_folder
from tests.training.states import empty_state, state_of


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    with Checkpointer(folder, epoch=3) as checkpointer:
        checkpointer.save(10, state_of(10))
        checkpointer.save(20, state_of(20))
    return folder


@pytest.fixture
def saved(saved_once: Path, tmp_path: Path) -> Path:
    """A run with steps 10 and 20, for this test alone."""
    return Path(shutil.copytree(saved_once, tmp_path / "run"))


def test_a_step_and_the_newest_of_a_run(saved: Path) -> None:
    for path, step in ((step_folder(saved, 10), 10), (saved, 20)):
        state = empty_state()
        resumed = load(path, state)
        assert (resumed.step, resumed.epoch, resumed.world_size, resumed.warnings) == (step, 3, 1, ())
        assert state["step"] == step
        assert state["model"]["w"].eq(step).all()
        assert state["random"]["rank0"].eq(step).all()


def test_a_newer_one_that_is_not_finished_is_passed_over_with_a_warning(saved: Path) -> None:
    (step_folder(saved, 20) / MARK).rename(step_folder(saved, 20) / UNFINISHED)
    state = empty_state()
    resumed = load(saved, state)
    assert resumed.step == 10
    assert "step_00000020 is incomplete" in resumed.warnings[0]
    assert state["model"]["w"].eq(10).all()


class Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def cut(folder: Path) -> None:
    path = folder / "__0_0.distcp"
    path.write_bytes(path.read_bytes()[:-100])


def unfinished(folder: Path) -> None:
    (folder / MARK).rename(folder / UNFINISHED)


def hostile(folder: Path) -> None:
    (folder / ".metadata").write_bytes(pickle.dumps(Payload(folder / "ran")))


def lost(folder: Path) -> None:
    (folder / "__0_0.distcp").unlink()


def other_step(folder: Path) -> None:
    mark = folder / MARK
    mark.write_text(mark.read_text().replace('"step": 20', '"step": 21'))


def foreign(folder: Path) -> None:
    for name in (".metadata", "__0_0.distcp"):
        (folder / name).unlink()
    (folder / "weights.gguf").write_bytes(b"GGUF" + bytes(100))


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (cut, CorruptError),
        (unfinished, IncompleteError),
        (hostile, HostileError),
        (lost, IncompleteError),
        (other_step, CorruptError),
        (foreign, UnknownLayoutError),
    ],
)
def test_what_is_not_ok_is_not_loaded(saved: Path, damage: Any, error: type[SeawallError]) -> None:
    folder = step_folder(saved, 20)
    damage(folder)
    state = empty_state()
    with pytest.raises(error):
        load(folder, state)
    assert state["model"]["w"].eq(0).all(), "nothing was loaded before it was judged"
    assert not (folder / "ran").exists()


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchCopyError):
        find(tmp_path / "step_00000001")


def test_names_that_nobody_asks_for_are_an_error(saved: Path) -> None:
    state = empty_state()
    del state["model"]["b"], state["random"]
    with pytest.raises(UsageError, match=r"holds what the state does not ask for.*model\.b.*random\.rank0"):
        load(saved, state)
    with pytest.raises(UsageError, match=r"\[model\.b\]"):
        load(saved, state, leave=("random.",))
    load(saved, state, leave=("random.", "model.b"))
    assert state["model"]["w"].eq(20).all()


@pytest.mark.parametrize("wanted", [{"new": torch.ones(3)}, {"model": {"w": torch.ones(7), "b": torch.ones(3, 5, dtype=torch.bfloat16)}}])
def test_a_state_that_does_not_fit_is_a_typed_error(saved: Path, wanted: dict[str, Any]) -> None:
    # DCP's own is no Exception, so a trainer's `except Exception` would not see it.
    with pytest.raises(CorruptError, match="could not be loaded"):
        load(saved, {**empty_state(), **wanted})
