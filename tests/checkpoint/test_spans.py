"""The spans of an inspection are the tensors' own bytes: read from the file, they equal what torch has in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Inspection, Tensor, Verdict
from tests.cases.make_cases import legacy_bytes, put_dcp

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool)


def example() -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    found = {f"f{n}": torch.randn(7, 5).to(kind) for n, kind in enumerate(FLOATS)}
    found.update({f"i{n}": torch.arange(9).to(kind) for n, kind in enumerate(INTEGERS)})
    found["scalar"] = torch.tensor(2.5)
    found["empty"] = torch.zeros(0, 4)
    found["odd.name/ü"] = torch.randn(3, 1, 2)
    return found


def raw(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()) if tensor.numel() else b""


def stored(folder: Path, tensor: Tensor) -> bytes:
    """The bytes of a tensor of one piece, or of row-wise pieces in order."""
    parts = []
    for piece in sorted(tensor.pieces, key=lambda piece: piece.offsets):
        assert piece.start is not None, tensor.name
        with (folder / piece.file).open("rb") as file:
            file.seek(piece.start)
            parts.append(file.read(piece.nbytes))
    return b"".join(parts)


def compare(found: Inspection, folder: Path, expected: dict[str, torch.Tensor]) -> None:
    assert found.verdict is Verdict.OK, found.reasons
    by_name = {tensor.name: tensor for tensor in found.tensors}
    assert set(by_name) == set(expected)
    for name, tensor in expected.items():
        assert by_name[name].shape == tuple(tensor.shape)
        assert by_name[name].dtype == str(tensor.dtype).removeprefix("torch.")
        assert stored(folder, by_name[name]) == raw(tensor), name


def save_new(path: Path, obj: Any) -> None:
    torch.save(obj, path)


def save_protocol_5(path: Path, obj: Any) -> None:
    torch.save(obj, path, pickle_protocol=5)


def save_old(path: Path, obj: Any) -> None:
    torch.save(obj, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("save", [save_new, save_protocol_5, save_old])
@pytest.mark.parametrize("deep", [False, True])
def test_torch_files(tmp_path: Path, save: Callable[[Path, Any], None], deep: bool) -> None:
    expected = example()
    save(tmp_path / "m.pt", expected)
    compare(inspect(tmp_path / "m.pt", deep=deep), tmp_path, expected)


def test_the_old_stream_of_old_torch(tmp_path: Path) -> None:
    expected = {
        name: tensor for name, tensor in example().items() if tensor.dtype in (torch.float32, torch.int64, torch.float16, torch.bool)
    }
    (tmp_path / "m.pth").write_bytes(legacy_bytes(expected))
    compare(inspect(tmp_path / "m.pth"), tmp_path, expected)


def test_safetensors(tmp_path: Path) -> None:
    expected = example()
    safetensors.torch.save_file(expected, tmp_path / "m.safetensors", {"note": "x"})
    compare(inspect(tmp_path / "m.safetensors", deep=True), tmp_path, expected)


def test_tied_weights_have_one_span_and_slices_their_own(tmp_path: Path) -> None:
    base = torch.randn(8, 6)
    expected = {"a": base, "b": base, "rows": base[2:4], "flat": base.view(-1)[5:11]}
    torch.save({**expected, "t": base.t(), "columns": base[:, 1:3]}, tmp_path / "m.pt")
    found = inspect(tmp_path / "m.pt")
    by_name = {tensor.name: tensor for tensor in found.tensors}
    for name, tensor in expected.items():
        assert stored(tmp_path, by_name[name]) == raw(tensor)
    assert by_name["a"].pieces == by_name["b"].pieces
    assert by_name["t"].pieces[0].start is None and by_name["columns"].pieces[0].start is None


def test_parameters_modules_and_optimizers_have_the_names_of_their_state(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    torch.save(model, tmp_path / "whole.pt")
    found = {tensor.name: tensor for tensor in inspect(tmp_path / "whole.pt").tensors}
    state = model.state_dict()
    assert set(found) == set(state)
    assert all(stored(tmp_path, found[name]) == raw(tensor) for name, tensor in state.items())


def test_a_real_distributed_checkpoint(tmp_path: Path) -> None:
    expected = example()
    dcp.save({**expected, "step": 12, "note": "text"}, checkpoint_id=tmp_path / "step_12", no_dist=True)
    found = inspect(tmp_path / "step_12", deep=True)
    compare(found, tmp_path / "step_12", expected)
    assert (found.layout, found.step, found.commit_mark) == ("dcp", 12, ".metadata")


def test_a_distributed_checkpoint_of_many_ranks(tmp_path: Path) -> None:
    expected = {name: tensor for name, tensor in example().items() if tensor.dim() == 2 and tensor.numel()}
    put_dcp(tmp_path / "c", expected, 3)
    found = inspect(tmp_path / "c")
    compare(found, tmp_path / "c", expected)
    assert found.world_size == 3
    assert {len(tensor.pieces) for tensor in found.tensors} == {3}


def test_a_sharded_adam_step_by_the_real_writer(tmp_path: Path) -> None:
    """What a training loop stores: model, optimizer with nested state, counters."""
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 1}, checkpoint_id=tmp_path / "c", no_dist=True)
    found = inspect(tmp_path / "c", deep=True)
    assert found.verdict is Verdict.OK, found.reasons
    by_name = {tensor.name: tensor for tensor in found.tensors}
    assert stored(tmp_path / "c", by_name["model.weight"]) == raw(model.weight)
    assert stored(tmp_path / "c", by_name["optimizer.state.0.exp_avg"]) == raw(optimizer.state_dict()["state"][0]["exp_avg"])
