"""Folders of a file store, walked one part at a time so that no symbolic link is ever followed below the root.

A check of the resolved path before the open would leave a moment in which somebody swaps a folder for a link; opening each part
relative to the descriptor of the one before, with ``O_NOFOLLOW``, leaves none (openat(2), "Rationale for openat()").
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from seawall.errors import StoreRefusedError
from seawall.stores.file_errors import store_error

TEMPORARY = ".seawall-tmp"
"""Folder under the root for objects that are being written. It also marks the root as a store: see :func:`make_store_folder`."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_store_folder(root: Path) -> None:
    """Create ``root`` and its temporary folder, durably.

    Only this makes them. A ``put`` into a root without the temporary folder is refused, because that is what an unmounted
    mount point looks like: the copy would fill the system disk and be gone after the next mount.
    """
    try:
        (root / TEMPORARY).mkdir(parents=True, exist_ok=True)
        for folder in (root / TEMPORARY, root, root.parent):
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
    except OSError as error:
        raise store_error(error, "the folder of the store cannot be created", str(root)) from error


def open_root(root: Path) -> int:
    """Descriptor of the root; the caller closes it. The root itself may be reached over links: its owner chose the path."""
    try:
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise StoreRefusedError(
                "the folder of the store is not there",
                where=str(root),
                why=error.strerror or "",
                do="mount it, or create the store with seawall init",
            ) from error
        raise store_error(error, "the folder of the store cannot be opened", str(root)) from error


def open_temporary(root: Path) -> int:
    """Descriptor of the temporary folder; the caller closes it."""
    top = open_root(root)
    try:
        return os.open(TEMPORARY, _FOLDER, dir_fd=top)
    except FileNotFoundError as error:
        raise StoreRefusedError(
            "this folder is not a store that can be written",
            where=str(root),
            why=f"it has no {TEMPORARY} folder, so perhaps the disk is not mounted",
            do="mount it, or create the store with seawall init",
        ) from error
    except OSError as error:
        raise store_error(error, "the temporary folder of the store cannot be opened", str(root)) from error
    finally:
        os.close(top)


@contextlib.contextmanager
def folder_of(root: Path, parts: list[str]) -> Iterator[int]:
    """Descriptor of an existing folder below the root. Raises the plain ``OSError``."""
    fd = open_root(root)
    try:
        for part in parts:
            below = os.open(part, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


class DurableFolders:
    """Makes folders and remembers which are known to survive a power cut.

    A new folder survives when the folder that holds its name was fsynced (fsync(2)). The name may also have been made a moment
    ago by another process that has not fsynced yet, so the first use of any folder fsyncs the one above it, once a process.
    """

    def __init__(self) -> None:
        self._known: set[tuple[int, int]] = set()

    @contextlib.contextmanager
    def made(self, root: Path, parts: list[str]) -> Iterator[int]:
        """Descriptor of the folder, created where missing. Raises the plain ``OSError``."""
        fd = open_root(root)
        try:
            for part in parts:
                below = _open_or_make(part, fd)
                try:
                    facts = os.fstat(below)
                    identity = (facts.st_dev, facts.st_ino)
                    if identity not in self._known:
                        os.fsync(fd)
                        self._known.add(identity)
                except BaseException:
                    os.close(below)
                    raise
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)


def _open_or_make(part: str, above: int) -> int:
    while True:
        try:
            return os.open(part, _FOLDER, dir_fd=above)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=above)
        # Around again: a delete in another process may remove the empty folder between the two calls.


def remove_empty(root: Path, parts: list[str]) -> None:
    """Remove the folder and those above it while they are empty; never the root."""
    for depth in range(len(parts), 0, -1):
        try:
            with folder_of(root, parts[: depth - 1]) as above:
                os.rmdir(parts[depth - 1], dir_fd=above)
        except OSError:
            # Not empty, gone already, or not ours to remove: an empty folder costs nothing.
            return
