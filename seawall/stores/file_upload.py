"""A large object of a file store, written in parts that may come in any order and from several threads."""

from pathlib import Path

from seawall.errors import StoreRefusedError
from seawall.kernels.crc64 import crc64 as crc_of
from seawall.stores.base import Buffer, Stored
from seawall.stores.file_facts import stored
from seawall.stores.file_folders import DurableFolders
from seawall.stores.file_temporary import TemporaryFile
from seawall.stores.parts import PartTable


class FileUpload:
    """Parts go straight to their place in one temporary file; ``finish`` gives it its name."""

    def __init__(self, root: Path, key: str, folders: DurableFolders) -> None:
        self._key = key
        self._where = f"{root}/{key}"
        self._folders = folders
        self._parts = PartTable(self._where)
        self._file = TemporaryFile(root, key)

    def part(self, number: int, start: int, data: Buffer, crc64: int) -> None:
        self._parts.expect(number, start)
        view = memoryview(data).cast("B")
        if crc_of(view) != crc64:
            raise StoreRefusedError(
                f"the checksum of part {number} does not fit its bytes",
                where=self._where,
                why="CRC-64/NVME differs",
                do="suspect the memory of this host",
            )
        self._file.write_at(view, start)
        self._parts.add(number, start, view.nbytes, crc64)

    def finish(self, crc64: int, size: int) -> Stored:
        try:
            self._parts.check(crc64, size)
            if self._file.size() != size:
                raise StoreRefusedError(
                    "the file is longer than its parts",
                    where=self._where,
                    why="a part was sent again at another place",
                    do="seal the file again",
                )
            return stored(self._key, self._file.publish(self._folders))
        finally:
            self._file.discard()

    def abort(self) -> None:
        self._file.discard()
