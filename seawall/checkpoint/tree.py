"""One folder of a checkpoint as it is on disk, without following anything out of it.

Links are resolved only inside a boundary; what is neither file, folder nor link is never opened, because opening a FIFO blocks
and opening a device may do anything. Files may vanish between listing and reading: that is a save in progress, not an error.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from seawall.checkpoint.reading import OpenFile
from seawall.errors import CorruptError, HostileError, IncompleteError, NoSuchCopyError, SeawallError

Kind = Literal["file", "folder", "outside", "dangling", "loop", "special"]

MAX_ENTRIES = 1_000_000
"""Entries below one folder; the design plans for 10,000 files a checkpoint."""
MAX_DEPTH = 64
"""Folders inside folders."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in the tree. For a link inside the boundary, ``kind`` and ``size`` are those of what it leads to."""

    name: str
    """Relative to the folder, ``/``-separated."""
    kind: Kind
    size: int = 0
    linked: str = ""
    """Where a link leads, fully resolved; empty for what is no link."""


class UnreadableError(SeawallError):
    """The operating system refused to show a file or folder."""


def refused(path: str, error: OSError) -> SeawallError:
    """The typed error for what ``error`` says about ``path``."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return IncompleteError(
            "it vanished while it was looked at", where=path, why="a save or a rotation is running", do="look again later"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return UnreadableError(
            "permission denied", where=path, why="this user may not read it", do="run as a user who may, or change the file's mode"
        )
    if error.errno == errno.ELOOP:
        return CorruptError("a link that leads to itself", where=path)
    return CorruptError("it cannot be read", where=path, why=error.strerror or "")


def within(boundary: str, real: str) -> bool:
    """Whether a resolved path is the boundary itself or below it."""
    return real == boundary or real.startswith(boundary.rstrip("/") + "/")


def classify(path: str, name: str, boundary: str) -> Entry:
    """What ``path`` is, judged without opening it."""
    status = os.lstat(path)
    linked = ""
    if stat.S_ISLNK(status.st_mode):
        try:
            linked = os.path.realpath(path, strict=True)
        except FileNotFoundError:
            wanted = os.path.realpath(path)
            return Entry(name, "dangling" if within(boundary, wanted) else "outside", 0, wanted)
        except OSError as error:
            if error.errno == errno.ELOOP:
                return Entry(name, "loop", 0, os.readlink(path))
            raise
        if not within(boundary, linked):
            return Entry(name, "outside", 0, linked)
        status = os.lstat(linked)
    if stat.S_ISREG(status.st_mode):
        return Entry(name, "file", status.st_size, linked)
    if stat.S_ISDIR(status.st_mode):
        return Entry(name, "folder", 0, linked)
    return Entry(name, "special", 0, linked)


class Folder:
    """A folder with everything below it, listed once. Links to folders are recorded and not descended into."""

    def __init__(self, path: str, boundary: str, recursive: bool = True) -> None:
        self.path = path
        self.boundary = boundary
        self.entries: dict[str, Entry] = {}
        self.vanished: list[str] = []
        self._list("", recursive)

    @classmethod
    def of_one_file(cls, path: str, boundary: str, name: str) -> "Folder":
        """A folder of which only one file is looked at."""
        folder = cls.__new__(cls)
        folder.path, folder.boundary, folder.entries, folder.vanished = path, boundary, {}, []
        folder._enter(name, False, [])
        return folder

    def _list(self, below: str, recursive: bool) -> None:
        pending = [below]
        while pending:
            at = pending.pop()
            here = os.path.join(self.path, at) if at else self.path
            try:
                names = sorted(os.listdir(here))
            except OSError as error:
                trouble = refused(here, error)
                if isinstance(trouble, IncompleteError) and at:
                    self.vanished.append(at)
                    continue
                raise trouble from error
            for name in names:
                self._enter(f"{at}/{name}" if at else name, recursive, pending)

    def _enter(self, relative: str, recursive: bool, pending: list[str]) -> None:
        if len(self.entries) >= MAX_ENTRIES:
            raise HostileError(f"more than {MAX_ENTRIES} files and folders", where=self.path)
        path = os.path.join(self.path, relative)
        try:
            entry = classify(path, relative, self.boundary)
        except OSError as error:
            trouble = refused(path, error)
            if isinstance(trouble, IncompleteError):
                self.vanished.append(relative)
                return
            raise trouble from error
        self.entries[relative] = entry
        if recursive and entry.kind == "folder" and not entry.linked:
            if relative.count("/") >= MAX_DEPTH:
                raise HostileError(f"folders more than {MAX_DEPTH} deep", where=self.path)
            pending.append(relative)

    def files(self) -> dict[str, Entry]:
        """Regular files (also behind links inside), by relative name, sorted."""
        return {name: entry for name, entry in sorted(self.entries.items()) if entry.kind == "file"}

    def folders(self, below: str = "") -> list[str]:
        """Names of the folders directly in ``below``."""
        return [
            name.rpartition("/")[2]
            for name, entry in sorted(self.entries.items())
            if entry.kind == "folder" and name.rpartition("/")[0] == below
        ]

    def names(self, below: str = "") -> list[str]:
        """Names of the files directly in ``below``, without the folder's part."""
        return [
            name.rpartition("/")[2]
            for name, entry in sorted(self.entries.items())
            if entry.kind == "file" and name.rpartition("/")[0] == below
        ]

    def has(self, name: str) -> bool:
        """Whether a regular file of that name is there."""
        entry = self.entries.get(name)
        return entry is not None and entry.kind == "file"

    def has_folder(self, name: str) -> bool:
        entry = self.entries.get(name)
        return entry is not None and entry.kind == "folder"

    @contextmanager
    def open(self, name: str) -> Iterator[OpenFile]:
        """The file's bytes; ``IncompleteError`` when it vanished, ``HostileError`` when it leaves the boundary."""
        entry = self.entries.get(name)
        if entry is None:
            raise IncompleteError("it is not there", where=name)
        if entry.kind == "outside":
            raise HostileError("a link that leads out of the checkpoint", where=name, why=f"it leads to {entry.linked}")
        if entry.kind != "file":
            raise CorruptError(f"it is no regular file but {entry.kind}", where=name)
        opened = open_regular(entry.linked or os.path.join(self.path, name), name)
        try:
            yield opened
        finally:
            opened.close()

    def read(self, name: str, limit: int) -> bytes:
        """The whole of a small file; ``CorruptError`` when it is larger than ``limit`` bytes."""
        with self.open(name) as source:
            if source.size > limit:
                raise CorruptError(f"{source.size} bytes is more than such a file has (at most {limit})", where=name)
            return source.read(0, limit)


def open_regular(path: str, name: str) -> OpenFile:
    """Open a regular file and nothing else.

    O_NOFOLLOW and O_NONBLOCK because the name may have become a link or a FIFO since it was classified.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise refused(name, error) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise HostileError("it became something else than a file while it was looked at", where=name)
    return OpenFile(descriptor, status.st_size, name)


@dataclass(frozen=True, slots=True)
class Target:
    """What a path given by a person leads to."""

    real: str
    boundary: str
    kind: Kind


def locate(path: str | os.PathLike[str]) -> Target:
    """Resolve ``path``. The folders above it are trusted; if the last part is a link, it may lead anywhere below its own folder.

    Raises ``NoSuchCopyError`` when nothing is there.
    """
    text = os.path.abspath(os.fspath(path))
    parent = os.path.realpath(os.path.dirname(text))
    full = os.path.join(parent, os.path.basename(text)) if os.path.basename(text) else parent
    try:
        is_link = stat.S_ISLNK(os.lstat(full).st_mode)
        boundary = parent if is_link else full
        entry = classify(full, os.path.basename(full), boundary)
    except FileNotFoundError as error:
        raise NoSuchCopyError("nothing is at this path", where=text, do="check the path") from error
    except OSError as error:
        raise refused(text, error) from error
    if entry.kind == "file" and not is_link:
        boundary = parent
    if entry.kind == "folder" and not is_link:
        boundary = _cache_of(full) or boundary
    return Target(entry.linked or full, boundary, entry.kind)


def _cache_of(folder: str) -> str:
    """The repository folder of the Hugging Face cache that a snapshot is of: its files are links into ``blobs`` beside ``snapshots``."""
    above, parent = os.path.split(os.path.dirname(folder))
    return above if parent == "snapshots" and os.path.isdir(os.path.join(above, "blobs")) else ""
