"""The header of a ``.sea`` object: 128 bytes that say what follows and which keys it needs.

Layout (big-endian, docs/spec/format-1.md section 3)::

    offset size  field
         0    8  magic "SEAWALL\\n"
         8    2  version, 1
        10    2  suite, 1 = AES-256-GCM, HKDF-SHA256, SHA-256 leaves, SHA3-256 nodes, Ed25519
        12    4  critical flags; a reader refuses a bit that it does not know
        16    4  chunk size: bytes of plaintext a record, a power of two from 2**10 to 2**26
        20   16  sealing id
        36    1  object kind
        37    3  zero
        40    8  object number
        48   16  signing key id
        64   32  salt, random for every sealing of every object
        96   32  key commitment
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

from seawall.errors import CorruptError

MAGIC = b"SEAWALL\n"
VERSION = 1
SUITE = 1
HEADER_BYTES = 128
UNCOMMITTED_BYTES = 96
"""The part of the header that the keys are derived from: all before the commitment."""
DERIVED_FLAG = 1 << 2
"""Records may hold derived runs, whose bytes come from other records. Bits 0 and 1 get no meaning: released vectors set them."""
KNOWN_FLAGS = DERIVED_FLAG
CHUNK_BYTES = 8 << 20
"""What writers use. Readers take any power of two between the bounds below."""
MIN_CHUNK_BYTES = 1 << 10
MAX_CHUNK_BYTES = 1 << 26

_LAYOUT = struct.Struct(">8sHHII16sB3sQ16s32s32s")
assert _LAYOUT.size == HEADER_BYTES


class UnsupportedFormatError(CorruptError):
    """The object was written by a newer seawall, or it was altered to say so; a reader cannot tell which.

    A :class:`CorruptError`, so that one flipped bit in a version number is found as damage and does not end a check of the whole copy.
    """


class ObjectKind(IntEnum):
    """What a sealed object holds."""

    PLAN = 1
    FILE = 2
    BATCH = 3
    INVENTORY = 4


@dataclass(frozen=True, slots=True)
class Header:
    """The fields of a header; sizes in bytes."""

    sealing: bytes
    kind: ObjectKind
    number: int
    signer: bytes
    salt: bytes
    commitment: bytes = bytes(32)
    chunk_bytes: int = CHUNK_BYTES
    flags: int = 0

    def pack(self) -> bytes:
        return _LAYOUT.pack(
            MAGIC,
            VERSION,
            SUITE,
            self.flags,
            self.chunk_bytes,
            self.sealing,
            self.kind,
            bytes(3),
            self.number,
            self.signer,
            self.salt,
            self.commitment,
        )

    @property
    def derivation_digest(self) -> bytes:
        """SHA-256 over the header without its commitment: what file key, footer key and commitment are bound to."""
        return sha256(self.pack()[:UNCOMMITTED_BYTES]).digest()


def object_name(kind: ObjectKind, number: int) -> str:
    """Where an object of this kind and number lies below its sealing's folder."""
    if kind in (ObjectKind.FILE, ObjectKind.BATCH):
        return f"{kind.name.lower()}-{number}.sea"
    return f"{kind.name.lower()}.sea"


def parse_header(raw: bytes, where: str) -> Header:
    """Check and read a header.

    Raises :class:`CorruptError` for bytes that are no header, :class:`UnsupportedFormatError` for a version, suite or
    flag that this reader does not know.
    """
    if len(raw) < HEADER_BYTES:
        raise CorruptError("the object ends inside its header", where=where, why=f"{len(raw)} of {HEADER_BYTES} bytes are there")
    magic, version, suite, flags, chunk_bytes, sealing, kind, zero, number, signer, salt, commitment = _LAYOUT.unpack(raw[:HEADER_BYTES])
    if magic != MAGIC:
        raise CorruptError("this is no sealed object", where=where, why="it does not begin with the magic bytes")
    if version != VERSION or suite != SUITE or flags & ~KNOWN_FLAGS:
        raise UnsupportedFormatError(
            "the object needs a reader that knows more",
            where=where,
            why=f"version {version}, suite {suite}, flags {flags:#x}; this reader knows version 1, suite 1, flags {KNOWN_FLAGS:#x}",
            do="read it with a newer seawall; if there is none, the header was altered and another copy is needed",
        )
    if chunk_bytes & (chunk_bytes - 1) or not MIN_CHUNK_BYTES <= chunk_bytes <= MAX_CHUNK_BYTES:
        raise CorruptError("the chunk size is impossible", where=where, why=f"{chunk_bytes} bytes")
    if kind not in list(ObjectKind) or zero != bytes(3):
        raise CorruptError("the header names no object kind that exists", where=where, why=f"kind {kind}")
    if number and kind not in (ObjectKind.FILE, ObjectKind.BATCH):
        # Their names have no number, so two headers would go by one name.
        raise CorruptError("the header numbers an object of which there is one only", where=where, why=f"kind {kind}, number {number}")
    return Header(sealing, ObjectKind(kind), number, signer, salt, commitment, chunk_bytes, flags)
