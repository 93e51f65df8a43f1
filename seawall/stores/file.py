"""A store in a folder: a local disk, an NVMe array, NFS, an RDMA-attached or DAOS mount. ``file:///abs/path``.

* One fsync an object and one of its folder: a ``put`` that returned survives a power cut.
* The version of an object is ``<mtime in ns>-<inode>``. It changes when somebody writes into the file or puts another one there,
  which is what ``replace`` and ``delete`` have to notice. There are no older versions to read, so ``get``, ``read_into`` and ``head``
  ignore a version: a damaged object must be read to be recognised, and its version has changed.
* CRC-64 is checked on what is handed in, not stored: the file system keeps no checksum that ``head`` could report.
* The store's time is the time that the file system stamps on a fresh file. Over NFS and SMB that is the server's clock; on a
  local disk it is this host's, so ``server_time`` is not claimed there and the answer is information only.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreRefusedError, UsageError
from seawall.stores.base import Buffer, Capabilities, Leftover, Stored, Upload, checked_key
from seawall.stores.buffers import as_views, crc_of
from seawall.stores.file_errors import store_error
from seawall.stores.file_facts import moment, stored
from seawall.stores.file_folders import TEMPORARY, DurableFolders, folder_of, make_store_folder, open_temporary, remove_empty
from seawall.stores.file_listing import list_folder_names, list_objects
from seawall.stores.file_probe import creates_once
from seawall.stores.file_temporary import TemporaryFile, is_below, key_of_temporary
from seawall.stores.file_time import stamped_by_server
from seawall.stores.file_upload import FileUpload


class FileStore:
    """See the module. ``create`` makes the folder; without it a missing folder is refused, because its disk may not be mounted."""

    def __init__(self, url: str, *, create: bool = False) -> None:
        self.url = url
        self.root = path_of(url)
        self._folders = DurableFolders()
        self._capabilities: Capabilities | None = None
        if create:
            make_store_folder(self.root)

    @property
    def capabilities(self) -> Capabilities:
        """Probed once: create-if-absent by trying it on a temporary file, the clock by the type of the mount."""
        if self._capabilities is None:
            once, why = creates_once(self.root)
            server_time = stamped_by_server(self.root)
            reasons = [f"conditional_put: {why}"] if why else []
            reasons += [
                "object_lock: a file system has no lock that its owner cannot take off",
                "full_object_crc: a file system keeps no checksum",
            ]
            if not server_time:
                reasons.append("server_time: files on this mount are stamped by this host's clock")
            self._capabilities = Capabilities(conditional_put=once, server_time=server_time, reasons=tuple(reasons))
        return self._capabilities

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        _checked(key)
        self._refuse_lock(key, lock_until)
        views = as_views(data)
        self._check_crc(key, views, crc64)
        file = TemporaryFile(self.root, key)
        try:
            file.append(views)
            return stored(key, file.publish(self._folders))
        finally:
            file.discard()

    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        self._refuse_lock(key, lock_until)
        return FileUpload(self.root, _checked(key), self._folders)

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        fd = self._open(key)
        try:
            there = max(0, os.fstat(fd).st_size - start)
            buffer = bytearray(there if length is None else min(there, length))
            return bytes(memoryview(buffer)[: _read(fd, memoryview(buffer), start)])
        except OSError as error:
            raise store_error(error, "the object cannot be read", self._where(key)) from error
        finally:
            os.close(fd)

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        fd = self._open(key)
        try:
            return _read(fd, buffer.cast("B"), start)
        except OSError as error:
            raise store_error(error, "the object cannot be read", self._where(key)) from error
        finally:
            os.close(fd)

    def head(self, key: str, version: str | None = None) -> Stored:
        parts = _checked(key).split("/")
        try:
            with folder_of(self.root, parts[:-1]) as folder:
                facts = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise store_error(error, "the object cannot be looked at", self._where(key)) from error
        self._refuse_odd(key, facts)
        return stored(key, facts)

    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        for key, facts in list_objects(self.root, prefix, after):
            yield stored(key, facts)

    def list_folders(self, prefix: str) -> Iterator[str]:
        if prefix and not prefix.endswith("/"):
            raise UsageError("a folder prefix is empty or ends in /", where=prefix)
        return list_folder_names(self.root, prefix)

    def replace(self, key: str, data: Buffer | Sequence[Buffer], damaged_version: str | None, crc64: int | None = None) -> Stored:
        """As the protocol says. Between the last look at the version and the rename is a moment in which a second repair can come in;
        both put the same verified bytes there, so it does not matter which one stays."""
        parts = _checked(key).split("/")
        if damaged_version is None:
            try:
                return self.put(key, data, crc64)
            except ObjectExistsError as error:
                raise StoreRefusedError(
                    "there is an object, and no version of it was named", where=self._where(key), do="take it from head"
                ) from error
        views = as_views(data)
        self._check_crc(key, views, crc64)
        self._check_version(key, damaged_version)
        file = TemporaryFile(self.root, key)
        try:
            file.append(views)
            file.sync()
            self._check_version(key, damaged_version)
            with folder_of(self.root, parts[:-1]) as folder:
                return stored(key, file.replace(folder, parts[-1]))
        except OSError as error:
            raise store_error(error, "the object cannot be replaced", self._where(key)) from error
        finally:
            file.discard()

    def delete(self, key: str, version: str | None = None) -> None:
        """Remove the object and the folders that become empty. An object that is not there is no error: a repeated delete must succeed."""
        parts = _checked(key).split("/")
        try:
            if version is not None:
                self._check_version(key, version)
            with folder_of(self.root, parts[:-1]) as folder:
                self._refuse_odd(key, os.stat(parts[-1], dir_fd=folder, follow_symlinks=False))
                os.unlink(parts[-1], dir_fd=folder)
                os.fsync(folder)
        except (FileNotFoundError, NoSuchObjectError):
            return
        except OSError as error:
            raise store_error(error, "the object cannot be deleted", self._where(key)) from error
        remove_empty(self.root, parts[:-1])

    def extend_lock(self, key: str, until: datetime, version: str | None = None) -> None:
        self._refuse_lock(key, until)

    def server_time(self) -> datetime | None:
        try:
            file = TemporaryFile(self.root, "clock")
        except StoreRefusedError:
            return None
        try:
            return moment(file.sync().st_mtime_ns)
        finally:
            file.discard()

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        """Temporary files of writers that were killed, and of those that still write: ``began`` is the time of the last write.

        A key too long for a file name is shown cut, with an ellipsis.
        """
        folder = open_temporary(self.root)
        try:
            for name in sorted(os.listdir(folder)):
                key = key_of_temporary(name)
                if key is None or not is_below(key, prefix):
                    continue
                try:
                    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield Leftover(key, name, moment(facts.st_mtime_ns))
        finally:
            os.close(folder)

    def abort_leftover(self, leftover: Leftover) -> None:
        if key_of_temporary(leftover.upload) is None or "/" in leftover.upload:
            raise UsageError("this is not a leftover of a file store", where=leftover.upload)
        folder = open_temporary(self.root)
        try:
            os.unlink(leftover.upload, dir_fd=folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise store_error(error, "the leftover cannot be removed", f"{self.root}/{TEMPORARY}/{leftover.upload}") from error
        finally:
            os.close(folder)

    def warm(self, keys: Sequence[str]) -> None:
        """Nothing has to be recalled."""

    def wait_warm(self, keys: Sequence[str], timeout_seconds: float) -> None:
        """Nothing has to be recalled."""

    def close(self) -> None:
        """No descriptor is kept between calls, so that a lost mount shows at the next one."""

    def _where(self, key: str) -> str:
        return f"{self.root}/{key}"

    def _open(self, key: str) -> int:
        parts = _checked(key).split("/")
        try:
            with folder_of(self.root, parts[:-1]) as folder:
                # O_NONBLOCK: opening a named pipe that somebody put there must not hang.
                fd = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            raise store_error(error, "the object cannot be read", self._where(key)) from error
        try:
            self._refuse_odd(key, os.fstat(fd))
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _refuse_lock(self, key: str, until: datetime | None) -> None:
        if until is not None:
            raise StoreRefusedError(
                "this store has no object lock", where=self._where(key), why="a file system has no lock that its owner cannot take off"
            )

    def _refuse_odd(self, key: str, facts: os.stat_result) -> None:
        if stat.S_ISDIR(facts.st_mode):
            raise NoSuchObjectError("no such object", where=self._where(key), why="a folder has this name")
        if not stat.S_ISREG(facts.st_mode):
            raise StoreRefusedError(
                "this is no stored object", where=self._where(key), why="it is a link, a pipe or a device", do="look at this path by hand"
            )

    def _check_crc(self, key: str, views: Sequence[memoryview], crc64: int | None) -> None:
        if crc64 is not None and crc_of(views) != crc64:
            raise StoreRefusedError(
                "the checksum does not fit the bytes",
                where=self._where(key),
                why="CRC-64/NVME differs",
                do="suspect the memory of this host",
            )

    def _check_version(self, key: str, version: str) -> None:
        there = self.head(key).version
        if there != version:
            raise StoreRefusedError(
                "another object is there than the one that was examined",
                where=self._where(key),
                why=f"version {there}, not {version}",
                do="examine it again",
            )


def path_of(url: str) -> Path:
    """The folder that a ``file:`` URL names, links resolved; ``UsageError`` for anything but ``file:///absolute/path``."""
    parts = urlsplit(url)
    odd = parts.query or parts.fragment or "\0" in unquote(url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/") or odd:
        raise UsageError("a file store is written file:///absolute/path", where=url)
    return Path(os.path.realpath(unquote(parts.path)))


def _checked(key: str) -> str:
    if checked_key(key).split("/", 1)[0] == TEMPORARY:
        raise UsageError(f"{TEMPORARY} is not a key", where=key)
    return key


def _read(fd: int, view: memoryview, start: int) -> int:
    done = 0
    while done < view.nbytes:
        got = os.preadv(fd, [view[done:]], start + done)
        if not got:
            break
        done += got
    return done
