"""The files of a checkpoint as sync reads them: listed with what must not change, and the digest that tells one save from the next."""

import fnmatch
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from seawall.checkpoint.inspection import Inspection
from seawall.checkpoint.layouts.megatron import TRACKER
from seawall.checkpoint.runs import steps_of
from seawall.checkpoint.tree import MAX_ENTRIES, Folder, Target, locate, refused, within
from seawall.errors import HostileError, SourceChangedError


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One entry below a checkpoint's folder. ``path`` is relative, ``/``-separated, undecodable bytes as PEP 383 surrogates."""

    path: str
    kind: Literal["file", "folder", "link"]
    """``folder`` only for empty ones; ``link`` only for links that stay inside."""
    size: int
    mtime_ns: int
    inode: int
    device: int
    mode: int
    target: str = ""
    """Of a link: what it says."""


def same(before: SourceFile, after: SourceFile) -> bool:
    """Whether a file is what it was: size, time of change, inode and device."""
    return (before.size, before.mtime_ns, before.inode, before.device) == (after.size, after.mtime_ns, after.inode, after.device)


def list_source(root: str, exclude: Sequence[str] = ()) -> list[SourceFile]:
    """Everything below ``root`` in order of path, without what matches a pattern of ``exclude``.

    A pattern (fnmatch) is compared with the base name and with the relative path. Raises :class:`HostileError` for a
    link that leaves the folder and for what is neither file, folder nor link; :class:`SourceChangedError` when the
    folder changes meanwhile.
    """
    real = os.path.realpath(root)
    found: list[SourceFile] = []
    pending = [""]
    while pending:
        at = pending.pop()
        try:
            names = sorted(os.listdir(os.path.join(real, at)))
            facts = os.lstat(os.path.join(real, at))
        except OSError as error:
            raise _changed(at, error) from error
        if not names and at:
            found.append(_entry(at, "folder", facts))
        for name in names:
            path = f"{at}/{name}" if at else name
            if _excluded(path, name, exclude):
                continue
            try:
                facts = os.lstat(os.path.join(real, path))
                if stat.S_ISDIR(facts.st_mode):
                    pending.append(path)
                elif stat.S_ISLNK(facts.st_mode):
                    found.append(_link(real, path, facts))
                elif stat.S_ISREG(facts.st_mode):
                    found.append(_entry(path, "file", facts))
                else:
                    raise HostileError("neither file, folder nor link; such things are not read", where=path)
            except OSError as error:
                raise _changed(path, error) from error
        if len(found) > MAX_ENTRIES:
            raise HostileError(f"more than {MAX_ENTRIES} files", where=root)
    return sorted(found, key=lambda file: file.path)


def _entry(path: str, kind: Literal["file", "folder", "link"], facts: os.stat_result, target: str = "") -> SourceFile:
    mode = stat.S_IMODE(facts.st_mode)
    return SourceFile(path, kind, facts.st_size, facts.st_mtime_ns, facts.st_ino, facts.st_dev, mode, target)


def _link(real: str, path: str, facts: os.stat_result) -> SourceFile:
    says = os.readlink(os.path.join(real, path))
    if os.path.isabs(says) or not within(real, os.path.realpath(os.path.join(real, path))):
        raise HostileError("a link leaves the checkpoint", where=path, why=f"it leads to {says}", do="put the file itself there")
    return _entry(path, "link", facts, says)


def _excluded(path: str, name: str, exclude: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(path, pattern) for pattern in exclude)


def _changed(path: str, error: OSError) -> Exception:
    if isinstance(error, FileNotFoundError):
        return SourceChangedError("the checkpoint changed while it was listed", where=path, do="sync again when the save is over")
    return refused(path, error)


def commit_mark_digest(inspection: Inspection) -> bytes:
    """SHA-256 that is the same for the same save: over name and content of the commit mark, else over the files' names, sizes and times.

    Raises :class:`SourceChangedError` when the mark is gone.
    """
    digest = sha256()
    try:
        if inspection.commit_mark is not None:
            digest.update(b"mark\0" + os.fsencode(inspection.commit_mark) + b"\0")
            with open(os.path.join(inspection.path, inspection.commit_mark), "rb") as mark:
                while chunk := mark.read(1 << 20):
                    digest.update(chunk)
            return digest.digest()
        if os.path.isfile(inspection.path):
            names = [("", inspection.path)]
        else:
            names = [(name, os.path.join(inspection.path, name)) for name in sorted(inspection.files)]
        digest.update(b"files\0")
        for name, path in names:
            facts = os.stat(path)
            digest.update(b"%b\0%d\0%d\0" % (os.fsencode(name), facts.st_size, facts.st_mtime_ns))
    except OSError as error:
        raise _changed(inspection.path, error) from error
    return digest.digest()


def find_checkpoints(run_folder: str) -> list[tuple[int, str]]:
    """(step, path) of the step folders in a run folder, oldest first."""
    target: Target = locate(run_folder)
    if target.kind != "folder":
        return []
    folder = Folder(target.real, target.boundary, recursive=False)
    return [(step, os.path.join(folder.path, name)) for step, name in steps_of(folder)]


def pointer_for(layout: str, folder: str) -> tuple[str, str] | None:
    """(file name, content) of the pointer that makes a framework load the step in ``folder``; None where there is no such thing.

    DeepSpeed's ``latest`` decides even when a tag is asked for (DeepSpeed #8499); Megatron's tracker holds the iteration
    or ``release``.
    """
    if layout == "deepspeed":
        return "latest", folder
    if layout == "megatron":
        digits = folder.removeprefix("iter_").lstrip("0") or "0"
        return TRACKER, digits if folder.startswith("iter_") and digits.isdecimal() else folder
    return None
