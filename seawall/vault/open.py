"""Opening: verify an object's frame with public keys, then read, scrub or decrypt any of its records.

Three ranged reads (header, tail, trailer) give a :class:`Frame`, whose signature covers the digest of every record.
With a frame any record is checked alone; with the data key it is opened alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from seawall.errors import CorruptError, KeyMissingError, TrustError, UsageError
from seawall.kernels.crc64 import crc64
from seawall.vault import codecs
from seawall.vault.header import DERIVED_FLAG, HEADER_BYTES, Header, parse_header
from seawall.vault.records import OVERHEAD_BYTES, TAG_BYTES, RecordCipher, derive
from seawall.vault.signing import PublicKey
from seawall.vault.tail import (
    TRAILER_BYTES,
    Footer,
    Leaf,
    Trailer,
    leaf_root,
    pack_leaves,
    parse_footer,
    parse_tail,
    parse_trailer,
    signed_statement,
)

if TYPE_CHECKING:
    from seawall.vault.planes import Earlier, Unpacked

Resolve = Callable[[str], PublicKey | None]
"""From a key id (hex) to the public key of a writer that counts here, or None."""
ReadInto = Callable[[int, memoryview], int]
"""Fills a buffer with an object's stored bytes from an offset; the number of bytes that were there."""

TAIL_GUESS_BYTES = 64 << 10
"""Read from the end at first: holds the tail of an object of up to 14 GiB, so that most frames cost two reads."""


class DamagedRecordError(CorruptError):
    """Records of an object are not the ones that were signed. ``records`` are their numbers, from 0."""

    def __init__(self, where: str, records: tuple[int, ...], why: str) -> None:
        numbers = ", ".join(str(record) for record in records[:8]) + (", …" if len(records) > 8 else "")
        super().__init__(
            f"{'records' if len(records) > 1 else 'record'} {numbers} of an object {'are' if len(records) > 1 else 'is'} damaged",
            where=where,
            why=why,
            do="restore from another copy; the other records of this one can still be used",
        )
        self.records = records


@dataclass(frozen=True, slots=True)
class Frame:
    """The verified outside of one object: everything but the bytes of its records."""

    where: str
    length: int
    header: Header
    leaves: tuple[Leaf, ...]
    offsets: tuple[int, ...]
    """Where each record begins."""
    root: bytes
    crc64: int
    """CRC-64/NVME of all before the trailer."""
    trailer: bytes
    sealed_footer: bytes

    @property
    def trailer_digest(self) -> bytes:
        return sha256(self.trailer).digest()

    @property
    def tail(self) -> bytes:
        """As it is stored."""
        return pack_leaves(self.leaves) + self.sealed_footer

    @property
    def after_records(self) -> bytes:
        """Tail and trailer, as they are stored."""
        return self.tail + self.trailer

    @property
    def tail_offset(self) -> int:
        """Where the records end."""
        return self.offsets[-1] + self.leaves[-1].length

    def check_crc(self, before_tail: int, tail: bytes | memoryview) -> None:
        """Raises :class:`CorruptError` unless the CRC up to the tail, and then the tail, make the one that was signed."""
        if crc64(tail, before_tail) != self.crc64:
            raise CorruptError("the CRC over the whole object disagrees", where=self.where, why="header or tail changed between two reads")

    def check_record(self, number: int, record: bytes | memoryview) -> bool:
        """Whether these are the bytes of record ``number`` that were signed."""
        leaf = self.leaves[number]
        return len(record) == leaf.length and sha256(record).digest() == leaf.digest


def read_frame(read: Callable[[int, int], bytes], length: int, resolve: Resolve | None, where: str) -> Frame:
    """Read and verify the frame of an object of ``length`` bytes; ``read(start, length)`` gives its bytes.

    Without ``resolve`` the signature is not checked: only for who has nothing to compare it with, and says so.
    Raises :class:`CorruptError` (cut or damaged), :class:`UnsupportedFormatError`, or :class:`TrustError` (the key that
    signed it is none that counts here).
    """
    guess_start = max(0, length - TAIL_GUESS_BYTES)
    end = read(guess_start, length - guess_start)
    if len(end) != length - guess_start:
        raise CorruptError("the object is shorter than it should be", where=where, why=f"it ends before byte {length}")
    raw_header = end[:HEADER_BYTES] if guess_start == 0 else read(0, HEADER_BYTES)
    header = parse_header(raw_header, where)
    trailer = parse_trailer(end[-TRAILER_BYTES:], length, where)
    if trailer.tail_offset >= guess_start:
        tail = end[trailer.tail_offset - guess_start : -TRAILER_BYTES]
    else:
        tail = read(trailer.tail_offset, guess_start - trailer.tail_offset) + end[:-TRAILER_BYTES]
    leaves, sealed_footer = parse_tail(tail, trailer.tail_offset, where)
    if any(not OVERHEAD_BYTES <= leaf.length <= OVERHEAD_BYTES + header.chunk_bytes for leaf in leaves):
        # A writer stores a chunk that does not shrink as it is; a longer record would only make readers allocate for it.
        raise CorruptError("the leaf table is damaged", where=where, why="a record is shorter or longer than any chunk gives")
    root = leaf_root(leaves)
    if resolve is not None:
        _check_signature(raw_header[:HEADER_BYTES], header, trailer, tail, root, length, resolve, where)
    offsets, at = [], HEADER_BYTES
    for leaf in leaves:
        offsets.append(at)
        at += leaf.length
    return Frame(where, length, header, tuple(leaves), tuple(offsets), root, trailer.crc64, end[-TRAILER_BYTES:], sealed_footer)


def _check_signature(
    raw_header: bytes, header: Header, trailer: Trailer, tail: bytes, root: bytes, length: int, resolve: Resolve, where: str
) -> None:
    signer = header.signer.hex()
    key = resolve(signer)
    if key is None:
        raise TrustError(
            "the object is not signed by a writer that counts here",
            where=where,
            why=f"key {signer} is not a listed, unrevoked writer of this run's epoch",
            do="compare the trust list; if the key never was one of yours, somebody else wrote this object",
        )
    statement = signed_statement(raw_header, root, tail, trailer.crc64, length, trailer.tail_offset)
    if not key.verify(trailer.signature, statement):
        raise CorruptError(
            "the object's header, tail or trailer is damaged or forged",
            where=where,
            why=f"the signature of key {signer} does not cover what is there",
            do="use another copy",
        )


def scrub(frame: Frame, read: Callable[[int, int], memoryview]) -> list[int]:
    """Read every stored byte of the records back and return the numbers of those that are damaged. Needs no secret key.

    ``read(start, length)`` lends the bytes there until it is called again. The frame itself was read and verified; the CRC over the
    whole is checked too, so that header and tail are what they were.
    """
    damaged = []
    crc = crc64(frame.header.pack())
    for number, leaf in enumerate(frame.leaves):
        record = read(frame.offsets[number], leaf.length)
        crc = crc64(record, crc)
        if not frame.check_record(number, record):
            damaged.append(number)
    if damaged:
        return damaged
    frame.check_crc(crc, read(frame.tail_offset, frame.length - TRAILER_BYTES - frame.tail_offset))
    return damaged


class Opener:
    """A frame and its data key: opens records."""

    def __init__(self, frame: Frame, data_key: bytes) -> None:
        """Raises :class:`KeyMissingError` when the key is not this object's, which is told apart from damage by the commitment."""
        keys = derive(data_key, frame.header)
        if keys.commitment != frame.header.commitment:
            raise KeyMissingError("the data key does not open this object", where=frame.where, why="its commitment is another key's")
        self.frame = frame
        self._cipher = RecordCipher(keys)
        raw = self._cipher.open_footer(frame.sealed_footer)
        if raw is None:
            raise CorruptError("the footer does not decrypt", where=frame.where)
        self.footer: Footer = parse_footer(raw, frame.where)
        chunk = frame.header.chunk_bytes
        if len(frame.leaves) != max(1, -(-self.footer.length // chunk)):
            raise CorruptError("the number of records does not fit the length", where=frame.where)

    def open_record(self, number: int, record: memoryview, out: memoryview, earlier: "Earlier") -> memoryview | bytes:
        """The plaintext of record ``number``; ``out`` is scratch of at least the record's length.

        ``earlier`` is asked for plaintext before the record where bytes of it are derived from there (:class:`EarlierRecords`).

        Authenticity within the object is AES-GCM's. Whoever holds the data key could still forge a record, so a
        reader of one range also calls :meth:`Frame.check_record`, and a reader of the whole compares the footer's digest, which is signed.
        """
        return self._unpacked(number, record, out, earlier).chunk

    def open_hollow(self, number: int, record: memoryview, out: memoryview) -> "Unpacked":
        """The same without what is derived: those parts are zeros, and named."""
        return self._unpacked(number, record, out, None)

    def _unpacked(self, number: int, record: memoryview, out: memoryview, earlier: "Earlier | None") -> "Unpacked":
        # Here, because who only verifies from outside opens nothing.
        from seawall.vault.planes import Unpacked, unpack_planes

        last = number == len(self.frame.leaves) - 1
        packed = self._cipher.open_into(number, last, record, out) if len(record) == self.frame.leaves[number].length else None
        if packed is None:
            raise DamagedRecordError(self.frame.where, (number,), "its authentication tag disagrees")
        expected = self.plaintext_bytes(number)
        try:
            if packed[0] == codecs.Packing.PLANES:
                at, may_derive = number * self.frame.header.chunk_bytes, bool(self.frame.header.flags & DERIVED_FLAG)
                return unpack_planes(packed[1:], expected, at, may_derive, earlier)
            chunk = codecs.unpack(packed[0], packed[1:], expected)
        except CorruptError as error:
            # One of another record, that this one is derived from, has said where.
            error.where = error.where or f"{self.frame.where} record {number}"
            raise
        if len(chunk) != expected:
            raise CorruptError("a record holds another length than its place asks for", where=f"{self.frame.where} record {number}")
        return Unpacked(memoryview(chunk))

    def plaintext_bytes(self, number: int) -> int:
        """How many bytes of plaintext record ``number`` holds: a whole chunk, except the last."""
        chunk = self.frame.header.chunk_bytes
        return min(chunk, self.footer.length - number * chunk)

    def records_of(self, start: int, length: int) -> range:
        """The records that hold bytes ``start`` to ``start + length`` of the plaintext; none beyond its end."""
        if start < 0 or length < 0:
            raise UsageError("a range begins at or after 0 and has a length", where=self.frame.where, why=f"start {start}, length {length}")
        end = min(start + length, self.footer.length)
        chunk = self.frame.header.chunk_bytes
        return range(start // chunk, -(-end // chunk)) if start < end else range(0)

    def read_range(self, start: int, length: int, read_into: ReadInto) -> Iterator[bytes]:
        """A range of the plaintext, record by record, each verified against the signed leaf before it is opened."""
        return self.read_records(self.records_of(start, length), start, length, read_into)

    def read_records(self, numbers: Sequence[int], start: int, length: int, read_into: ReadInto) -> Iterator[bytes]:
        """What these records hold of a range, each verified as above."""
        earlier = EarlierRecords(self, read_into)
        for number in numbers:
            record, out = self.read_checked(number, read_into)
            chunk = self.open_record(number, record, out, earlier)
            first = number * self.frame.header.chunk_bytes
            yield bytes(chunk[max(0, start - first) : start + length - first])

    def read_checked(self, number: int, read_into: ReadInto) -> tuple[memoryview, memoryview]:
        """The stored bytes of a record, verified against its signed leaf, and scratch to open it with."""
        leaf = self.frame.leaves[number]
        record = memoryview(bytearray(leaf.length))
        count = read_into(self.frame.offsets[number], record)
        if count != leaf.length or not self.frame.check_record(number, record):
            raise DamagedRecordError(self.frame.where, (number,), "its bytes are not those that were signed")
        return record, memoryview(bytearray(max(leaf.length - TAG_BYTES, 1)))


class EarlierRecords:
    """Reads again what derived bytes come from; see :data:`Earlier`. Keeps the record that it read last."""

    def __init__(self, opener: Opener, read_into: ReadInto) -> None:
        self._opener = opener
        self._read_into = read_into
        self._last: tuple[int, Unpacked] | None = None

    def __call__(self, start: int, length: int) -> bytes:
        """Raises :class:`DamagedRecordError` for a damaged record, :class:`CorruptError` for bytes that are derived themselves."""
        found = []
        for number in self._opener.records_of(start, length):
            if self._last is None or number != self._last[0]:
                self._last = (number, self._opener.open_hollow(number, *self._opener.read_checked(number, self._read_into)))
            unpacked = self._last[1]
            first = number * self._opener.frame.header.chunk_bytes
            begin, end = max(0, start - first), min(start + length - first, len(unpacked.chunk))
            if any(max(part.start, begin) < min(part.stop, end) for part in unpacked.hollow):
                raise CorruptError(
                    "bytes are derived from bytes that are derived themselves", where=f"{self._opener.frame.where} record {number}"
                )
            found.append(unpacked.chunk[begin:end])
        return b"".join(found)


MAX_DOCUMENT_BYTES = 4 << 30
"""Largest plaintext that is opened in memory as a whole. zstd could make it of an object a ten-thousandth of that size."""


def open_bytes(raw: bytes, data_key: bytes, resolve: Resolve, where: str) -> tuple[bytes, Opener]:
    """The plaintext of an object that is in memory, verified in full; :class:`CorruptError` above :data:`MAX_DOCUMENT_BYTES`."""

    def read_into(start: int, buffer: memoryview) -> int:
        piece = raw[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)

    frame = read_frame(lambda start, length: raw[start : start + length], len(raw), resolve, where)
    opener = Opener(frame, data_key)
    if opener.footer.length > MAX_DOCUMENT_BYTES:
        raise CorruptError("a document is larger than its bound", where=where, why=f"{opener.footer.length} bytes")
    # An empty plaintext has a record, too, which no range of it touches.
    plaintext = b"".join(opener.read_records(range(len(frame.leaves)), 0, opener.footer.length, read_into))
    if sha256(plaintext).digest() != opener.footer.digest:
        raise CorruptError("the plaintext is not the one that was sealed", where=where)
    return plaintext, opener
