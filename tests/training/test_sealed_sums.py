"""Sums of tensors in what was sealed and restored: a bit that flips in the copy or in the restored tree is found and named."""

from pathlib import Path

import pytest

from seawall.checkpoint.inspect import inspect
from seawall.errors import CorruptError
from seawall.kernels.crc64 import crc64
from seawall.protect.checkpoint_source import read_source
from seawall.protect.restore import restore
from seawall.training.resume import load
from seawall.vault.piece_sums import PieceSums
from seawall.verify.check import FAILED
from seawall.verify.levels import Level
from tests.protect.little_site import LittleSite, file_site
from tests.training.states import empty_state, state_of
from tests.training.summed import TARGET, flip_at_rest, other_tensors, piece_of, saved
from tests.verify.sealed_copy import SealedCopy, failed, proved, sealed


class TestSealed:
    @pytest.fixture
    def copy(self, tmp_path: Path) -> SealedCopy:
        return sealed(read_source(str(saved(tmp_path, state_of(9)))))

    def test_the_inventory_has_the_sums_of_memory(self, copy: SealedCopy) -> None:
        inventory = copy.inventory()
        assert inventory.notes["tensor_sums"] == "3 of 3 pieces were summed by training"
        sums = {tensor.name: [piece.crc64 for piece in tensor.pieces] for tensor in inventory.tensors}
        assert sums[TARGET] == [crc64(state_of(9)["model"]["w"].numpy().tobytes())]
        assert all(crc is not None for crcs in sums.values() for crc in crcs)
        assert proved(copy.check(Level.L4)) == {Level.L0, Level.L2, Level.L3, Level.L4}

    def test_a_flip_in_the_sealed_copy_is_found_and_names_the_file(self, copy: SealedCopy) -> None:
        damaged = copy.fresh()
        number = next(number for number, file in enumerate(copy.inventory().files) if file.name == "__0_0.distcp")
        key = f"{copy.folder}file-{number}.sea"
        raw = bytearray(damaged.store.objects[key])
        raw[300] ^= 1
        damaged.store.objects[key] = bytes(raw)
        found = damaged.check(Level.L4)
        assert failed(found) >= {Level.L2}
        assert {damage.object for damage in found[Level.L2].damages} == {f"file-{number}.sea"}

    def test_a_flip_between_opening_and_the_restored_tree_is_found_by_l4(self, copy: SealedCopy, monkeypatch: pytest.MonkeyPatch) -> None:
        """Decrypted right, and another byte in the memory that is summed."""
        observe = PieceSums.observe
        piece = next(tensor for tensor in copy.inventory().tensors if tensor.name == TARGET).pieces[0]

        def flipped(self: PieceSums, at: int, chunk: memoryview) -> None:
            assert piece.start is not None
            if (piece.start, piece.nbytes) in self._spans and at <= piece.start < at + len(chunk):
                changed = bytearray(chunk)
                changed[piece.start - at + 100] ^= 0x10
                chunk = memoryview(changed)
            observe(self, at, chunk)

        monkeypatch.setattr(PieceSums, "observe", flipped)
        finding = copy.check(Level.L4)[Level.L4]
        assert finding.result == FAILED
        assert [damage.object for damage in finding.damages] == [TARGET]
        assert "__0_0.distcp" in finding.damages[0].why


class TestRestored:
    @pytest.fixture
    def restored(self, tmp_path: Path) -> Path:
        site: LittleSite = file_site(tmp_path)
        done = site.sync(saved(tmp_path / "run", state_of(9)))
        restore(*site.opened("a", done.sealing), tmp_path / "back")
        return tmp_path / "back"

    def test_a_restored_tree_has_the_sums_of_memory(self, restored: Path) -> None:
        state = empty_state()
        assert load(restored, state).step == 9
        assert piece_of(restored).crc64 == crc64(state["model"]["w"].numpy().tobytes())

    def test_a_flip_in_it_is_found_and_named(self, restored: Path) -> None:
        flip_at_rest(restored, "model.b", byte=3)
        found = inspect(restored, deep=True)
        assert other_tensors(found) == {("__0_0.distcp", "model.b")}
        with pytest.raises(CorruptError) as raised:
            load(restored, empty_state())
        assert "__0_0.distcp model.b" in raised.value.where
