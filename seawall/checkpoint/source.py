"""A checkpoint as files to be copied: what is there, whether it stayed as it was, and which of several checkpoints it is.

Nothing here opens a shard. Links are listed with where they lead and never followed; one that leaves the tree is an error, because
a copy that
holds it would restore a link into somebody else's files.
"""

import fnmatch
import hashlib
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from seawall.checkpoint.detect import is_run
from seawall.checkpoint.facts import step_in_name
from seawall.checkpoint.inspection import Inspection
from seawall.checkpoint.layouts.loose import TEMPORARY
from seawall.checkpoint.layouts.megatron import TRACKER
from seawall.checkpoint.runs import steps_of
from seawall.checkpoint.tree import MAX_DEPTH, Folder, locate, open_regular, refused, within
from seawall.errors import CorruptError, HostileError, IncompleteError, NoSuchCopyError

Kind = Literal["file", "folder", "link"]
MAX_MARK = 64 << 20
"""Bytes of a commit mark that are hashed; an index of shards or a ``.metadata`` may be large, and above this only its identity counts."""
UNFINISHED = re.compile(r"(?:.*/)?(?:.*-unfinished|\.metadata\.tmp)")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One entry of the tree. ``path`` is relative, ``/``-separated, and holds names that are not UTF-8 as surrogates (PEP 383)."""

    path: str
    kind: Kind
    size: int
    """Bytes of a file; 0 for others."""
    mtime_ns: int
    inode: int
    device: int
    mode: int
    """Permission bits only."""
    target: str = ""
    """What a link says, as written."""


def is_temporary(path: str) -> bool:
    """Whether a name is that of a file somebody is still writing, or left behind when killed: never worth a copy."""
    return bool(TEMPORARY.fullmatch(path.rpartition("/")[2]) or UNFINISHED.fullmatch(path))


def excluded(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches the last part of the name, the whole relative name, or a folder above it. Case counts."""
    parts = path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    return any(
        fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(part, pattern)
        for pattern in patterns
        for name, part in zip(above, parts, strict=True)
    )


def list_source(root: str | os.PathLike[str], exclude: Iterable[str] = ()) -> list[SourceFile]:
    """Everything below ``root`` in order of name: files, links, and folders that have nothing in them.

    ``root`` may be a file, which is then listed alone under its own name. Raises ``HostileError`` for links that leave the tree
    and for special
    files, ``IncompleteError`` when something vanishes while it is listed, ``NoSuchCopyError`` when nothing is there.
    """
    target = locate(root)
    patterns = tuple(exclude)
    if target.kind == "file":
        folder, name = os.path.split(target.real)
        return [_entry(folder, name, folder)]
    if target.kind == "outside":
        raise HostileError("a link that leads out of its folder", where=os.fspath(root), why=f"it leads to {target.real}")
    if target.kind != "folder":
        raise NoSuchCopyError(f"neither a file nor a folder, but {target.kind}", where=os.fspath(root))
    found: list[SourceFile] = []
    pending = [""]
    while pending:
        below = pending.pop()
        if below.count("/") >= MAX_DEPTH:
            raise HostileError(f"folders more than {MAX_DEPTH} deep", where=target.real)
        here = os.path.join(target.real, below) if below else target.real
        try:
            names = os.listdir(here)
        except OSError as error:
            raise refused(here, error) from error
        if not names and below:
            found.append(_entry(target.real, below, target.real))
        for name in names:
            path = f"{below}/{name}" if below else name
            if excluded(path, patterns):
                continue
            entry = _entry(target.real, path, target.real)
            if entry.kind == "folder":
                pending.append(path)
            else:
                found.append(entry)
    return sorted(found, key=lambda entry: os.fsencode(entry.path))


def _entry(root: str, path: str, boundary: str) -> SourceFile:
    full = os.path.join(root, path)
    try:
        status = os.lstat(full)
        target = os.readlink(full) if stat.S_ISLNK(status.st_mode) else ""
    except OSError as error:
        raise refused(path, error) from error
    if stat.S_ISLNK(status.st_mode):
        leads_to = os.path.realpath(full)
        if os.path.isabs(target) or not within(boundary, leads_to):
            raise HostileError(
                "a link that leads out of the checkpoint", where=path, why=f"it leads to {target}", do="copy the file in its place"
            )
        kind: Kind = "link"
    elif stat.S_ISREG(status.st_mode):
        kind = "file"
    elif stat.S_ISDIR(status.st_mode):
        kind = "folder"
    else:
        raise HostileError("neither file, folder nor link; such things are not copied", where=path)
    size = status.st_size if kind == "file" else 0
    return SourceFile(path, kind, size, status.st_mtime_ns, status.st_ino, status.st_dev, stat.S_IMODE(status.st_mode), target)


def same(before: SourceFile, after: SourceFile) -> bool:
    """Whether a file is still the one that was listed: a writer that replaces it changes the inode, one that writes into it size
    or time."""
    return (before.path, before.kind, before.size, before.mtime_ns, before.inode, before.device, before.target) == (
        after.path, after.kind, after.size, after.mtime_ns, after.inode, after.device, after.target,
    )  # fmt: skip


def look_again(root: str | os.PathLike[str], entry: SourceFile) -> SourceFile:
    """The same entry as it is now, for :func:`same`; ``IncompleteError`` when it is gone."""
    target = locate(root)
    folder = os.path.dirname(target.real) if target.kind == "file" else target.real
    return _entry(folder, entry.path, folder)


def commit_mark_digest(inspection: Inspection) -> str:
    """64 hex digits that tell this checkpoint from another one at the same path.

    SHA-256 over name and content of the commit mark where it lies inside of the checkpoint. A mark in the folder above
    (DeepSpeed's ``latest``,
    Megatron's tracker) moves on with the next save, so there, as for layouts without a mark, it is SHA-256 over the sorted names,
    sizes and times
    of the files. Raises ``IncompleteError`` when a file is gone.
    """
    digest = hashlib.sha256(b"seawall/1/commit-mark\0")
    folder = inspection.path if os.path.isdir(inspection.path) else os.path.dirname(inspection.path)
    if inspection.commit_mark is not None:
        digest.update(_framed(inspection.commit_mark))
        opened = open_regular(os.path.join(folder, inspection.commit_mark), inspection.commit_mark)
        try:
            if opened.size > MAX_MARK:
                raise CorruptError(f"a commit mark of {opened.size} bytes", where=inspection.commit_mark)
            digest.update(opened.read(0, MAX_MARK))
        finally:
            opened.close()
        return digest.hexdigest()
    for name in sorted(inspection.files):
        try:
            status = os.lstat(os.path.join(folder, name))
        except OSError as error:
            raise IncompleteError("a file vanished", where=name, why="a save or a rotation is running") from error
        digest.update(_framed(name) + status.st_size.to_bytes(8, "big") + status.st_mtime_ns.to_bytes(16, "big", signed=True))
    return digest.hexdigest()


def _framed(name: str) -> bytes:
    raw = os.fsencode(name)
    return len(raw).to_bytes(4, "big") + raw


def find_checkpoints(run_folder: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """(step, path) of every checkpoint in a run folder, oldest first, ordered by number (sorting by text deleted the wrong ones:
    transformers
    issue 25129). A folder that is a checkpoint by itself is the only one, with its step or -1. Nothing is said about whether they
    are complete."""
    target = locate(run_folder)
    if target.kind == "file":
        return [(-1, target.real)]
    folder = Folder(target.real, target.boundary, recursive=False)
    if not is_run(folder):
        step = step_in_name(os.path.basename(target.real))
        return [(-1 if step is None else step, target.real)]
    return [(step, os.path.join(target.real, name)) for step, name in steps_of(folder)]


def pointer_for(layout: str, restored_folder_name: str) -> tuple[str, str] | None:
    """(file name, content) of the pointer that a trainer wants beside a restored step, or None. DeepSpeed loads what ``latest``
    names whatever tag
    was asked for (DeepSpeed issue 8499), so a restore must write it."""
    if layout == "deepspeed":
        return ("latest_universal" if restored_folder_name.endswith("_universal") else "latest"), restored_folder_name
    if layout == "megatron":
        match = re.fullmatch(r"iter_0*(\d+)", restored_folder_name)
        return (TRACKER, match[1]) if match else (TRACKER, "release") if restored_folder_name == "release" else None
    return None
