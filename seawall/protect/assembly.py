"""One stored object, whole and verified, from the copies that can be read: each of its records from the first copy that has it right.

No key is needed. The signed frame names the digest of every record, and header, tail and trailer are written from the frame itself, so
what is assembled is the object that was signed, whatever the copies hold.
"""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from seawall.errors import CorruptError, NoSuchObjectError, StoreError, TrustError
from seawall.kernels.crc64 import crc64
from seawall.protect.place import Place
from seawall.vault.header import HEADER_BYTES
from seawall.vault.objects import Row, row_of_frame
from seawall.vault.open import DamagedRecordError, Frame, read_frame, scrub
from seawall.vault.sealing import Sealing
from seawall.vault.tail import TRAILER_BYTES, parse_trailer


class Sources:
    """The copies that are read from, in the order in which they are asked. Thread-safe.

    One that does not answer is not asked again. ``problems`` says why, and what others refused: while it is not empty, a record that was
    found nowhere may still exist.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = tuple(places)
        self.problems: dict[str, StoreError] = {}
        self.bytes_read: dict[str, int] = {}
        self._silent: set[str] = set()
        self._lock = threading.Lock()

    def read_into(self, place: Place, key: str, start: int, view: memoryview) -> bool:
        """Whether the place gave all these bytes. They may be wrong ones."""
        if place.name in self._silent:
            return False
        try:
            count = place.store.read_into(key, start, view)
        except NoSuchObjectError:
            return False
        except StoreError as error:
            self.failed(place, error)
            return False
        with self._lock:
            self.bytes_read[place.name] = self.bytes_read.get(place.name, 0) + count
        return count == len(view)

    def read(self, place: Place, key: str, start: int, length: int) -> bytes | None:
        """The bytes, or None where the place does not have or does not give all of them."""
        buffer = bytearray(length)
        return bytes(buffer) if self.read_into(place, key, start, memoryview(buffer)) else None

    def failed(self, place: Place, error: StoreError) -> None:
        """Remember why a place could not be read."""
        with self._lock:
            self.problems.setdefault(place.name, error)
            if error.outcome != "permanent":
                self._silent.add(place.name)

    def without(self, place: Place) -> "Sources":
        """The others, with the same memory of who answers."""
        others = Sources([other for other in self.places if other is not place])
        others.problems, others.bytes_read, others._silent, others._lock = self.problems, self.bytes_read, self._silent, self._lock
        return others

    def asked(self, places: Iterable[Place]) -> list[Place]:
        """Those of the places that are worth asking."""
        return [place for place in places if place.name not in self._silent]


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring blocks of an object that are written together."""

    start: int
    """Where they begin in the object."""
    blocks: tuple[int, ...]
    nbytes: int


class Assembly:
    """The blocks of one object: block 0 is the header, block *n* is record *n* − 1, the last is tail and trailer."""

    def __init__(
        self,
        frame: Frame,
        key: str,
        sources: Sources,
        *,
        known: Mapping[int, bytes] | None = None,
        skip: Mapping[str, Collection[int]] | None = None,
    ) -> None:
        """``known`` are right records that were read already; ``skip`` says of a place which records it is not asked for."""
        self.frame = frame
        self._key = key
        self._sources = sources
        self._known = known or {}
        self._skip = skip or {}
        self._ends = frame.after_records
        self.origins: dict[int, str] = {}
        """Record → place that it came from, as far as they were written."""

    def groups(self, at_least: int) -> list[Group]:
        """All blocks in order, in groups of ``at_least`` bytes, of which only the last may be smaller."""
        lengths = [HEADER_BYTES, *(leaf.length for leaf in self.frame.leaves), len(self._ends)]
        groups: list[Group] = []
        start, first, nbytes = 0, 0, 0
        for block, length in enumerate(lengths):
            nbytes += length
            if nbytes >= at_least or block == len(lengths) - 1:
                groups.append(Group(start, tuple(range(first, block + 1)), nbytes))
                start, first, nbytes = start + nbytes, block + 1, 0
        return groups

    def write(self, group: Group, view: memoryview) -> None:
        """Fill ``view`` with the group's bytes.

        Raises :class:`DamagedRecordError` for a record that no copy has right, or the :class:`StoreError` of a copy that did not answer
        and may have it.
        """
        at = 0
        for block in group.blocks:
            if block == 0:
                raw = self.frame.header.pack()
            elif block <= len(self.frame.leaves):
                length = self.frame.leaves[block - 1].length
                self._record(block - 1, view[at : at + length])
                at += length
                continue
            else:
                raw = self._ends
            view[at : at + len(raw)] = raw
            at += len(raw)

    def _record(self, number: int, view: memoryview) -> None:
        known = self._known.get(number)
        if known is not None:
            view[:] = known
            return
        for place in self._sources.asked(self._sources.places):
            if number in self._skip.get(place.name, ()):
                continue
            if self._sources.read_into(place, self._key, self.frame.offsets[number], view) and self.frame.check_record(number, view):
                self.origins[number] = place.name
                return
        for error in self._sources.problems.values():
            raise error
        raise DamagedRecordError(self.frame.where, (number,), "no copy that was read has the bytes that were signed")


def check_assembled(sealing: Sealing, row: Row, view: memoryview, where: str) -> None:
    """Verify a whole object in memory as a stranger's: signature, table, every leaf digest, and the CRC-64 of the whole.

    Raises :class:`CorruptError` or :class:`TrustError`. What was assembled passes, unless this host's memory failed in between.
    """
    frame = read_frame(lambda start, length: bytes(view[start : start + length]), row.length, sealing.writers, where)
    if len(view) != row.length or row_of_frame(frame, row.name) != row or crc64(view) != row.crc64:
        raise CorruptError("an assembled object is not the one that was committed", where=where, do="suspect the memory of this host")
    damaged = scrub(frame, lambda start, length: view[start : start + length])
    if damaged:
        raise DamagedRecordError(where, tuple(damaged), "the assembled bytes are not those that were signed")


@dataclass(frozen=True)
class FoundFrame:
    """The frame of an object, and the places that its parts came from."""

    frame: Frame
    places: tuple[str, ...]


def find_frame(sources: Sources, sealing: Sealing, row: Row) -> FoundFrame | None:
    """The frame of an object from the first copy whose frame is whole, else from parts of several; None where that gives none.

    A part is the header, the tail or the trailer. Only the right ones make a frame whose signature holds and whose trailer is the
    committed one.
    """
    for place in sources.asked(sources.places):
        try:
            return FoundFrame(replace(sealing, store=place.store).frame_of(row), (place.name,))
        except NoSuchObjectError:
            continue
        except StoreError as error:
            sources.failed(place, error)
        except (CorruptError, TrustError):
            continue
    return _mixed_frame(sources, sealing, row)


def _mixed_frame(sources: Sources, sealing: Sealing, row: Row) -> FoundFrame | None:
    end = row.length - TRAILER_BYTES
    if end <= 0:
        return None

    def parts(start: int, length: int) -> dict[bytes, str]:
        """What the places have there, each content once."""
        read = [(sources.read(place, sealing.key_of(row), start, length), place.name) for place in sources.asked(sources.places)]
        return {raw: name for raw, name in reversed(read) if raw is not None}

    trailers = [(raw, name) for raw, name in parts(end, TRAILER_BYTES).items() if sha256(raw).digest() == row.trailer_digest]
    if not trailers:
        return None
    trailer, of_trailer = trailers[0]
    offset = parse_trailer(trailer, row.length, row.name).tail_offset
    tails = parts(offset, end - offset)
    for header, of_header in parts(0, HEADER_BYTES).items():
        for tail, of_tail in tails.items():
            read = partial(_spliced, {0: header, offset: tail, end: trailer})
            try:
                frame = read_frame(read, row.length, sealing.writers, row.name)
            except (CorruptError, TrustError):
                continue
            if row_of_frame(frame, row.name) == row:
                return FoundFrame(frame, tuple(dict.fromkeys((of_header, of_tail, of_trailer))))
    return None


def _spliced(pieces: Mapping[int, bytes], start: int, length: int) -> bytes:
    """A read of an object of which only some pieces are known; the rest is zeros, which reading a frame never looks at."""
    buffer = bytearray(length)
    for at, piece in pieces.items():
        begin, end = max(start, at), min(start + length, at + len(piece))
        if begin < end:
            buffer[begin - start : end - start] = piece[begin - at : end - at]
    return bytes(buffer)
