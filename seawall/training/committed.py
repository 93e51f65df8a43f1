"""What a finished save gave."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Committed:
    """A checkpoint whose commit mark is on disk."""

    step: int
    epoch: int
    path: Path
    world_size: int
    saved_at: str
