"""Small real checkpoints, written without any of the packages that read them."""

import json
import struct
from pathlib import Path


def safetensors_bytes(values: list[float]) -> bytes:
    """One float32 tensor ``w`` (safetensors: 8 bytes length of a JSON header, the header, the data)."""
    data = struct.pack(f"<{len(values)}f", *values)
    header = json.dumps({"w": {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, len(data)]}}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data


def write_checkpoint(folder: Path, step: int) -> Path:
    """A folder with one model file and the mark of a finished save."""
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(safetensors_bytes([step + number / 8 for number in range(64)]))
    (folder / "_COMMITTED").touch()
    return folder
