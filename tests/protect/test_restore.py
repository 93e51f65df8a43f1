"""A restore gives every byte back or nothing at all: into a fresh folder, whatever kills, races or lies on the way."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Verdict
from seawall.errors import BusyError, CorruptError, SeawallError, TrustError, UsageError
from seawall.protect import commit as committing
from seawall.protect import restore as restoring
from seawall.protect.checkpoint_source import read_source
from seawall.protect.restore import restore
from seawall.testing.faulty import FaultyStore
from seawall.testing.memory import MemoryStore
from seawall.vault.header import HEADER_BYTES
from seawall.vault.identity import sealing_folder
from seawall.vault.inventory import Inventory
from seawall.vault.plaintext import find_file, read_range
from seawall.vault.plan import Folder, Link, Pointer
from tests.protect.little_site import RUN, LittleSite, tree, write_checkpoint

MIB = 1 << 20
CHUNK = 8 * MIB


def memory_site() -> LittleSite:
    site = LittleSite({name: MemoryStore(name) for name in "ac"})
    site.open()
    return site


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[LittleSite, Path, str]:
    """A site with one checkpoint, the checkpoint, and its sealing: a file of three records, small ones, an empty one."""
    files = {"large": os.urandom(2 * CHUNK + 100), "small": os.urandom(1000), "empty": b"", "deep/er/x": b"x"}
    source = write_checkpoint(tmp_path_factory.mktemp("large") / "ck", files=files)
    site = memory_site()
    return site, source, site.sync(source).sealing


def damaged(site: LittleSite, name: str, sealing: str, file: str, at: int) -> LittleSite:
    """The site with a bit flipped in one stored object, in a store of its own."""
    store = MemoryStore("damaged")
    whole = site.stores[name]
    assert isinstance(whole, MemoryStore)
    store.objects = dict(whole.objects)
    number = find_file(site.opened(name, sealing)[1], file)
    key = sealing_folder(RUN, bytes.fromhex(sealing)) + f"file-{number}.sea"
    raw = bytearray(store.objects[key])
    raw[at] ^= 1
    store.objects[key] = bytes(raw)
    return replace(site, stores={**site.stores, name: store}, _places={})


class TestTargets:
    """What is in use is left alone."""

    def _refused(self, large: tuple[LittleSite, Path, str], target: Path, match: str) -> None:
        site, _, sealing = large
        above = next(parent for parent in target.parents if parent.is_dir())
        before = tree(above)
        with pytest.raises(UsageError, match=match):
            restore(*site.opened("a", sealing), target)
        assert tree(above) == before

    def test_a_folder_that_is_not_empty(self, large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").write_text("precious")
        self._refused(large, tmp_path / "out", "not empty")

    def test_a_file(self, large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
        (tmp_path / "out").write_text("precious")
        self._refused(large, tmp_path / "out", "no folder")

    @pytest.mark.parametrize("leads_to", ["nowhere", "folder"])
    def test_a_link(self, large: tuple[LittleSite, Path, str], tmp_path: Path, leads_to: str) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "out").symlink_to(leads_to)
        self._refused(large, tmp_path / "out", "no folder")

    def test_no_folder_above(self, large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
        self._refused(large, tmp_path / "missing" / "out", "above the target")

    def test_a_file_above(self, large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
        (tmp_path / "file").write_text("precious")
        self._refused(large, tmp_path / "file" / "out", "above the target")

    def test_an_empty_folder_is_taken(self, large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
        site, source, sealing = large
        (tmp_path / "out").mkdir()
        done = restore(*site.opened("a", sealing), tmp_path / "out")
        assert tree(tmp_path / "out") == tree(source)
        assert (done.step, done.kept, done.files) == (100, 0, 5)
        assert done.plaintext_bytes == sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
        assert os.listdir(tmp_path) == ["out"], "nothing is left beside it"

    def test_a_target_that_fills_meanwhile(self, large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
        site, _, sealing = large
        target = tmp_path / "out"

        def take(key: str) -> None:
            target.mkdir()
            (target / "somebody").write_text("else's")

        sealing_, inventory, data_key = site.opened("a", sealing)
        opened = replace(sealing_, store=FaultyStore(sealing_.store).before("get", take))
        with pytest.raises(UsageError, match="not empty"):
            restore(opened, inventory, data_key, target)
        assert os.listdir(target) == ["somebody"]


class TestStaging:
    """The folder beside the target has a name that can be guessed, and in /tmp anybody may have made it."""

    def _refused(self, large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
        site, _, sealing = large
        with pytest.raises(UsageError, match="somebody else made"):
            restore(*site.opened("a", sealing), tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_a_link(self, large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
        (tmp_path / "theirs").mkdir()
        (tmp_path / f".out.seawall-restore-{large[2][:12]}").symlink_to("theirs")
        self._refused(large, tmp_path)
        assert os.listdir(tmp_path / "theirs") == []

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
    def test_a_folder_of_another_user(self, large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
        staging = tmp_path / f".out.seawall-restore-{large[2][:12]}"
        (staging / "tree").mkdir(parents=True)
        (tmp_path / "theirs").mkdir()
        (staging / "tree" / "deep").symlink_to(tmp_path / "theirs")
        os.chown(staging, 12345, 12345)
        self._refused(large, tmp_path)
        assert os.listdir(tmp_path / "theirs") == []


def test_a_finished_file_that_may_not_be_read_is_built_again(
    large: tuple[LittleSite, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mode such as 0o200 in the checkpoint: whoever goes on with a killed restore cannot tell what is there."""
    site, source, sealing = large
    restore(*site.opened("a", sealing), tmp_path / "out")
    staging = tmp_path / f".again.seawall-restore-{sealing[:12]}"
    staging.mkdir()
    (tmp_path / "out").rename(staging / "tree")

    def forbidden(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(restoring, "_digest", forbidden)
    assert restore(*site.opened("a", sealing), tmp_path / "again").kept == 0
    assert tree(tmp_path / "again") == tree(source)


def test_two_restores_to_one_target(large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
    site, source, sealing = large
    refused: list[BusyError] = []

    def second(key: str) -> None:
        with pytest.raises(BusyError) as caught:
            restore(*site.opened("c", sealing), tmp_path / "out")
        refused.append(caught.value)

    opened, inventory, data_key = site.opened("a", sealing)
    restore(replace(opened, store=FaultyStore(opened.store).before("get", second)), inventory, data_key, tmp_path / "out")
    assert refused and tree(tmp_path / "out") == tree(source)


def test_the_other_restore_ends_between_opening_its_lock_and_taking_it(
    large: tuple[LittleSite, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock file is gone then, and a lock on it keeps nobody out."""
    site, _, sealing = large
    lock = fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        for beside in tmp_path.glob(".out.seawall-restore-*"):
            shutil.rmtree(beside)
        lock(descriptor, operation)

    monkeypatch.setattr(restoring.fcntl, "flock", late)
    with pytest.raises(BusyError):
        restore(*site.opened("a", sealing), tmp_path / "out")
    monkeypatch.undo()
    assert restore(*site.opened("a", sealing), tmp_path / "out").files == 5


def test_kill_and_rerun(tmp_path: Path) -> None:
    files = {"large": os.urandom(17 * MIB), "empty": b""} | {f"f{number}": os.urandom(2000) for number in range(6)}
    source = write_checkpoint(tmp_path / "ck", files=files)
    (source / "link").symlink_to("f1")
    driver = subprocess.run(
        [sys.executable, "-m", "tests.protect.restore_driver", str(tmp_path), "4"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=110,
    )
    assert driver.returncode == 0, driver.stderr[-3000:]
    rows = [json.loads(line) for line in driver.stdout.splitlines()]
    killed = [row for row in rows if row["killed"]]
    assert len(killed) >= 6, rows
    assert {row["at"] for row in killed} == {"read", "write"}
    assert all(row["same"] and not row["beside"] for row in rows), rows
    assert not any(row["appeared"] for row in killed), "a target appears only when it is whole"
    assert any(row["kept"] for row in killed), "no kill left a finished file to keep"


def test_what_a_killed_one_left_is_kept_only_if_it_is_right(large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
    site, source, sealing = large
    stop = FaultyStore(site.stores["a"]).fail("read_into", SeawallError("stop"), times=None)
    opened, inventory, data_key = site.opened("a", sealing)
    with pytest.raises(SeawallError, match="stop"):
        restore(replace(opened, store=stop), inventory, data_key, tmp_path / "out", transfers=1)
    (beside,) = tmp_path.glob(".out.seawall-restore-*")
    finished = [path for path in (beside / "tree").rglob("*") if path.is_file() and ".seawall-part" not in path.name]
    assert (beside / "tree" / "deep" / "er" / "x") in finished
    (beside / "tree" / "deep" / "er" / "x").write_bytes(b"y")
    done = restore(*site.opened("a", sealing), tmp_path / "out")
    assert done.kept == len(finished) - 1
    assert tree(tmp_path / "out") == tree(source)


@pytest.mark.parametrize(
    ("file", "at", "error", "says"),
    [
        ("large", HEADER_BYTES + CHUNK + 17 + 5, CorruptError, "record 1 "),
        ("large", 100, SeawallError, "large"),
        ("small", HEADER_BYTES + 10, CorruptError, "record 0 "),
        ("small", 14, SeawallError, "small"),
        ("small", -1, CorruptError, "small"),
        ("deep/er/x", -40, CorruptError, "deep/er/x"),
    ],
)
def test_damage_is_named_and_nothing_appears(
    large: tuple[LittleSite, Path, str], tmp_path: Path, file: str, at: int, error: type[SeawallError], says: str
) -> None:
    site, source, sealing = large
    bad = damaged(site, "a", sealing, file, at)
    with pytest.raises(error) as caught:
        restore(*bad.opened("a", sealing), tmp_path / "out")
    assert isinstance(caught.value, CorruptError | TrustError)
    assert says in str(caught.value) and caught.value.where.startswith(file)
    assert not (tmp_path / "out").exists()
    # The other copy goes on with what this one gave.
    done = restore(*bad.opened("c", sealing), tmp_path / "out")
    assert tree(tmp_path / "out") == tree(source) and done.kept < 5


BORDERS = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 2 * CHUNK + 99, 2 * CHUNK + 100, 2 * CHUNK + 101, 10 * CHUNK]


@pytest.mark.parametrize("start", BORDERS)
def test_a_range_is_the_slice(large: tuple[LittleSite, Path, str], start: int) -> None:
    site, source, sealing = large
    opened, inventory, data_key = site.opened("a", sealing)
    content = (source / "large").read_bytes()
    number = find_file(inventory, "large")
    for end in BORDERS:
        if end >= start:
            assert b"".join(read_range(opened, inventory, number, data_key, start, end - start)) == content[start:end], (start, end)


def test_a_range_reads_its_records_only(large: tuple[LittleSite, Path, str]) -> None:
    site, source, sealing = large
    bad = damaged(site, "a", sealing, "large", HEADER_BYTES + 5)
    opened, inventory, data_key = bad.opened("a", sealing)
    number = find_file(inventory, "large")
    assert b"".join(read_range(opened, inventory, number, data_key, CHUNK, 9)) == (source / "large").read_bytes()[CHUNK : CHUNK + 9]
    with pytest.raises(CorruptError, match="record 0 "):
        list(read_range(opened, inventory, number, data_key, CHUNK - 1, 2))


def test_room_is_looked_for_first(large: tuple[LittleSite, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, _, sealing = large
    facts = list(os.statvfs(tmp_path))
    facts[4] = 1000  # f_bavail
    monkeypatch.setattr(os, "statvfs", lambda folder: os.statvfs_result(facts))
    with pytest.raises(SeawallError, match="not enough room"):
        restore(*site.opened("a", sealing), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["ds-ok-stage-3", "ds-ok-pipeline", "mg-ok-pipeline", "mg-ok-distributed"])
def test_the_pointer_names_the_restored_step(case_folder: Path, tmp_path: Path, name: str) -> None:
    """DeepSpeed and Megatron find their step by a file in the run folder; two steps are there and the older one is restored."""
    run = tmp_path / "run"
    shutil.copytree(case_folder / name, run)
    source = read_source(str(run))
    pointer = next(path for path in (run / "latest", run / "latest_checkpointed_iteration.txt") if path.exists())
    named = pointer.read_text().strip()
    site = memory_site()
    done = site.sync(source)
    pointer.write_text("global_step999999" if pointer.name == "latest" else "999999")
    restore(*site.opened("a", done.sealing), tmp_path / "out")
    assert (tmp_path / "out" / pointer.name).read_text().strip() == named
    found = inspect(tmp_path / "out")
    assert found.verdict <= Verdict.WARN, found.reasons
    assert found.step == source.inspection.step and found.layout == source.inspection.layout
    assert [tensor.name for tensor in found.tensors] == [tensor.name for tensor in source.inspection.tensors]


HOSTILE: dict[str, Callable[[Inventory], Inventory]] = {
    "absolute name": lambda made: replace(made, files=(replace(made.files[0], name="/etc/seawall-was-here"), *made.files[1:])),
    "name that climbs": lambda made: replace(made, files=(replace(made.files[0], name="../climbed"), *made.files[1:])),
    "name that climbs inside": lambda made: replace(made, files=(replace(made.files[0], name="a/../../climbed"), *made.files[1:])),
    "one name twice": lambda made: replace(made, files=(replace(made.files[0], name=made.files[1].name), *made.files[1:])),
    "folder that climbs": lambda made: replace(made, folders=(Folder("../climbed", 0o700),)),
    "link that is absolute": lambda made: replace(made, links=(Link("link", "/etc"),)),
    "link that climbs": lambda made: replace(made, links=(Link("link", "../../climbed"),)),
    "link that climbs from below": lambda made: replace(made, links=(Link("a/link", "../../climbed"),)),
    "link above a file": lambda made: replace(
        made, links=(Link("d", "."),), files=(replace(made.files[0], name="d/passwd"), *made.files[1:])
    ),
    "pointer that climbs": lambda made: replace(made, pointer=Pointer("../climbed", "x")),
    "pointer through a link": lambda made: replace(made, links=(Link("latest", "/etc/hostname"),), pointer=Pointer("latest", "x")),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_inventory_writes_nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """It is signed by the site's own writer: a stolen key must not become a way into the host that restores."""
    right = committing._inventory
    monkeypatch.setattr(committing, "_inventory", lambda *arguments: HOSTILE[how](right(*arguments)))
    site = memory_site()
    done = site.sync(write_checkpoint(tmp_path / "ck", files={"a/weights": b"w", "b": b"b"}))
    room = tmp_path / "room"
    room.mkdir()
    with pytest.raises(CorruptError):
        restore(*site.opened("a", done.sealing), room / "out")
    assert not Path("/etc/seawall-was-here").exists()
    assert not [name for name in (*os.listdir(room), *os.listdir(tmp_path)) if "climbed" in name]
    assert not (room / "out").exists()


def test_no_bit_that_gives_rights_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = committing._inventory

    def inventory(*arguments: Any) -> Inventory:
        made = right(*arguments)
        return replace(made, files=tuple(replace(file, mode=0o7755) for file in made.files), folders=(Folder("f", 0o7750),))

    monkeypatch.setattr(committing, "_inventory", inventory)
    site = memory_site()
    done = site.sync(write_checkpoint(tmp_path / "ck"))
    restore(*site.opened("a", done.sealing), tmp_path / "out")
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "out").iterdir()}
    assert modes == {"_COMMITTED": 0o755, "empty": 0o755, "weights.raw": 0o755, "f": 0o750}


def test_times_come_back(large: tuple[LittleSite, Path, str], tmp_path: Path) -> None:
    site, source, sealing = large
    restore(*site.opened("a", sealing), tmp_path / "out")
    assert (tmp_path / "out" / "large").stat().st_mtime_ns == (source / "large").stat().st_mtime_ns
