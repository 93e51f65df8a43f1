"""Checkpoints with sums of their tensors, to be damaged and looked at."""

import os
from pathlib import Path
from typing import Any

import torch

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Inspection, Piece
from seawall.training.checkpointer import Checkpointer

TARGET = "model.w"
"""The tensor that is damaged."""


def saved(folder: Path, state: dict[str, Any], step: int = 9) -> Path:
    with Checkpointer(folder, epoch=1) as checkpointer:
        return checkpointer.save(step, state).path


def bytes_in(stored: torch.Tensor) -> bytes:
    return bytes(stored.reshape(-1).view(torch.uint8).numpy())


def bytes_of(path: Path, piece: Piece) -> bytes:
    assert piece.start is not None
    return (path / piece.file).read_bytes()[piece.start : piece.start + piece.nbytes]


def piece_of(path: Path, name: str = TARGET) -> Piece:
    [piece] = next(tensor for tensor in inspect(path).tensors if tensor.name == name).pieces
    return piece


def flip_at_rest(path: Path, name: str = TARGET, byte: int = 100) -> None:
    """Flip one bit of a stored tensor."""
    piece = piece_of(path, name)
    assert piece.start is not None
    with open(path / piece.file, "r+b") as file:
        file.seek(piece.start + byte)
        found = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([found ^ 0x10]))


def other_tensors(found: Inspection) -> set[tuple[str, str]]:
    """(file, tensor) of the tensors that are said to be others than were saved."""
    return {(reason.file, reason.tensor) for reason in found.reasons if "in memory" in reason.text}
