"""An object of a file store while it is being written, and how it becomes visible in one step.

Write to ``.seawall-tmp/<random>~<key>``, fsync, give it its final name with link(2), fsync the folder, drop the temporary name.
A kill at any instant leaves a temporary file (a leftover) or the whole object, never a part of it. link(2) fails when the
name is taken, so of any number of writers exactly one creates the object.
"""

import contextlib
import ctypes
import errno
import os
import secrets
from pathlib import Path
from urllib.parse import quote, unquote

from seawall.errors import ObjectExistsError, StoreAmbiguousError, StoreRefusedError
from seawall.stores.file_errors import store_error
from seawall.stores.file_folders import DurableFolders, open_temporary

_VECTORS = 1024
"""IOV_MAX of Linux: the most buffers that one writev(2) takes."""
_NAME_BYTES = 255
"""NAME_MAX of the usual Linux file systems."""
_RANDOM_BYTES = 8
_CUT = "\u2026"
"""Ends a key that did not fit into the temporary name."""
_RENAME_NOREPLACE = 1
"""linux/fs.h; the flag of renameat2(2) that makes it fail when the name is taken."""
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def temporary_name(key: str) -> str:
    """A fresh name that still tells which key is being written, so that leftovers can be found by prefix."""
    readable = quote(key, safe="!$&'()*+,-.:;=@[]{}^ ")
    room = _NAME_BYTES - 2 * _RANDOM_BYTES - 1
    if len(readable) > room:
        # Cut before the last whole escape, so that unquote gives back a true beginning of the key.
        readable = readable[: room - len(quote(_CUT))]
        tail = readable[-2:].find("%")
        readable = (readable if tail < 0 else readable[: len(readable) - 2 + tail]) + quote(_CUT)
    return f"{secrets.token_hex(_RANDOM_BYTES)}~{readable}"


def key_of_temporary(name: str) -> str | None:
    """The key (or its beginning and an ellipsis) behind a temporary name, or None for a file that is not ours."""
    head, mark, readable = name.partition("~")
    if not mark or len(head) != 2 * _RANDOM_BYTES or head.strip("0123456789abcdef"):
        return None
    return unquote(readable, errors="ignore")


def is_below(key: str, prefix: str) -> bool:
    """Whether a key from :func:`key_of_temporary` begins with ``prefix``, as far as a cut key can tell."""
    return key.startswith(prefix) or (key.endswith(_CUT) and prefix.startswith(key[:-1]))


class TemporaryFile:
    """One open temporary file. All its methods raise typed store errors; ``discard`` is safe to call at any time."""

    def __init__(self, root: Path, key: str) -> None:
        self._root = root
        self._key = key
        self._where = f"{root}/{key}"
        self._name = temporary_name(key)
        self._folder = open_temporary(root)
        self._file = -1
        try:
            self._file = os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=self._folder)
        except OSError as error:
            os.close(self._folder)
            raise store_error(error, "the object cannot be written", self._where) from error

    def append(self, views: list[memoryview]) -> None:
        """Write the buffers at the current end."""
        waiting = list(views)
        try:
            while waiting:
                written = os.writev(self._file, waiting[:_VECTORS])
                while waiting and written >= waiting[0].nbytes:
                    written -= waiting.pop(0).nbytes
                if written:
                    waiting[0] = waiting[0][written:]
        except OSError as error:
            raise store_error(error, "the object cannot be written", self._where) from error

    def write_at(self, view: memoryview, offset: int) -> None:
        """Write one buffer at ``offset``; several threads may do so at once."""
        try:
            while view.nbytes:
                written = os.pwrite(self._file, view, offset)
                view, offset = view[written:], offset + written
        except OSError as error:
            raise store_error(error, "a part of the object cannot be written", self._where) from error

    def size(self) -> int:
        """Bytes from the start to the last one written."""
        return os.fstat(self._file).st_size

    def sync(self) -> os.stat_result:
        """Bring the bytes to the disk.

        A failed fsync is final: Linux has dropped the dirty pages, and a second one would lie (PostgreSQL's "fsyncgate" of 2018).
        """
        try:
            os.fsync(self._file)
            return os.fstat(self._file)
        except OSError as error:
            raise store_error(error, "the object cannot be written", self._where) from error

    def publish(self, folders: DurableFolders) -> os.stat_result:
        """Make it visible under its key, or raise ``ObjectExistsError``. The temporary name is gone afterwards either way."""
        facts = self.sync()
        parts = self._key.split("/")
        try:
            while True:
                try:
                    with folders.made(self._root, parts[:-1]) as folder:
                        self._create_name(folder, parts[-1])
                    return facts
                except FileNotFoundError as error:
                    # A delete removed the folder while it was empty: make it again. Or a sweep of leftovers took this file.
                    if self._is_gone():
                        raise StoreRefusedError(
                            "the upload was removed while it was going on",
                            where=self._where,
                            why="somebody swept the leftovers of killed uploads",
                            do="run it again; sweep only what is older than any upload takes",
                        ) from error
                except OSError as error:
                    raise store_error(error, "the object cannot be created", self._where) from error
        finally:
            self.discard()

    def _is_gone(self) -> bool:
        try:
            os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return False

    def _create_name(self, folder: int, name: str) -> None:
        taken = False
        try:
            os.link(self._name, name, src_dir_fd=self._folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            # NFS repeats a request whose answer was lost: the link may be our own (open(2), O_EXCL on NFS).
            taken = not self._is_ours(folder, name)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            taken = not _rename_if_free(self._folder, self._name, folder, name)
        try:
            # Also for the loser: who adopts the winner's object must not rely on a name that a power cut takes back.
            os.fsync(folder)
        except OSError as error:
            if taken:
                raise
            raise StoreAmbiguousError(
                "the object was created and its name may not survive a power cut",
                where=self._where,
                why=error.strerror or "",
                do="read the object back before relying on it",
            ) from error
        if taken:
            raise ObjectExistsError("an object of this key exists", where=self._where, do="read it and compare before deciding")

    def _is_ours(self, folder: int, name: str) -> bool:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return os.path.samestat(there, os.fstat(self._file))

    def replace(self, folder: int, name: str) -> os.stat_result:
        """Put it in place of an existing object, durably (repair)."""
        facts = self.sync()
        try:
            os.rename(self._name, name, src_dir_fd=self._folder, dst_dir_fd=folder)
            os.fsync(folder)
        except OSError as error:
            raise store_error(error, "the object cannot be replaced", self._where) from error
        finally:
            self.discard()
        return facts

    def discard(self) -> None:
        """Remove the temporary name and close."""
        if self._file < 0:
            return
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._folder)
        file, self._file = self._file, -1
        os.close(self._folder)
        # On NFS a late write error may show at close; everything that counts was fsynced before.
        with contextlib.suppress(OSError):
            os.close(file)


def _rename_if_free(source_folder: int, source: str, folder: int, name: str) -> bool:
    """Rename where hard links do not exist (some FUSE, SMB and container mounts); False when the name is taken."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    code = errno.ENOSYS
    if renameat2 is not None:
        if renameat2(source_folder, os.fsencode(source), folder, os.fsencode(name), _RENAME_NOREPLACE) == 0:
            return True
        code = ctypes.get_errno()
    if code == errno.EEXIST:
        return False
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        raise StoreRefusedError(
            "this file system cannot create an object in one step",
            why="it has neither hard links nor renameat2 with RENAME_NOREPLACE",
            do="use another file system, or an S3 store",
        )
    raise OSError(code, os.strerror(code))
