"""What to do with an object that is in a store already: adopt it when it is the one wanted, or say why not.

An object is adopted when its signature is valid under an admitted writer, the store's checksum of it (or its bytes, read
back) agree with the frame, its footer matches the source, and its commitment is the data key's.
"""

from dataclasses import dataclass

from seawall.errors import CorruptError
from seawall.protect.place import Place
from seawall.stores.base import Stored
from seawall.vault.header import ObjectKind
from seawall.vault.objects import Row, row_of_frame
from seawall.vault.open import Opener, Resolve, read_frame, scrub


@dataclass(frozen=True, slots=True)
class Existing:
    """An object as it was found: verified from outside, opened with the data key."""

    row: Row
    stored: Stored
    opener: Opener


def examine(place: Place, key: str, name: str, stored: Stored, data_key: bytes, sealing: bytes, resolve: Resolve) -> Existing:
    """Verify an object that lies at ``key``. Raises what :func:`seawall.vault.open.read_frame` raises, or :class:`CorruptError`."""
    where = f"{place.store.url}/{key}"
    frame = read_frame(lambda start, length: place.store.get(key, start, length), stored.size, resolve, where)
    if frame.header.sealing != sealing or (frame.header.kind == ObjectKind.FILE and f"file-{frame.header.number}.sea" != name):
        raise CorruptError("an object lies under another object's name", where=where)
    row = row_of_frame(frame, name)
    if stored.crc64 is None:
        damaged = scrub(frame, lambda start, length: memoryview(place.store.get(key, start, length)))
        if damaged:
            raise CorruptError("an object that is there already is damaged", where=where, why=f"records {damaged[:8]}")
    elif stored.crc64 != row.crc64:
        raise CorruptError(
            "an object that is there already is damaged", where=where, why="the store's checksum of it is not the signed one"
        )
    return Existing(row, stored, Opener(frame, data_key))
