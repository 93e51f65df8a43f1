"""Tail and trailer of a ``.sea`` object: what lets any record be verified alone, and by whom it was signed.

Tail (docs/spec/format-1.md section 5)::

    8            number of records, at least 1
    36 a record  4 length of the stored record, 32 SHA-256 of it
    rest         footer, sealed: 8 plaintext length, 32 SHA-256 of the plaintext, 4 length of the name, name

Trailer, 80 bytes::

    8   CRC-64/NVME of everything before the trailer
    64  Ed25519 signature over the 136 bytes of `signed_statement`
    8   offset of the tail
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from seawall.errors import CorruptError
from seawall.vault import merkle
from seawall.vault.header import HEADER_BYTES
from seawall.vault.records import OVERHEAD_BYTES, TAG_BYTES

TRAILER_BYTES = 80
LEAF_BYTES = 36
MAX_NAME_BYTES = 1 << 16
MAX_RECORDS = 1 << 20
"""Bound on the records of an object, 8 TiB at the writers' chunk size. A reader loads the leaf table before it can check its
signature, so without a bound whoever can write to a store could have it load a whole object of any size as a table."""
_FOOTER = struct.Struct(">Q32sI")
_LEAF = struct.Struct(">I32s")
_TRAILER = struct.Struct(">Q64sQ")
_STATEMENT = struct.Struct(">16s32s32s32sQQQ")
_MAX_TAIL_BYTES = 8 + MAX_RECORDS * LEAF_BYTES + _FOOTER.size + MAX_NAME_BYTES + TAG_BYTES
MIN_OBJECT_BYTES = HEADER_BYTES + OVERHEAD_BYTES + 8 + LEAF_BYTES + _FOOTER.size + TAG_BYTES + TRAILER_BYTES


@dataclass(frozen=True, slots=True)
class Leaf:
    """One record as it is stored: its length in bytes and the SHA-256 of those bytes."""

    length: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Footer:
    """The private facts of an object: its file's name (POSIX bytes), length and SHA-256 of the plaintext."""

    name: bytes
    length: int
    digest: bytes

    def pack(self) -> bytes:
        return _FOOTER.pack(self.length, self.digest, len(self.name)) + self.name


@dataclass(frozen=True, slots=True)
class Trailer:
    """The last 80 bytes."""

    crc64: int
    signature: bytes
    tail_offset: int

    def pack(self) -> bytes:
        return _TRAILER.pack(self.crc64, self.signature, self.tail_offset)


def leaf_root(leaves: Sequence[Leaf]) -> bytes:
    """The Merkle root of an object: its entries are the SHA-256 digests of the stored records."""
    return merkle.root([leaf.digest for leaf in leaves])


def pack_leaves(leaves: Sequence[Leaf]) -> bytes:
    """The public part of the tail."""
    return len(leaves).to_bytes(8, "big") + b"".join(_LEAF.pack(leaf.length, leaf.digest) for leaf in leaves)


def signed_statement(header: bytes, root: bytes, tail: bytes, crc64: int, length: int, tail_offset: int) -> bytes:
    """What the signature of an object covers; every field has a fixed width, so nothing can be read two ways."""
    return _STATEMENT.pack(b"seawall/1/object", sha256(header).digest(), root, sha256(tail).digest(), crc64, length, tail_offset)


def parse_trailer(raw: bytes, length: int, where: str) -> Trailer:
    """Read the trailer of an object of ``length`` bytes; :class:`CorruptError` when its tail cannot lie where it says."""
    if length < MIN_OBJECT_BYTES or len(raw) != TRAILER_BYTES:
        raise CorruptError("the object is too short to be whole", where=where, why=f"{length} bytes")
    crc64, signature, tail_offset = _TRAILER.unpack(raw)
    tail_bytes = length - TRAILER_BYTES - tail_offset
    if tail_bytes > _MAX_TAIL_BYTES:
        raise CorruptError("the object is cut, or its trailer is damaged", where=where, why=f"its tail would have {tail_bytes} bytes")
    if tail_offset < HEADER_BYTES + OVERHEAD_BYTES or tail_bytes < 8 + LEAF_BYTES + _FOOTER.size + TAG_BYTES:
        raise CorruptError("the object is cut, or its trailer is damaged", where=where, why="the trailer points outside the object")
    return Trailer(crc64, signature, tail_offset)


def parse_tail(tail: bytes, tail_offset: int, where: str) -> tuple[list[Leaf], bytes]:
    """Leaves and sealed footer. Everything is bounded by the bytes that are there before it is allocated."""
    count = int.from_bytes(tail[:8], "big")
    end = 8 + count * LEAF_BYTES
    footer_bytes = len(tail) - end - TAG_BYTES
    if not 1 <= count <= MAX_RECORDS or not _FOOTER.size <= footer_bytes <= _FOOTER.size + MAX_NAME_BYTES:
        raise CorruptError("the leaf table is damaged", where=where, why=f"it claims {count} records in {len(tail)} bytes")
    leaves = [Leaf(length, digest) for length, digest in _LEAF.iter_unpack(tail[8:end])]
    if HEADER_BYTES + sum(leaf.length for leaf in leaves) != tail_offset:
        raise CorruptError("the leaf table is damaged", where=where, why="its records do not fill the space before it")
    return leaves, tail[end:]


def parse_footer(raw: bytes, where: str) -> Footer:
    """Read a decrypted footer."""
    if len(raw) < _FOOTER.size:
        raise CorruptError("the footer is too short", where=where)
    length, digest, name_bytes = _FOOTER.unpack(raw[: _FOOTER.size])
    name = raw[_FOOTER.size :]
    if len(name) != name_bytes:
        raise CorruptError("the footer's name has another length than it says", where=where)
    return Footer(name, length, digest)
