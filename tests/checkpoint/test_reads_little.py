"""A shallow look reads structure only: counted in bytes handed over by the kernel, because times lie."""

import json
import struct
from pathlib import Path

import pytest
import torch

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Verdict

GIB = 1 << 30


def bytes_read() -> int:
    """Bytes that this process has asked for so far (proc(5), /proc/pid/io: rchar)."""
    return int(Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])


def read_for(path: Path) -> int:
    inspect(path)  # imports are read, too
    before = bytes_read()
    assert inspect(path).verdict is Verdict.OK
    return bytes_read() - before


def sparse_safetensors(path: Path, tensors: int = 64) -> None:
    each = GIB // tensors
    header = json.dumps(
        {f"layer.{n}": {"dtype": "F32", "shape": [each // 4], "data_offsets": [n * each, (n + 1) * each]} for n in range(tensors)}
    ).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + GIB)


def test_safetensors(tmp_path: Path) -> None:
    sparse_safetensors(tmp_path / "model.safetensors")
    assert read_for(tmp_path / "model.safetensors") < 1 << 20


@pytest.mark.parametrize("tensors", [1, 64])
def test_torch_zip(tmp_path: Path, tensors: int) -> None:
    with torch.serialization.skip_data():
        torch.save({f"layer.{n}": torch.empty(GIB // 4 // tensors) for n in range(tensors)}, tmp_path / "m.pt")
    assert (tmp_path / "m.pt").stat().st_size > GIB
    assert read_for(tmp_path / "m.pt") < 1 << 20


def test_torch_legacy(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(4)}, tmp_path / "m.pth", _use_new_zipfile_serialization=False)
    raw = (tmp_path / "m.pth").read_bytes()
    big = GIB // 4
    raw = raw[:-24].replace(b"K\x04N", b"J" + struct.pack("<i", big) + b"N").replace(b"K\x04\x85", b"J" + struct.pack("<i", big) + b"\x85")
    with (tmp_path / "m.pth").open("wb") as file:
        file.write(raw + struct.pack("<q", big))
        file.truncate(len(raw) + 8 + GIB)
    assert read_for(tmp_path / "m.pth") < 3 << 20


def test_opaque(tmp_path: Path) -> None:
    (tmp_path / "_COMMITTED").touch()
    with (tmp_path / "state").open("wb") as file:
        file.truncate(GIB)
    assert read_for(tmp_path) < 1 << 20
