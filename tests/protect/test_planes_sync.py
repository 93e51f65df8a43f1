"""Byte planes from the inspection to the restore: copies shrink, every byte comes back, and heal and L2 see stored bytes only."""

import json
import os
from pathlib import Path

import numpy
import pytest

from seawall.errors import CorruptError
from seawall.protect.checkpoint_source import read_source
from seawall.protect.heal import heal
from seawall.protect.restore import restore
from seawall.testing.counting import CountingStore
from seawall.vault.casts import cast
from seawall.vault.codecs import Codec
from seawall.vault.header import DERIVED_FLAG
from seawall.vault.open import Opener
from seawall.vault.plaintext import open_file, read_range
from seawall.vault.plane_header import Kind
from seawall.vault.rebuild import rebuild_files
from seawall.verify.check import NOT_ATTAINABLE, OK, Unlocked, check_copy
from seawall.verify.levels import Level
from tests.checkpoint.conftest import case_folder as case_folder
from tests.protect.little_site import RUN, LittleSite, file_site, tree
from tests.verify.test_content import GOOD, case_source

MIB = 1 << 20
NAME = "model.safetensors"
ELEMENTS = 5 * MIB // 2
"""A master of 10 MiB, as much of a moment, and 5 MiB of weights: four records, and a derived run across the border of two."""


def write_model(folder: Path) -> Path:
    """Numbers as training leaves them, in one safetensors file, and a commit mark."""
    folder.mkdir()
    random = numpy.random.default_rng(5)
    master = random.normal(0, 0.02, ELEMENTS).astype("<f4").tobytes()
    moment = random.normal(0, 1e-5, ELEMENTS).astype("<f4").tobytes()
    tensors = {"master": ("F32", master), "moment": ("F32", moment), "weights": ("BF16", cast(master, Kind.BFLOAT16))}
    header, at = {}, 0
    for name, (dtype, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": [ELEMENTS], "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    described = json.dumps(header).encode()
    content = len(described).to_bytes(8, "little") + described + b"".join(raw for _, raw in tensors.values())
    (folder / NAME).write_bytes(content)
    (folder / "_COMMITTED").write_text('{"step": 5}')
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "step_5")


def number_of(site: LittleSite, sealing: str) -> int:
    _, inventory, _ = site.opened("a", sealing)
    return [file.name for file in inventory.files].index(NAME)


def reached(site: LittleSite, store: str, sealing: str, up_to: Level) -> Level:
    state = site.view().state
    commit = state.commit_of(sealing)

    def open_up(_: object) -> Unlocked:
        _, inventory, data_key = site.opened(store, sealing)
        return Unlocked(data_key, inventory)

    findings = check_copy(
        site.stores[store], RUN, bytes.fromhex(sealing), commit.manifest, state.writer_of(commit), state.resolver("operator"), up_to,
        unlock=open_up, transfers=2,
    )  # fmt: skip
    assert all(finding.result in (OK, NOT_ATTAINABLE) for finding in findings) and findings[-1].result == OK, findings
    return findings[-1].level


@pytest.mark.parametrize(("codec", "most"), [(Codec.FAST, 0.87), (Codec.BALANCED, 0.73), (Codec.SMALL, 0.73)])
def test_a_copy_shrinks_and_comes_back(model: Path, tmp_path: Path, codec: Codec, most: float) -> None:
    site = file_site(tmp_path / "site")
    done = site.sync(model, codec=codec)
    opened, inventory, data_key = site.opened("a", done.sealing)
    number = number_of(site, done.sealing)
    row, opener, _ = open_file(opened, inventory, number, data_key)
    assert row.length < most * inventory.files[number].size
    assert bool(opener.frame.header.flags & DERIVED_FLAG) == codec.derives
    assert reached(site, "c", done.sealing, Level.L4) == Level.L4
    restore(opened, inventory, data_key, tmp_path / "out", transfers=2)
    assert tree(tmp_path / "out") == tree(model)
    content = (model / NAME).read_bytes()
    for start in (0, 8 * MIB - 5, 20 * MIB + 999, 24 * MIB - 3, len(content) - 7):
        assert b"".join(read_range(opened, inventory, number, data_key, start, 3000)) == content[start : start + 3000]
    again = site.sync(model, codec=codec)
    assert (again.sealing, again.status) == (done.sealing, "unchanged")


@pytest.mark.parametrize("name", GOOD)
def test_every_layout_comes_back(case_folder: Path, tmp_path: Path, name: str) -> None:
    source = case_source(case_folder, name)
    site = file_site(tmp_path / "site")
    done = site.sync(source, places=("a",), codec=Codec.BALANCED)
    restore(*site.opened("a", done.sealing), tmp_path / "out", transfers=2)
    found, wanted = tree(tmp_path / "out"), tree(Path(source.root))
    names = {os.fsencode(file.name) for file in source.files}
    assert {name: found[name] for name in names} == {name: wanted[name] for name in names}


def bytes_of_rebuilding(site: LittleSite, sealing: str, folder: Path | None) -> int:
    opened, inventory, data_key = site.opened("a", sealing)
    counting = CountingStore(opened.store)
    object.__setattr__(opened, "store", counting)
    rebuild_files(opened, inventory, range(len(inventory.files)), data_key, folder, transfers=2)
    return counting.bytes_down


def test_a_restore_reads_no_record_twice_for_what_is_derived(model: Path, tmp_path: Path) -> None:
    site = file_site(tmp_path / "site")
    done = site.sync(model, codec=Codec.BALANCED)
    stored = sum(path.stat().st_size for path in (tmp_path / "site").rglob("a/runs/*/sealings/*/file-*.sea"))
    restored = bytes_of_rebuilding(site, done.sealing, tmp_path / "out")
    assert restored < stored + (200 << 10), "each record once, and the ends of objects"
    without = bytes_of_rebuilding(site, done.sealing, None)
    assert restored < without < restored + 4 * 8 * MIB, "who keeps nothing reads the records of the master again"


@pytest.mark.parametrize("codec", [Codec.FAST, Codec.BALANCED])
def test_a_killed_sync_goes_on_and_adopts_what_is_there(model: Path, tmp_path: Path, codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    site = file_site(tmp_path / "site")

    class KilledError(Exception):
        pass

    def killed(*args: object, **more: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr("seawall.protect.sync.commit", killed)
        site.sync(model, codec=codec)
    done = site.sync(model, codec=Codec.NONE)
    opened, inventory, data_key = site.opened("a", done.sealing)
    row, _, _ = open_file(opened, inventory, number_of(site, done.sealing), data_key)
    assert row.length < 0.9 * (model / NAME).stat().st_size, "the plan that was there says which codec"
    restore(opened, inventory, data_key, tmp_path / "out", transfers=2)
    assert tree(tmp_path / "out") == tree(model)


def test_heal_sees_stored_records_only(model: Path, tmp_path: Path) -> None:
    """The record of a master is damaged, so what is derived from it cannot be opened either; one record is fetched."""
    site = file_site(tmp_path / "site")
    done = site.sync(model, codec=Codec.BALANCED)
    (path,) = (tmp_path / "site").rglob(f"a/runs/*/sealings/*/file-{number_of(site, done.sealing)}.sea")
    raw = bytearray(path.read_bytes())
    raw[1000] ^= 1
    path.write_bytes(raw)
    opened, inventory, data_key = site.opened("a", done.sealing)
    number = number_of(site, done.sealing)
    with pytest.raises(CorruptError, match="record 0"):
        list(read_range(opened, inventory, number, data_key, 20 * MIB + 1000, 10))
    assert b"".join(read_range(opened, inventory, number, data_key, 11 * MIB, 10)) == (model / NAME).read_bytes()[11 * MIB :][:10]
    view = site.view()
    commit = view.state.commit_of(done.sealing)
    healed = heal(
        view, commit, site.place("a"), [site.place("c")], coordination=site.stores["c"], writer=site.keys["writer"], clock=site.clock
    )
    (repair,) = healed.repairs
    assert repair.records == (0,)
    assert reached(site, "a", done.sealing, Level.L3) == Level.L3


def test_a_source_whose_sums_lie_is_sealed_without_what_cannot_be_proved(model: Path, tmp_path: Path) -> None:
    """One weight is another: its record is stored, the other record's half is derived."""
    changed = tmp_path / "changed"
    changed.mkdir()
    content = bytearray((model / NAME).read_bytes())
    content[-5] ^= 0x40
    (changed / NAME).write_bytes(content)
    (changed / "_COMMITTED").write_text('{"step": 5}')
    site = file_site(tmp_path / "site")
    done = site.sync(changed, codec=Codec.BALANCED)
    opened, inventory, data_key = site.opened("a", done.sealing)
    restore(opened, inventory, data_key, tmp_path / "out", transfers=2)
    assert (tmp_path / "out" / NAME).read_bytes() == content


def test_an_opaque_file_of_anything_is_sealed_too(tmp_path: Path) -> None:
    source = tmp_path / "opaque"
    source.mkdir()
    (source / "noise").write_bytes(os.urandom(9 * MIB))
    (source / "text").write_bytes(b"step 1 loss 2.5\n" * 100_000)
    (source / "empty").write_bytes(b"")
    (source / "_COMMITTED").write_text('{"step": 5}')
    assert not read_source(str(source)).tensors()
    site = file_site(tmp_path / "site")
    done = site.sync(source, codec=Codec.FAST)
    opened, inventory, data_key = site.opened("a", done.sealing)
    sizes = {}
    for number, file in enumerate(inventory.files):
        row, opener, _ = open_file(opened, inventory, number, data_key)
        assert isinstance(opener, Opener)
        sizes[file.name] = row.length
    assert sizes["text"] < 20_000 and sizes["noise"] < 9 * MIB + 1000
    restore(opened, inventory, data_key, tmp_path / "out", transfers=2)
    assert tree(tmp_path / "out") == tree(source)
