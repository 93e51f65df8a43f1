"""The file store beyond its conformance: mounts, links, full disks, names that only look like keys."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreRefusedError, UsageError
from seawall.kernels.crc64 import crc64
from seawall.stores import file_temporary
from seawall.stores.file import FileStore
from seawall.stores.file_temporary import is_below, key_of_temporary, temporary_name
from seawall.stores.locate import open_store
from seawall.testing.check_store import check_store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path) -> FileStore:
    return FileStore(root.as_uri(), create=True)


def _everything(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def test_it_conforms(root: Path) -> None:
    FileStore(root.as_uri(), create=True)
    report = check_store(lambda: open_store(root.as_uri()))
    assert report.ok, report.failed
    assert report.outcome("concurrent_create") == "passed"
    assert _everything(root) == []


def test_a_folder_that_is_not_mounted_is_refused_and_not_filled(tmp_path: Path) -> None:
    missing = FileStore((tmp_path / "mnt" / "disk").as_uri())
    with pytest.raises(StoreRefusedError, match="not there"):
        missing.put("a", b"x")
    with pytest.raises(StoreRefusedError, match="not there"):
        list(missing.list(""))
    with pytest.raises(StoreRefusedError, match="not there"):
        missing.head("a")
    # An empty mount point is there, and is still no store.
    (tmp_path / "mnt" / "disk").mkdir(parents=True)
    with pytest.raises(StoreRefusedError, match="perhaps the disk is not mounted"):
        missing.put("a", b"x")
    assert list((tmp_path / "mnt" / "disk").iterdir()) == []


@pytest.mark.parametrize("url", ["file://host/a", "file:a", "s3://b", "file:///a?b", "file:///a#b"])
def test_urls_that_name_no_folder(url: str) -> None:
    with pytest.raises(UsageError):
        FileStore(url)


def test_a_link_below_the_root_is_never_followed(store: FileStore, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "folder").symlink_to(outside)
    (root / "object").symlink_to(outside / "secret")
    for key in ("folder/secret", "object"):
        with pytest.raises(StoreRefusedError):
            store.get(key)
        with pytest.raises(StoreRefusedError):
            store.read_into(key, 0, memoryview(bytearray(6)))
        with pytest.raises(StoreRefusedError):
            store.replace(key, b"x", "1-1")
        with pytest.raises(StoreRefusedError):
            store.delete(key)
    with pytest.raises(StoreRefusedError):
        store.head("folder/secret")
    with pytest.raises(StoreRefusedError):
        store.put("folder/new", b"x")
    with pytest.raises(ObjectExistsError):
        store.put("object", b"x")
    assert list(store.list("")) == [] and list(store.list_folders("")) == []
    assert (outside / "secret").read_bytes() == b"secret" and len(list(outside.iterdir())) == 1


def test_a_pipe_in_the_store_does_not_hang_a_reader(store: FileStore, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(StoreRefusedError, match="no stored object"):
        store.get("pipe")
    assert list(store.list("")) == []


def test_the_root_may_be_reached_over_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    FileStore((tmp_path / "link").as_uri(), create=True).put("a", b"x")
    assert (tmp_path / "real" / "a").read_bytes() == b"x"


def test_an_object_and_a_folder_cannot_have_one_name(store: FileStore, root: Path) -> None:
    store.put("a", b"x")
    with pytest.raises(StoreRefusedError, match="plain file"):
        store.put("a/b", b"x")
    store.put("c/d", b"x")
    with pytest.raises((StoreRefusedError, ObjectExistsError)):
        store.put("c", b"x")
    with pytest.raises(NoSuchObjectError):
        store.get("c")
    assert _everything(root) == ["a", "c/d"]


def test_the_temporary_folder_is_no_place_for_keys(store: FileStore) -> None:
    for key in (".seawall-tmp", ".seawall-tmp/x"):
        with pytest.raises(UsageError):
            store.put(key, b"x")
        with pytest.raises(UsageError):
            store.get(key)


def test_a_wrong_checksum_is_refused_although_the_store_keeps_none(store: FileStore, root: Path) -> None:
    with pytest.raises(StoreRefusedError, match="checksum"):
        store.put("a", b"x", crc64(b"y"))
    upload = store.begin("b")
    with pytest.raises(StoreRefusedError, match="checksum"):
        upload.part(1, 0, b"x", crc64(b"y"))
    upload.abort()
    assert _everything(root) == []


def test_a_damaged_object_is_still_read_by_its_old_version(store: FileStore, root: Path) -> None:
    stored = store.put("a", b"healthy")
    os.utime(root / "a", ns=(1, 1))
    (root / "a").write_bytes(b"damaged")
    assert store.get("a", version=stored.version) == b"damaged"
    damaged = store.head("a").version
    assert damaged != stored.version
    with pytest.raises(StoreRefusedError, match="another object"):
        store.replace("a", b"healthy", stored.version)
    assert store.replace("a", b"healthy", damaged).version == store.head("a").version
    assert store.get("a") == b"healthy"


def test_a_lost_object_can_be_put_again_by_repair(store: FileStore) -> None:
    store.replace("a", b"x", None)
    assert store.get("a") == b"x"
    with pytest.raises(StoreRefusedError, match="no version of it was named"):
        store.replace("a", b"y", None)


def test_deleting_removes_empty_folders_and_only_those(store: FileStore, root: Path) -> None:
    store.put("a/b/c/one", b"")
    store.put("a/two", b"")
    store.delete("a/b/c/one")
    assert sorted(path.name for path in (root / "a").iterdir()) == ["two"]
    store.delete("a/two")
    assert not (root / "a").exists() and root.exists()


def test_many_buffers_are_written_in_one_object(store: FileStore) -> None:
    pieces = [bytes([number % 251]) * (number % 7) for number in range(5000)]
    store.put("a", pieces, crc64(b"".join(pieces)))
    assert store.get("a") == b"".join(pieces)


def test_without_hard_links_a_rename_that_does_not_replace_is_used(store: FileStore, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(file_temporary.os, "link", no_links)
    store.put("a/b", b"first")
    with pytest.raises(ObjectExistsError):
        store.put("a/b", b"second")
    assert store.get("a/b") == b"first" and _everything(root) == ["a/b"]


def test_a_link_whose_answer_nfs_lost_is_recognised_as_ours(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link_twice(*arguments: object, **options: object) -> None:
        real(*arguments, **options)  # type: ignore[arg-type]  # the arguments of os.link as they came
        real(*arguments, **options)  # type: ignore[arg-type]  # the client repeats the request

    monkeypatch.setattr(file_temporary.os, "link", link_twice)
    assert store.put("a", b"x").size == 1


@pytest.mark.parametrize("upload", [False, True])
def test_a_full_disk_leaves_nothing(store: FileStore, root: Path, upload: bool) -> None:
    store.put("before", b"x" * 1000)
    # RLIMIT_FSIZE cuts a write short with EFBIG as a full disk does with ENOSPC; Python ignores SIGXFSZ.
    code = f"""
import resource
from seawall.errors import StoreRefusedError
from seawall.stores.file import FileStore
from seawall.kernels.crc64 import crc64
store = FileStore({root.as_uri()!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
data = bytes(150_000)
try:
    if {upload}:
        part = store.begin("big/one")
        try:
            part.part(1, 0, data, crc64(data))
        finally:
            part.abort()
    else:
        store.put("big/one", [data[:70_000], data[70_000:]])
except StoreRefusedError as error:
    print(error)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "limit is reached" in answer.stdout, answer
    assert _everything(root) == ["before"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_disk_that_is_really_full_leaves_nothing(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root; RLIMIT_FSIZE stands in for it above")
    mount = tmp_path / "small"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], capture_output=True, check=False).returncode:
        pytest.skip("this container may not mount a tmpfs; RLIMIT_FSIZE stands in for it above")
    try:
        store = FileStore(mount.as_uri(), create=True)
        with pytest.raises(StoreRefusedError, match="no room left"):
            store.put("big", bytes(2 << 20))
        assert list(store.leftovers()) == [] and _everything(mount) == []
        store.put("small", bytes(1000))
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_leftovers_tell_key_and_time_and_only_ours_are_touched(store: FileStore, root: Path) -> None:
    upload = store.begin("runs/a b/file-1.sea")
    (root / ".seawall-tmp" / "somebody else's").write_bytes(b"")
    (found,) = store.leftovers("runs/a ")
    assert found.key == "runs/a b/file-1.sea"
    assert abs((found.began - store.server_time()).total_seconds()) < 60  # type: ignore[operator]  # a writable store has a time
    store.abort_leftover(found)
    assert list(store.leftovers()) == []
    with pytest.raises(UsageError):
        store.abort_leftover(type(found)("x", "../before", found.began))
    upload.abort()
    assert [path.name for path in (root / ".seawall-tmp").iterdir()] == ["somebody else's"]


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=300))
@settings(max_examples=200, deadline=None)
def test_a_temporary_name_fits_and_tells_the_key(key: str) -> None:
    name = temporary_name(key)
    assert len(os.fsencode(name)) <= 255 and "/" not in name
    told = key_of_temporary(name)
    assert told is not None
    assert told == key or (told.endswith("…") and key.startswith(told[:-1]))
    assert is_below(told, key[: len(key) // 2])


_PARTS = st.sampled_from(["a", "a.b", "a-b", "a b", "ab", "a0", "a!", "é", "z"])


@given(st.sets(st.lists(_PARTS, min_size=1, max_size=4).map("/".join), max_size=25), st.data())
@settings(max_examples=60, deadline=None)
def test_lists_are_in_the_order_of_bytes(tmp_path_factory: pytest.TempPathFactory, keys: set[str], data: st.DataObject) -> None:
    files = {key for key in keys if not any(other.startswith(key + "/") for other in keys)}
    store = FileStore(tmp_path_factory.mktemp("order").as_uri(), create=True)
    for key in files:
        store.put(key, b"")
    wanted = sorted(files, key=str.encode)
    prefix = data.draw(st.sampled_from(["", "a", "a/", "a.b/a", *wanted]))
    after = data.draw(st.sampled_from(["", "a", "a/", "a-", "a.b", "zz", *wanted]))
    assert [found.key for found in store.list(prefix, after)] == [key for key in wanted if key.startswith(prefix) and key > after]
    folders = sorted({key.split("/")[0] for key in wanted if "/" in key}, key=lambda name: name.encode() + b"/")
    assert list(store.list_folders("")) == folders


def test_an_upload_that_was_swept_as_a_leftover_ends_with_an_error(store: FileStore, root: Path) -> None:
    upload = store.begin("a/b")
    upload.part(1, 0, b"x", crc64(b"x"))
    for leftover in store.leftovers():
        store.abort_leftover(leftover)
    with pytest.raises(StoreRefusedError, match="removed while it was going on"):
        upload.finish(crc64(b"x"), 1)
    assert _everything(root) == []
