"""A place is filled with what was signed and with nothing else, whatever the copy that is read hands over."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from seawall.errors import CorruptError
from seawall.kernels.crc64 import crc64
from seawall.protect.complete import fill_place
from seawall.protect.sync import Synced
from seawall.testing.memory import MemoryStore
from seawall.vault.header import HEADER_BYTES
from seawall.vault.identity import sealing_folder
from seawall.vault.sealing import read_sealing
from tests.protect.little_site import RUN, LittleSite, write_checkpoint
from tests.protect.poison import with_crc_kept

MIB = 1 << 20
SMALL, LARGE = "file-2.sea", "file-1.sea"


@dataclass
class Filling:
    """A committed copy in ``a``, and a place ``c`` that has none."""

    site: LittleSite
    synced: Synced

    @property
    def folder(self) -> str:
        return sealing_folder(RUN, bytes.fromhex(self.synced.sealing))

    def objects(self, name: str) -> dict[str, bytes]:
        store = self.site.stores[name]
        assert isinstance(store, MemoryStore)
        return store.objects

    def fill(self) -> None:
        keys = self.site.sync_keys()
        fill_place(self.synced, RUN, self.site.place("a"), self.site.place("c"), keys.writer, {}, 4)


@pytest.fixture
def filling(tmp_path: Path) -> Filling:
    site = LittleSite({"a": MemoryStore("a"), "c": MemoryStore("c")})
    site.open()
    source = write_checkpoint(tmp_path / "ck", files={"large": os.urandom(17 * MIB), "small": os.urandom(3000)})
    return Filling(site, site.sync(source, places=("a",)))


def test_a_whole_copy_fills_a_place(filling: Filling) -> None:
    filling.fill()
    a, c = filling.objects("a"), filling.objects("c")
    names = {key for key in a if key.startswith(filling.folder) and "receipt-" not in key}
    assert names and all(c[key] == a[key] for key in names)


@pytest.mark.parametrize("name", [SMALL, LARGE])
def test_poison_with_a_forged_checksum_is_not_stored(filling: Filling, name: str) -> None:
    state = filling.site.view().state
    commit = state.commit_of(filling.synced.sealing)
    a = filling.site.stores["a"]
    row = read_sealing(a, RUN, bytes.fromhex(commit.sealing), commit.manifest, state.writer_of(commit)).table.row(name)
    objects = filling.objects("a")
    key = filling.folder + name
    poisoned = with_crc_kept(objects[key], HEADER_BYTES + 100, HEADER_BYTES + 200)
    assert row is not None and poisoned != objects[key]
    assert (len(poisoned), crc64(poisoned)) == (row.length, row.crc64), "size and checksum tell nothing"
    objects[key] = poisoned
    with pytest.raises(CorruptError, match="damaged in the copy that is read") as caught:
        filling.fill()
    assert "seawall heal" in caught.value.do
    assert key not in filling.objects("c"), "what is written once stays"
    assert not any("receipt-" in key for key in filling.objects("c"))


def test_a_document_that_changes_between_two_reads_is_not_stored(filling: Filling, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    honest = MemoryStore.get

    def get(store: MemoryStore, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        raw = honest(store, key, start, length, version)
        if key.endswith("/manifest.json") and store is filling.site.stores["a"]:
            reads.append(key)
            return raw if len(reads) == 1 else raw[:-1] + b" "
        return raw

    monkeypatch.setattr(MemoryStore, "get", get)
    with pytest.raises(CorruptError, match="changed between two reads"):
        filling.fill()
    assert len(reads) == 2 and filling.folder + "manifest.json" not in filling.objects("c")


def test_wrapped_keys_that_nobody_signed_are_left_behind(filling: Filling) -> None:
    filling.objects("a")[filling.folder + "keys-2.json"] = b'{"payloadType":"x"}'
    filling.fill()
    assert filling.folder + "keys-2.json" not in filling.objects("c")
    assert filling.folder + "keys-1.json" in filling.objects("c")
