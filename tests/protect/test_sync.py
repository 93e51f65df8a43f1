"""A checkpoint goes out and comes back: byte for byte, whatever its files are called, once, and with few requests."""

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from seawall.errors import (
    CorruptError,
    EpochClosedError,
    FreshnessError,
    HostileError,
    IncompleteError,
    SourceChangedError,
    TrustError,
    UsageError,
)
from seawall.log.verbs import new_epoch
from seawall.protect.checkpoint_source import read_source
from seawall.protect.restore import restore
from seawall.stores.file import FileStore
from seawall.testing.counting import CountingStore
from seawall.testing.faulty import FaultyStore
from seawall.vault.codecs import Codec
from tests.protect.little_site import LittleSite, file_site, tree, write_checkpoint

MIB = 1 << 20


def _restored(site: LittleSite, store: str, sealing: str, target: Path) -> dict[bytes, tuple[str, int, bytes]]:
    restore(*site.opened(store, sealing), target)
    return tree(target)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_odd_names_sizes_and_modes_come_back(tmp_path: Path, codec: Codec) -> None:
    files = {
        "plain": os.urandom(5000),
        "empty": b"",
        "zeros": bytes(3 * MIB),
        "deep/er/with space": b"x",
        "é層/重み\n": os.urandom(10),
        os.fsdecode(b"undecodable-\xff\xfe"): b"y" * 77,
        "exactly-one-record": os.urandom(8 * MIB),
        "one-record-and-a-byte": os.urandom(8 * MIB + 1),
        "several-parts": os.urandom(20 * MIB),
    }
    source = write_checkpoint(tmp_path / "ck", files=files)
    (source / "plain").chmod(0o640)
    (source / "deep" / "nothing-here").mkdir(mode=0o750)
    (source / "link").symlink_to("deep/er/with space")
    with (source / "sparse").open("wb") as sparse:
        sparse.seek(4 * MIB)
        sparse.write(b"end")
    site = file_site(tmp_path)
    done = site.sync(source, codec=codec)
    assert (done.status, done.copies, done.missing) == ("committed", ["a", "c"], {})
    for store in ("a", "c"):
        assert _restored(site, store, done.sealing, tmp_path / f"from-{store}") == tree(source)


def test_batches_cover_every_file_once(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck", files={f"f{n:03d}": bytes([n]) * (n * 100_000) for n in range(60)})
    site = file_site(tmp_path)
    done = site.sync(source, batch_bytes=1 * MIB)
    assert _restored(site, "c", done.sealing, tmp_path / "out") == tree(source)


def test_a_rerun_is_unchanged_and_costs_ten_requests(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck", files={f"f{n}": os.urandom(100) for n in range(300)})
    site = file_site(tmp_path)
    site.state = tmp_path / "state"
    first = site.sync(source)
    counted = {name: CountingStore(store) for name, store in site.stores.items()}
    site.stores = dict(counted)
    again = site.sync(source)
    assert (again.status, again.sealing) == ("unchanged", first.sealing)
    assert sum(store.total for store in counted.values()) <= 10, {name: dict(store.calls) for name, store in counted.items()}


def test_ten_thousand_small_files_cost_little_more_than_a_request_each(tmp_path: Path) -> None:
    content = os.urandom(64 << 10)
    folder = tmp_path / "ck"
    folder.mkdir()
    for number in range(10_000):
        # Hard links: ten thousand files to read, one to write.
        os.link(_first(folder, content), folder / f"f{number:05d}")
    (folder / "_COMMITTED").write_text('{"step": 1}')
    site = file_site(tmp_path)
    counted = {name: CountingStore(store) for name, store in site.stores.items()}
    site.stores = dict(counted)
    done = site.sync(folder, places=("a",), transfers=16)
    assert done.files == 10_002
    assert counted["a"].total <= 1.2 * done.files + 200, dict(counted["a"].calls)
    assert counted["c"].total <= 200, dict(counted["c"].calls)


def _first(folder: Path, content: bytes) -> Path:
    first = folder / "first"
    if not first.exists():
        first.write_bytes(content)
    return first


def test_a_changed_checkpoint_is_a_new_sealing(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck")
    site = file_site(tmp_path)
    first = site.sync(source)
    (source / "weights.raw").write_bytes(os.urandom(3000))
    second = site.sync(source)
    assert second.status == "committed" and second.sealing != first.sealing
    assert site.sync(source).status == "unchanged"


@pytest.mark.parametrize("seconds", [-(1 << 30), 10_000_000_000, 1 << 40], ids=["before-1970", "after-2262", "after-9999"])
def test_what_a_clock_that_jumped_has_saved_comes_back(tmp_path: Path, seconds: int) -> None:
    """A time after 2262 is more nanoseconds than an inventory holds: it was committed once, and no reader opened it."""
    source = write_checkpoint(tmp_path / "ck")
    for path in source.iterdir():
        if path.is_file():
            os.utime(path, (seconds, seconds))
    site = file_site(tmp_path)
    done = site.sync(source)
    assert _restored(site, "a", done.sealing, tmp_path / "out") == tree(source)
    assert site.sync(source).status == "unchanged"


def test_what_no_reader_would_take_is_not_committed(tmp_path: Path) -> None:
    """Whatever else a plan may come to hold: it is read back before it is written, and nothing is there afterwards."""
    source = read_source(str(write_checkpoint(tmp_path / "ck")))
    odd = replace(source, files=tuple(replace(file, identity="yesterday") for file in source.files))
    site = file_site(tmp_path)
    with pytest.raises(CorruptError, match="identity"):
        site.sync(odd)
    assert not [found.key for found in site.stores["a"].list("runs/") if found.key.endswith(".sea")]
    assert site.sync(source).status == "committed"


def test_a_restored_copy_of_it_is_the_same_checkpoint(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck")
    site = file_site(tmp_path)
    done = site.sync(source)
    restore(*site.opened("a", done.sealing), tmp_path / "elsewhere")
    os.utime(tmp_path / "elsewhere" / "weights.raw", (1, 1))
    assert site.sync(tmp_path / "elsewhere").status == "unchanged"


def test_an_earlier_epochs_checkpoint_is_not_sealed_again(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck")
    site = file_site(tmp_path)
    done = site.sync(source)
    _next_epoch(site)
    again = site.sync(source)
    assert (again.status, again.sealing) == ("unchanged", done.sealing)


def _next_epoch(site: LittleSite) -> None:
    writers = [site.keys["writer"].key_id]
    new_epoch(site.stores["c"], site.view(), writers, "failover", site.keys["coordinator"], os.urandom(16).hex(), site.clock)


def test_a_mark_of_a_closed_epoch_is_refused(tmp_path: Path) -> None:
    zombie = write_checkpoint(tmp_path / "zombie", step=7, epoch=1)
    site = file_site(tmp_path)
    _next_epoch(site)
    with pytest.raises(EpochClosedError, match="closed epoch"):
        site.sync(zombie)
    assert not site.view().state.commits


def test_a_mark_from_the_future_is_an_incident(tmp_path: Path) -> None:
    with pytest.raises(FreshnessError):
        file_site(tmp_path).sync(write_checkpoint(tmp_path / "ck", epoch=5))


def test_what_is_excluded_stays_here(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck", files={"w": b"1", "train.log": b"2", "sub/x.tmp": b"3"})
    site = file_site(tmp_path)
    done = site.sync(read_source(str(source), exclude=("*.log", "*.tmp")))
    assert set(_restored(site, "a", done.sealing, tmp_path / "out")) == {b"w", b"_COMMITTED"}


def test_an_exclude_pattern_may_not_hide_a_needed_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hides a file"):
        read_source(str(write_checkpoint(tmp_path / "ck")), exclude=("_COMMIT*",))


def test_a_link_out_is_hostile(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck")
    (source / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(HostileError):
        read_source(str(source))


def test_an_unfinished_checkpoint_waits(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "step_10")
    (source / "_COMMITTED").unlink()
    (source / "__0_0.distcp").write_bytes(b"1")
    with pytest.raises(IncompleteError):
        read_source(str(source))


def test_hostile_ones_are_sealed_only_as_opaque_and_quarantined(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck")
    (source / "model.pt").write_bytes(b"\x80\x02cos\nsystem\nX\x01\x00\x00\x00a\x85R.")
    with pytest.raises((HostileError, CorruptError)):
        read_source(str(source))
    site = file_site(tmp_path)
    done = site.sync(read_source(str(source), as_opaque=True))
    assert done.quarantine
    assert site.view().state.quarantine_reasons(done.sealing)


def test_a_file_that_grows_is_not_committed(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck", files={"w": os.urandom(9 * MIB)})
    site = file_site(tmp_path)
    listed = read_source(str(source))
    with (source / "w").open("ab") as file:
        file.write(b"more")
    with pytest.raises(SourceChangedError):
        site.sync(listed)
    assert not site.view().state.commits
    assert not list(site.stores["a"].leftovers())


def test_a_file_that_changes_while_it_is_read_leaves_no_upload(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck", files={"w": os.urandom(20 * MIB)})
    site = file_site(tmp_path)
    faulty = FaultyStore(site.stores["a"])
    faulty.before("part", lambda key: os.utime(source / "w", (1, 1)))
    site.stores["a"] = faulty
    with pytest.raises(SourceChangedError):
        site.sync(source)
    assert faulty.unused == 0
    assert not list(faulty.leftovers())


def test_a_place_that_is_down_is_filled_by_the_next_sync(tmp_path: Path) -> None:
    from seawall.errors import StoreUnavailableError

    source = write_checkpoint(tmp_path / "ck", files={"w": os.urandom(9 * MIB), "v": b"1"})
    site = file_site(tmp_path, names=("a", "b", "c"))
    whole = site.stores["b"]
    down = FaultyStore(whole)
    for method in ("put", "begin", "head", "get"):
        down.fail(method, StoreUnavailableError("no answer"), times=None)
    site_b = site.place("b")
    site.stores["b"] = down
    places = [site.place("a"), type(site_b)("b", site_b.id, down)]
    from seawall.protect.sync import sync

    done = sync(
        read_source(str(source)),
        "gpt",
        site.view(),
        places=places,
        coordination=site.stores["c"],
        keys=site.sync_keys(),
        clock=site.clock,
        transfers=4,
    )
    assert done.status == "committed" and done.copies == ["a"] and "no answer" in done.missing["b"]
    site.stores["b"] = whole
    again = site.sync(source, places=("a", "b"))
    assert again.status == "unchanged" and again.copies == ["a", "b"] and not again.missing
    assert _restored(site, "b", done.sealing, tmp_path / "out") == tree(source)


def test_two_syncs_at_once_make_one_sealing(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    files = {f"f{n}": os.urandom(random.Random(n).randrange(200_000)) for n in range(40)} | {"large": os.urandom(20 * MIB)}
    source = write_checkpoint(tmp_path / "ck", files=files)
    site = file_site(tmp_path)
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: site.sync(source), range(3)))
    assert len({each.sealing for each in done}) == 1
    assert len(site.view().state.commits) == 1
    for store in ("a", "c"):
        assert _restored(site, store, done[0].sealing, tmp_path / f"out-{store}") == tree(source)


def test_the_log_is_mirrored_to_every_place(tmp_path: Path) -> None:
    site = file_site(tmp_path)
    site.sync(write_checkpoint(tmp_path / "ck"))
    entries = {name: [found.key for found in store.list("runs/gpt/log/")] for name, store in site.stores.items()}
    assert entries["a"] == entries["c"] and len(entries["a"]) == 3


def test_a_store_of_another_root_keeps_its_things_apart(tmp_path: Path) -> None:
    """Two sites over one bucket folder do not see each other's sealings as theirs."""
    source = write_checkpoint(tmp_path / "ck")
    site = file_site(tmp_path)
    done = site.sync(source)
    stranger = LittleSite({"c": FileStore(f"file://{tmp_path}/c")})
    with pytest.raises(TrustError):
        stranger.view()
    assert site.view().state.commit_of(done.sealing)
