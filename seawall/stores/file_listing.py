"""Objects of a file store in key order, with no more in memory than the names of the folders on the current path."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from seawall.stores.file_errors import store_error
from seawall.stores.file_folders import TEMPORARY, folder_of, open_root

Found = tuple[str, os.stat_result]


def list_objects(root: Path, prefix: str, after: str) -> Iterator[Found]:
    """Keys that begin with ``prefix`` and are greater than ``after``, with their facts, in the order of their UTF-8 bytes.

    A folder sorts as its name followed by ``/``, because that is what its keys continue with: ``a.b`` comes before ``a/b``.
    Folders that lie wholly before ``after`` are not opened. Links, sockets and names that are not UTF-8 are no objects.
    """
    os.close(open_root(root))
    parts = prefix.split("/")[:-1]
    yield from _below(root, parts, prefix, after)


def _below(root: Path, parts: list[str], prefix: str, after: str) -> Iterator[Found]:
    base = "".join(part + "/" for part in parts)
    for name in _entries(root, parts):
        key = base + name
        if name.endswith("/"):
            if _overlaps(key, prefix) and (key > after or after.startswith(key)):
                yield from _below(root, [*parts, name[:-1]], prefix, after)
        elif key.startswith(prefix) and key > after:
            facts = _facts(root, parts, name)
            if facts is not None:
                yield key, facts


def _overlaps(folder: str, prefix: str) -> bool:
    return folder.startswith(prefix) or prefix.startswith(folder)


def _entries(root: Path, parts: list[str]) -> list[str]:
    """Names in one folder, folders with a ``/`` at the end, sorted; empty when the folder is not there."""
    names: list[str] = []
    try:
        with folder_of(root, parts) as fd, os.scandir(fd) as entries:
            for entry in entries:
                if not parts and entry.name == TEMPORARY:
                    continue
                if not entry.name.isascii() and not _is_unicode(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name + "/")
                elif entry.is_file(follow_symlinks=False):
                    names.append(entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise store_error(error, "the folder cannot be listed", "/".join([str(root), *parts])) from error
    # Code points sort as UTF-8 bytes do.
    names.sort()
    return names


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _facts(root: Path, parts: list[str], name: str) -> os.stat_result | None:
    try:
        with folder_of(root, parts) as fd:
            facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise store_error(error, "the object cannot be looked at", "/".join([str(root), *parts, name])) from error
    return facts if stat.S_ISREG(facts.st_mode) else None


def list_folder_names(root: Path, prefix: str) -> Iterator[str]:
    """Names of the folders directly under ``prefix`` below which there is at least one object."""
    os.close(open_root(root))
    parts = prefix.split("/")[:-1]
    for name in _entries(root, parts):
        if name.endswith("/") and _has_object(root, [*parts, name[:-1]]):
            yield name[:-1]


def _has_object(root: Path, parts: list[str]) -> bool:
    names = _entries(root, parts)
    return any(not name.endswith("/") for name in names) or any(_has_object(root, [*parts, name[:-1]]) for name in names)
