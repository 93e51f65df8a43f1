"""Checksums of tensors from memory to the store: whatever flips on the way is found, and named by tensor and file.

The way has four stretches: memory to file, file at rest, sealed copy, restored tree. A bit is flipped on each, on the last two in
test_sealed_sums.py.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint import filesystem
from torch.distributed.checkpoint.staging import DefaultStager

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Piece, Verdict
from seawall.checkpoint.sums_file import TensorSum, decode_sums, sums_name
from seawall.errors import CorruptError
from seawall.kernels.crc64 import crc64
from seawall.protect import commit as committing
from seawall.protect import seal_batch as sealing
from seawall.protect.checkpoint_source import read_source
from seawall.protect.restore import restore
from seawall.training import summing
from seawall.training.checkpointer import Checkpointer
from seawall.training.mark import MARK, read_mark
from seawall.training.resume import load
from seawall.training.stored_sums import shares
from tests.protect.little_site import file_site
from tests.training.states import empty_state, state_of
from tests.training.summed import TARGET, bytes_in, bytes_of, flip_at_rest, other_tensors, piece_of, saved

SAVES: list[Callable[[Checkpointer, int, Any], object]] = [Checkpointer.save, Checkpointer.save_async]


def odd_state() -> dict[str, Any]:
    """Tensors whose bytes in memory are not simply those in the file, or have no NumPy type."""
    random = torch.Generator().manual_seed(1)
    base = torch.randn(64, 96, generator=random)
    return {
        "plain": base.clone(),
        "transposed": base.t(),
        "strided": base[::2, 1::3],
        "part": base[3:5],
        "bf16": base.to(torch.bfloat16),
        "fp8": base.to(torch.float8_e4m3fn),
        "fp8-transposed": base.to(torch.float8_e5m2).t(),
        "fp16": base.half(),
        "bool": base > 0,
        "int64": torch.arange(77),
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 4),
        "expanded": torch.tensor([1.5]).expand(5),
        "conjugated": torch.complex(base, -base).conj(),
        "negated": torch.complex(base, -base).conj().imag,
        "parameter": torch.nn.Parameter(base.clone()),
        "channels-last": torch.randn(2, 3, 4, 5, generator=random).to(memory_format=torch.channels_last),
        "many": [torch.full((number,), float(number)) for number in range(1, 4)],
        "step": 9,
    }


@pytest.fixture
def flipping_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real writer with a bad cell under it: of one tensor it gets a copy in which a bit is another."""
    write = filesystem._write_item

    def write_item(transforms: Any, stream: Any, data: Any, item: Any, *rest: Any) -> Any:
        if item.index.fqn == TARGET:
            data = data.clone()
            data.view(torch.uint8)[100] ^= 0x10
        return write(transforms, stream, data, item, *rest)

    monkeypatch.setattr(filesystem, "_write_item", write_item)


class TestWhatIsSaved:
    @pytest.mark.parametrize("save", SAVES, ids=["save", "save_async"])
    def test_every_tensor_has_the_sum_of_its_elements(self, tmp_path: Path, save: Callable[..., object]) -> None:
        state = odd_state()
        with Checkpointer(tmp_path, epoch=1) as checkpointer:
            save(checkpointer, 9, state)
            checkpointer.wait()
        path = tmp_path / "step_00000009"
        found = inspect(path, deep=True)
        assert (found.verdict, found.reasons) == (Verdict.OK, [])
        flat = {**state, **{f"many.{number}": tensor for number, tensor in enumerate(state["many"])}}
        assert {tensor.name for tensor in found.tensors} == flat.keys() - {"many", "step"}
        for tensor in found.tensors:
            [piece] = tensor.pieces
            elements = flat[tensor.name].detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
            raw = bytes(elements.view(torch.uint8).numpy()) if elements.numel() else b""
            assert (piece.crc64, piece.nbytes) == (crc64(raw), len(raw)), tensor.name
            assert bytes_of(path, piece) == raw, tensor.name

    @pytest.mark.parametrize("save", SAVES, ids=["save", "save_async"])
    def test_odd_tensors_come_back_as_they_were(self, tmp_path: Path, save: Callable[..., object]) -> None:
        state = odd_state()
        with Checkpointer(tmp_path, epoch=1) as checkpointer:
            save(checkpointer, 9, state)
        path = tmp_path / "step_00000009"
        into = {name: torch.zeros_like(value.detach()) if isinstance(value, torch.Tensor) else value for name, value in odd_state().items()}
        into["many"] = [torch.zeros(number) for number in range(1, 4)]
        into["expanded"] = torch.zeros(5)
        load(path, into)
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(into[name].to(torch.complex128), value.detach().to(torch.complex128)), name

    def test_training_may_change_its_tensors_at_once(self, tmp_path: Path) -> None:
        state = {"model": {"w": torch.full((2_000_000,), 1.0)}}
        with Checkpointer(tmp_path, epoch=1) as checkpointer:
            checkpointer.save_async(1, state)
            state["model"]["w"].fill_(2.0)
            committed = checkpointer.wait()
        assert committed is not None
        assert inspect(committed.path, deep=True).verdict == Verdict.OK
        assert piece_of(committed.path).crc64 == crc64(torch.full((2_000_000,), 1.0).numpy().tobytes())

    def test_the_mark_names_the_sums(self, tmp_path: Path) -> None:
        path = saved(tmp_path, state_of(9))
        assert len(read_mark(path).tensor_sums or "") == 64
        sums = decode_sums((path / sums_name(0)).read_bytes(), 0, "")
        assert {(one.name, one.at) for one in sums} == {("model.w", "cpu"), ("model.b", "cpu"), ("random.rank0", "cpu")}

    def test_a_sum_that_fails_fails_the_save(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError("no more")

        monkeypatch.setattr("seawall.training.summing._sum", fail)
        with Checkpointer(tmp_path, epoch=1) as checkpointer, pytest.raises(Exception, match="no more"):
            checkpointer.save(9, state_of(9))
        assert list(tmp_path.glob("step_*")) == []


class TestBetweenMemoryAndFile:
    """The file is written from other bytes than were summed. Every checksum inside of the file is right."""

    @pytest.fixture
    def path(self, tmp_path: Path, flipping_writer: None) -> Path:
        return saved(tmp_path / "run", state_of(9))

    def test_a_deep_look_names_tensor_and_file(self, path: Path) -> None:
        assert inspect(path).verdict == Verdict.OK
        found = inspect(path, deep=True)
        assert found.verdict == Verdict.CORRUPT
        assert other_tensors(found) == {("__0_0.distcp", TARGET)}

    def test_nothing_else_would_find_it(self, path: Path) -> None:
        """The control: without the sums the checkpoint is as good as any."""
        mark = json.loads((path / MARK).read_text())
        (path / MARK).write_text(json.dumps({**mark, "tensor_sums": None}))
        assert inspect(path, deep=True).verdict == Verdict.OK
        load(path, empty_state())

    def test_it_is_not_loaded(self, path: Path) -> None:
        with pytest.raises(CorruptError) as raised:
            load(path, empty_state())
        assert "__0_0.distcp" in raised.value.where and TARGET in raised.value.where
        assert load(path, empty_state(), check_sums=False).step == 9

    def test_it_is_not_sealed(self, tmp_path: Path, path: Path) -> None:
        site = file_site(tmp_path)
        with pytest.raises(CorruptError) as raised:
            site.sync(path)
        assert (raised.value.exit_code, raised.value.where) == (4, f"__0_0.distcp {TARGET}")
        assert site.view().state.commits == {}
        with pytest.raises(CorruptError):
            site.sync(path)
        assert site.view().state.commits == {}

    def test_asked_for_as_plain_files_it_is_sealed_quarantined(self, tmp_path: Path, path: Path) -> None:
        site = file_site(tmp_path)
        with pytest.raises(CorruptError):
            site.sync(path)
        done = site.sync(read_source(str(path), as_opaque=True))
        assert done.status == "committed" and "in memory" in done.quarantine
        assert list(site.view().state.commits) == [done.sealing]
        restore(*site.opened("a", done.sealing), tmp_path / "back")
        assert (tmp_path / "back" / "__0_0.distcp").read_bytes() == (path / "__0_0.distcp").read_bytes()
        assert site.sync(read_source(str(path), as_opaque=True)).status == "unchanged"

    def test_the_commit_compares_again(self, tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A batch that was sealed by something that does not compare."""
        site = file_site(tmp_path)
        with monkeypatch.context() as older:
            older.setattr(sealing, "check_taken", lambda *_: None)
            with pytest.raises(CorruptError) as raised:
                site.sync(path)
        assert TARGET in raised.value.where
        assert site.view().state.commits == {}
        monkeypatch.setattr(committing, "check_taken", lambda *_: None)
        assert site.sync(path).status == "committed", "the batch was there, and only the comparison held it up"


class TestStaging:
    """A bit flips while the state is copied for an asynchronous save. Of a tensor in GPU memory the sum is taken before, of one in host
    memory afterwards. No GPU is needed: what is tried is when the sums are taken, and a CPU stands in for the place."""

    @pytest.fixture(autouse=True)
    def _flipping_copy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        copy = DefaultStager.stage

        def stage(self: DefaultStager, state_dict: Any, **kwargs: Any) -> Any:
            staged = copy(self, state_dict, **kwargs)
            staged["model"]["w"].view(torch.uint8)[100] ^= 0x10
            return staged

        monkeypatch.setattr(DefaultStager, "stage", stage)

    def _saved(self, folder: Path) -> Path:
        with Checkpointer(folder, epoch=1) as checkpointer:
            checkpointer.save_async(9, state_of(9))
            committed = checkpointer.wait()
        assert committed is not None
        return committed.path

    def test_it_is_found_where_the_sum_was_taken_before(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(summing, "gpus_here", lambda: True)

        def stand_in(tensors: dict[summing.Place, torch.Tensor]) -> list[TensorSum]:
            return [TensorSum(*place, stored.nbytes, crc64(bytes_in(stored)), "cuda") for place, stored in tensors.items()]

        monkeypatch.setattr(summing, "sums_on_gpu", stand_in)
        path = self._saved(tmp_path)
        assert {one.at for one in decode_sums((path / sums_name(0)).read_bytes(), 0, "")} == {"cuda"}
        assert other_tensors(inspect(path, deep=True)) == {("__0_0.distcp", TARGET)}

    def test_it_is_not_in_the_sum_of_the_copy(self, tmp_path: Path) -> None:
        """As docs/training.md says: for tensors in host memory the staging copy is not covered."""
        assert inspect(self._saved(tmp_path), deep=True).verdict == Verdict.OK


class TestAtRest:
    def test_a_flip_on_the_source_is_not_sealed(self, tmp_path: Path) -> None:
        path = saved(tmp_path / "run", state_of(9))
        flip_at_rest(path)
        with pytest.raises(CorruptError) as raised:
            file_site(tmp_path).sync(path)
        assert raised.value.where == f"__0_0.distcp {TARGET}"

    def test_a_flip_under_an_object_that_is_adopted_is_not_sealed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """An earlier try stored the file and was killed; then the file flipped on disk, without a change of its times."""
        path = saved(tmp_path / "run", state_of(9))
        site = file_site(tmp_path)

        def killed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as once:
            once.setattr(sealing, "_put_batch", killed)
            with pytest.raises(KeyboardInterrupt):
                site.sync(path)
        file = path / "__0_0.distcp"
        before = os.stat(file)
        flip_at_rest(path)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(CorruptError) as raised:
            site.sync(path)
        assert TARGET in raised.value.where

    @pytest.mark.parametrize("large", [False, True], ids=["one part", "several parts"])
    def test_nothing_of_the_file_reaches_the_store(self, tmp_path: Path, large: bool) -> None:
        state = state_of(9) | ({"big": torch.ones(6_000_000)} if large else {})
        path = saved(tmp_path / "run", state)
        flip_at_rest(path)
        site = file_site(tmp_path)
        with pytest.raises(CorruptError):
            site.sync(path, places=("a",))
        number = sorted(os.listdir(path)).index("__0_0.distcp")
        assert not list((tmp_path / "a").rglob(f"file-{number}.sea"))


class TestSums:
    """What happens to the sums themselves."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return saved(tmp_path, state_of(9))

    def corrupt(self, path: Path) -> str:
        found = inspect(path)
        assert found.verdict == Verdict.CORRUPT
        [reason] = [reason for reason in found.reasons if reason.verdict == Verdict.CORRUPT]
        return reason.text

    def test_a_lost_file_is_noticed(self, path: Path) -> None:
        (path / sums_name(0)).unlink()
        assert "not those that the commit mark names" in self.corrupt(path)

    def test_a_changed_sum_is_noticed(self, path: Path) -> None:
        raw = (path / sums_name(0)).read_text()
        crc = f"{piece_of(path).crc64:016x}"
        assert crc in raw
        (path / sums_name(0)).write_text(raw.replace(crc, "0" * 16))
        assert "not those that the commit mark names" in self.corrupt(path)

    def test_a_file_of_a_rank_that_there_is_not_is_noticed(self, path: Path) -> None:
        (path / sums_name(5)).write_bytes((path / sums_name(0)).read_bytes())
        assert f"{sums_name(1)} is not there" in self.corrupt(path)

    def test_a_mark_of_an_older_version_has_none(self, path: Path) -> None:
        mark = json.loads((path / MARK).read_text())
        del mark["tensor_sums"]
        (path / MARK).write_text(json.dumps(mark))
        assert read_mark(path).tensor_sums is None
        found = inspect(path, deep=True)
        assert found.verdict == Verdict.OK
        assert {piece.crc64 for tensor in found.tensors for piece in tensor.pieces} == {None}


def test_ranks_share_the_reading_by_bytes() -> None:
    pieces = [(f"t{size}", Piece("f", size, 0, crc64=1)) for size in (1, 2, 3, 5, 8, 13, 21)]
    parts = shares(pieces, 3)
    assert sorted(one for part in parts for one in part) == sorted(pieces)
    assert sorted(sum(piece.nbytes for _, piece in part) for part in parts) == [16, 16, 21]
    assert shares([], 2) == [[], []]
