"""Which steps of its own folder training may remove. Pure; the removal is in :mod:`seawall.training.removal`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StepState:
    """A step's folder as it is found."""

    step: int
    complete: bool
    """It has the commit mark."""
    abandoned: bool = False
    """It has no commit mark, and was left so by a save or a removal of ours that was killed. Without this an incomplete folder is
    somebody else's."""
    sound: bool = True
    """Its loss and gradient norm were finite, or are not known."""


def prune(
    steps: Sequence[StepState], proved_copies: Mapping[int, int], keep: int, needed_copies: int, protected: Collection[int] = ()
) -> list[int]:
    """The steps to remove, oldest first.

    Kept are: the newest ``keep`` complete and sound steps and whatever is newer than the oldest of them; the newest complete one,
    sound or not; every step in ``protected`` (being written, being read); every incomplete one that is not ``abandoned`` or is
    newer than the newest complete one, because somebody may be writing it; and every step that is not proved to have
    ``needed_copies`` copies elsewhere. ``proved_copies`` is step → number of them; a step that is not in it has none, because
    unknown never certifies.

    A step with a loss that is not finite does not count among the ``keep``: NaN saved over and over would push out the last good one
    (deepmd-kit issue 4985). ``ValueError`` for bounds under 1.
    """
    removable = candidates(steps, keep, protected)
    if needed_copies < 1:
        raise ValueError("needed_copies is at least 1: a checkpoint that is nowhere else is not removed")
    abandoned = {state.step for state in steps if state.abandoned and not state.complete}
    return [step for step in removable if step in abandoned or proved_copies.get(step, 0) >= needed_copies]


def candidates(steps: Sequence[StepState], keep: int, protected: Collection[int] = ()) -> list[int]:
    """The steps that :func:`prune` removes if enough copies of them are proved (abandoned ones: in any case), oldest first."""
    if keep < 1:
        raise ValueError("keep is at least 1: the newest complete checkpoint stays")
    complete = sorted((state for state in steps if state.complete), key=lambda state: state.step)
    if not complete:
        return []
    sound = [state.step for state in complete if state.sound][-keep:]
    kept_from = sound[0] if len(sound) == keep else -1
    newest = complete[-1].step
    found = []
    for state in steps:
        if state.step in protected or state.step == newest:
            continue
        if state.step < kept_from if state.complete else state.abandoned and state.step < newest:
            found.append(state.step)
    return sorted(found)
