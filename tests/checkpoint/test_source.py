"""What sync lists, what it leaves out, and how it tells one save from another."""

import os
from pathlib import Path

import pytest

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.source import (
    commit_mark_digest,
    excluded,
    find_checkpoints,
    is_temporary,
    list_source,
    look_again,
    pointer_for,
    same,
)
from seawall.errors import HostileError, IncompleteError, NoSuchCopyError
from tests.cases.make_cases import put, put_dcp, put_deepspeed, put_json, put_ranks, weights


def test_files_links_and_empty_folders_are_listed_in_order(tmp_path: Path) -> None:
    put(tmp_path / "c" / "b.bin", b"12345")
    put(tmp_path / "c" / "a" / "x", b"")
    (tmp_path / "c" / "empty" / "deeper").mkdir(parents=True)
    (tmp_path / "c" / "link").symlink_to("a/x")
    (tmp_path / "c" / "b.bin").chmod(0o640)
    found = {entry.path: entry for entry in list_source(tmp_path / "c")}
    assert list(found) == ["a/x", "b.bin", "empty/deeper", "link"]
    assert [entry.kind for entry in found.values()] == ["file", "file", "folder", "link"]
    status = (tmp_path / "c" / "b.bin").stat()
    entry = found["b.bin"]
    assert (entry.size, entry.mtime_ns, entry.inode, entry.device, entry.mode) == (
        5,
        status.st_mtime_ns,
        status.st_ino,
        status.st_dev,
        0o640,
    )
    assert found["link"].target == "a/x"


def test_a_file_alone(tmp_path: Path) -> None:
    put(tmp_path / "m.pt", b"abc")
    put(tmp_path / "other", b"abc")
    assert [entry.path for entry in list_source(tmp_path / "m.pt")] == ["m.pt"]


def test_names_that_are_not_utf8_come_back_whole(tmp_path: Path) -> None:
    raw = b"w\xff\xfe\n.bin"
    with open(os.path.join(os.fsencode(tmp_path), raw), "wb") as file:
        file.write(b"1")
    (entry,) = list_source(tmp_path)
    assert os.fsencode(entry.path) == raw


@pytest.mark.parametrize(
    ("pattern", "gone"),
    [
        ("*.log", {"a.log", "sub/b.log"}),
        ("sub", {"sub/b.log", "sub/keep"}),
        ("sub/*", {"sub/b.log", "sub/keep"}),
        ("*.LOG", set()),
        ("[a]*", {"a.log"}),
        ("keep", {"keep", "sub/keep"}),
    ],
)
def test_excludes_match_base_names_and_relative_names(tmp_path: Path, pattern: str, gone: set[str]) -> None:
    names = {"a.log", "keep", "sub/b.log", "sub/keep"}
    for name in names:
        put(tmp_path / name, b"1")
    found = {entry.path for entry in list_source(tmp_path, [pattern]) if entry.kind == "file"}
    assert found == names - gone
    assert {name for name in names if excluded(name, [pattern])} == gone


@pytest.mark.parametrize("target", ["../outside", "/etc/hostname", "sub/../../outside"])
def test_a_link_out_is_refused(tmp_path: Path, target: str) -> None:
    put(tmp_path / "outside", b"secret")
    (tmp_path / "c" / "sub").mkdir(parents=True)
    (tmp_path / "c" / "link").symlink_to(target)
    with pytest.raises(HostileError):
        list_source(tmp_path / "c")


def test_a_fifo_is_refused_and_a_missing_root_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(HostileError):
        list_source(tmp_path)
    assert list_source(tmp_path, ["pipe"]) == []
    with pytest.raises(NoSuchCopyError):
        list_source(tmp_path / "nothing")


def test_same_notices_every_kind_of_change(tmp_path: Path) -> None:
    put(tmp_path / "w", b"12345")
    (before,) = list_source(tmp_path)
    assert same(before, look_again(tmp_path, before))
    os.utime(tmp_path / "w", ns=(1, 1))
    assert not same(before, look_again(tmp_path, before))
    os.utime(tmp_path / "w", ns=(before.mtime_ns, before.mtime_ns))
    assert same(before, look_again(tmp_path, before))
    put(tmp_path / "new", b"67890")
    os.utime(tmp_path / "new", ns=(before.mtime_ns, before.mtime_ns))
    (tmp_path / "new").rename(tmp_path / "w")
    assert not same(before, look_again(tmp_path, before)), "another file of the same size and time took its place"
    (tmp_path / "w").unlink()
    with pytest.raises(IncompleteError):
        look_again(tmp_path, before)


@pytest.mark.parametrize(
    ("name", "temporary"),
    [
        (".tmpAb3dE9", True), ("model.safetensors.tmp", True), (".metadata.tmp", True), ("m-last-unfinished", True),
        ("tmp-checkpoint-5", True),
        ("w.bin.part", True), ("model.safetensors", False), (".metadata", False), ("template.json", False), ("tmp", False),
    ],
)  # fmt: skip
def test_temporary_names(name: str, temporary: bool) -> None:
    assert is_temporary(name) is temporary
    assert is_temporary(f"a/b/{name}") is temporary


def test_the_digest_follows_the_mark_where_it_lies_inside(tmp_path: Path) -> None:
    put_dcp(tmp_path / "a", weights(1), 2)
    put_dcp(tmp_path / "b", weights(1), 2)
    first = commit_mark_digest(inspect(tmp_path / "a"))
    assert len(first) == 64
    assert first == commit_mark_digest(inspect(tmp_path / "b")), "time and place do not matter"
    put_json(tmp_path / "b" / "_COMMITTED", {"epoch": 2})
    marked = commit_mark_digest(inspect(tmp_path / "b"))
    assert marked != first
    put_json(tmp_path / "b" / "_COMMITTED", {"epoch": 3})
    assert commit_mark_digest(inspect(tmp_path / "b")) not in (first, marked)


def test_the_digest_of_a_tag_does_not_move_with_latest(tmp_path: Path) -> None:
    put_deepspeed(tmp_path, 1, 100)
    digest = commit_mark_digest(inspect(tmp_path))
    assert commit_mark_digest(inspect(tmp_path / "global_step100")) == digest
    put_deepspeed(tmp_path, 1, 200)
    assert commit_mark_digest(inspect(tmp_path / "global_step100")) == digest
    os.utime(tmp_path / "global_step100" / "mp_rank_00_model_states.pt", ns=(5, 5))
    assert commit_mark_digest(inspect(tmp_path / "global_step100")) != digest


def test_the_digest_of_files_without_a_mark_needs_all_of_them(tmp_path: Path) -> None:
    put_ranks(tmp_path, 1, 2, 100)
    found = inspect(tmp_path)
    assert len(commit_mark_digest(found)) == 64
    (tmp_path / "rank_00001.pt").unlink()
    with pytest.raises(IncompleteError):
        commit_mark_digest(found)


def test_checkpoints_of_a_run_are_ordered_by_number(tmp_path: Path) -> None:
    for step in (1000, 90, 100, 9):
        put_ranks(tmp_path / f"step_{step}", 1, 1, step)
    (tmp_path / "latest").symlink_to("step_90")
    (tmp_path / "tmp-checkpoint-2000").mkdir()
    assert find_checkpoints(tmp_path) == [(step, str(tmp_path / f"step_{step}")) for step in (9, 90, 100, 1000)]
    assert find_checkpoints(tmp_path / "step_9") == [(9, str(tmp_path / "step_9"))]


@pytest.mark.parametrize(
    ("layout", "name", "pointer"),
    [
        ("deepspeed", "global_step100", ("latest", "global_step100")),
        ("deepspeed", "global_step100_universal", ("latest_universal", "global_step100_universal")),
        ("megatron", "iter_0000120", ("latest_checkpointed_iteration.txt", "120")),
        ("megatron", "iter_0000000", ("latest_checkpointed_iteration.txt", "0")),
        ("megatron", "release", ("latest_checkpointed_iteration.txt", "release")),
        ("megatron", "copy", None),
        ("dcp", "step_5", None),
        ("hf-trainer", "checkpoint-5", None),
    ],
)
def test_pointers(layout: str, name: str, pointer: tuple[str, str] | None) -> None:
    assert pointer_for(layout, name) == pointer


def test_a_restored_pointer_is_what_the_inspection_follows(tmp_path: Path) -> None:
    put_deepspeed(tmp_path, 1, 100)
    pointer = pointer_for("deepspeed", "global_step100")
    assert pointer is not None
    (tmp_path / pointer[0]).write_text(pointer[1])
    found = inspect(tmp_path)
    assert (found.path, found.step) == (str(tmp_path / "global_step100"), 100)
