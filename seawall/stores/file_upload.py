"""A large object of a file store, written in parts that may come in any order and from several threads."""

import threading
from pathlib import Path

from seawall.errors import StoreRefusedError, UsageError
from seawall.kernels.crc64 import combine
from seawall.kernels.crc64 import crc64 as crc_of
from seawall.stores.base import Buffer, Stored
from seawall.stores.file_facts import stored
from seawall.stores.file_folders import DurableFolders
from seawall.stores.file_temporary import TemporaryFile


class FileUpload:
    """Parts go straight to their place in one temporary file; ``finish`` gives it its name."""

    def __init__(self, root: Path, key: str, folders: DurableFolders) -> None:
        self._key = key
        self._where = f"{root}/{key}"
        self._folders = folders
        self._file = TemporaryFile(root, key)
        self._parts: dict[int, tuple[int, int, int]] = {}
        self._lock = threading.Lock()

    def part(self, number: int, start: int, data: Buffer, crc64: int) -> None:
        view = memoryview(data).cast("B")
        if number < 1 or start < 0:
            raise UsageError("parts count from 1 and begin inside the object", where=self._where)
        if crc_of(view) != crc64:
            raise StoreRefusedError(
                f"the checksum of part {number} does not fit its bytes",
                where=self._where,
                why="CRC-64/NVME differs",
                do="suspect the memory of this host",
            )
        self._file.write_at(view, start)
        with self._lock:
            self._parts[number] = (start, view.nbytes, crc64)

    def finish(self, crc64: int, size: int) -> Stored:
        try:
            self._check_whole(crc64, size)
            return stored(self._key, self._file.publish(self._folders))
        finally:
            self._file.discard()

    def _check_whole(self, crc64: int, size: int) -> None:
        crc = 0
        length = 0
        for expected, (number, (start, nbytes, part_crc)) in enumerate(sorted(self._parts.items()), 1):
            if number != expected or start != length:
                raise StoreRefusedError(
                    f"part {expected} is missing, or does not follow the one before", where=self._where, do="send it again"
                )
            crc = combine(crc, part_crc, nbytes)
            length += nbytes
        if (crc, length) != (crc64, size) or self._file.size() != size:
            raise StoreRefusedError(
                "the parts do not make the object that was announced",
                where=self._where,
                why=f"{length} bytes with CRC-64/NVME {crc:016x}, announced {size} bytes with {crc64:016x}",
                do="seal the file again",
            )

    def abort(self) -> None:
        self._file.discard()
