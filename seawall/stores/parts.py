"""Which parts of an upload have arrived, and whether they make the announced object."""

import threading
from collections.abc import Iterator

from seawall.errors import StoreRefusedError, UsageError
from seawall.kernels.crc64 import combine


class PartTable:
    """Start, length, CRC-64/NVME and the store's own mark of each part. A part that is sent again takes the place of the first."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._parts: dict[int, tuple[int, int, int, str]] = {}
        self._lock = threading.Lock()

    def expect(self, number: int, start: int) -> None:
        """Refuse with ``UsageError`` what cannot be a part."""
        if number < 1 or start < 0:
            raise UsageError("parts count from 1 and begin inside the object", where=self._where)

    def add(self, number: int, start: int, nbytes: int, crc64: int, mark: str = "") -> None:
        """Record a part that the store has."""
        with self._lock:
            self._parts[number] = (start, nbytes, crc64, mark)

    def __len__(self) -> int:
        return len(self._parts)

    def marks(self) -> Iterator[tuple[int, str]]:
        """Part numbers in order with the store's mark of each."""
        for number, (_, _, _, mark) in sorted(self._parts.items()):
            yield number, mark

    def check(self, crc64: int, size: int) -> None:
        """Refuse with ``StoreRefusedError`` a gap, an overlap, another length or another checksum than announced."""
        crc = 0
        length = 0
        for expected, (number, (start, nbytes, part_crc, _)) in enumerate(sorted(self._parts.items()), 1):
            if number != expected or start != length:
                raise StoreRefusedError(
                    f"part {expected} is missing, or does not follow the one before", where=self._where, do="send it again"
                )
            crc = combine(crc, part_crc, nbytes)
            length += nbytes
        if (crc, length) != (crc64, size):
            raise StoreRefusedError(
                "the parts do not make the object that was announced",
                where=self._where,
                why=f"{length} bytes with CRC-64/NVME {crc:016x}, announced {size} bytes with {crc64:016x}",
                do="seal the file again",
            )
