"""Small states to save, each known by its step."""

from typing import Any

import torch

SIZE = 5000


def state_of(step: int) -> dict[str, Any]:
    """Two tensors whose every value is the step, a tensor of another type, and an object."""
    return {
        "model": {"w": torch.full((SIZE,), float(step)), "b": torch.full((3, 5), float(step), dtype=torch.bfloat16)},
        "random": {"rank0": torch.full((16,), step % 256, dtype=torch.uint8)},
        "step": step,
    }


def empty_state() -> dict[str, Any]:
    return state_of(0)
