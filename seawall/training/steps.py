"""The folders of a run's steps as training writes them: ``<folder>/step_%08d``."""

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

from seawall.errors import SeawallError
from seawall.training.mark import MARK, UNFINISHED, read_mark
from seawall.training.prune import StepState

STEP_FOLDER = re.compile(r"step_(\d{8,19})")


@dataclass(frozen=True)
class SavedStep:
    """A committed checkpoint on this disk."""

    step: int
    epoch: int
    path: Path


def step_folder(folder: Path, step: int) -> Path:
    """Where a step is saved."""
    return folder / f"step_{step:08d}"


def step_states(folder: Path) -> list[StepState]:
    """Every step folder in ``folder``, oldest first. Links and names of other forms are none of ours."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            match = STEP_FOLDER.fullmatch(entry.name)
            if match and step_folder(folder, int(match[1])).name == entry.name and entry.is_dir(follow_symlinks=False):
                found.append(_state(int(match[1]), Path(entry.path)))
    return sorted(found, key=lambda state: state.step)


def _state(step: int, path: Path) -> StepState:
    try:
        names = set(os.listdir(path))
    except FileNotFoundError:
        names = {"gone"}
    complete = MARK in names and UNFINISHED not in names
    # An empty folder is what a kill leaves between the first two, or the last two, calls of a save or a removal.
    abandoned = MARK not in names and (UNFINISHED in names or not names)
    return StepState(step, complete, abandoned, _sound(path) if complete else True)


def _sound(path: Path) -> bool:
    try:
        mark = read_mark(path)
        return all(text is None or math.isfinite(float(text)) for text in (mark.loss, mark.gradient_norm))
    except (SeawallError, ValueError, OSError):
        return False


def saved_step(folder: Path, step: int) -> SavedStep:
    """The committed checkpoint of a step. Errors of :func:`~seawall.training.mark.read_mark`."""
    path = step_folder(folder, step)
    return SavedStep(step, read_mark(path).epoch, path)
