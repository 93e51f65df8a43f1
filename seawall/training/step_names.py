"""The step that a state names by itself."""

from collections.abc import Mapping
from typing import Any

STEP_NAMES = ("step", "global_step", "iteration", "train_steps")
"""Numbers under these names are read as the checkpoint's step by whoever inspects it."""


def contradiction(state: Mapping[str, Any], step: int, below: str = "") -> str:
    """The name and value of a step in ``state`` that is not ``step``; empty when there is none.

    Such a checkpoint would be saved without a word and refused by sync as a mix of two saves.
    """
    for name, value in state.items():
        full = f"{below}.{name}" if below else str(name)
        if isinstance(value, Mapping):
            found = contradiction(value, step, full)
            if found:
                return found
        elif name in STEP_NAMES and isinstance(value, int) and not isinstance(value, bool) and value != step:
            return f"{full} = {value}"
    return ""
