"""Sealing: one pass over a file's plaintext gives the parts of its ``.sea`` object, ready to be sent.

Memory is bounded by what the caller lends: one plaintext chunk, and the part buffers that are in flight.
A salt lives only as long as its :class:`Sealer`; after a failure the file is sealed again under a new one, so one key and
nonce never meet two plaintexts.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from seawall.errors import SourceChangedError, UsageError
from seawall.kernels.crc64 import combine, crc64
from seawall.stores.part_buffers import fresh_buffer
from seawall.vault.codecs import Codec, Packing
from seawall.vault.derived import DerivedProof, Pair
from seawall.vault.element_runs import ElementRuns
from seawall.vault.header import CHUNK_BYTES, DERIVED_FLAG, HEADER_BYTES, Header, ObjectKind, object_name
from seawall.vault.planes import PlanePacker
from seawall.vault.records import OVERHEAD_BYTES, RecordCipher, derive
from seawall.vault.signing import SigningKey
from seawall.vault.tail import MAX_NAME_BYTES, MAX_RECORDS, TRAILER_BYTES, Footer, Leaf, Trailer, leaf_root, pack_leaves, signed_statement
from seawall.vault.zstd_frames import pack_frame

PART_BYTES = 8 << 20
"""Smallest part of a larger object. Parts hold whole records."""
MAX_PARTS = 9000
"""S3 allows 10,000 parts; the part size grows with the object so that there are fewer."""
_CHUNK_AT = 64
"""Where the chunk begins in its buffer, the packing byte before it: elements are read at their own alignment, a cache line's."""


@dataclass(frozen=True, slots=True)
class Part:
    """A run of an object's bytes. ``data`` is lent until the part was sent."""

    number: int
    start: int
    data: memoryview
    crc64: int
    last: bool


@dataclass(frozen=True, slots=True)
class SealedObject:
    """The public facts of a sealed object, one row of the objects table, and the private digest of its plaintext."""

    name: str
    length: int
    trailer_digest: bytes
    crc64: int
    root: bytes
    plaintext_bytes: int
    plaintext_digest: bytes


def part_bytes_for(plaintext_bytes: int) -> int:
    """Size from which a part is sent, so that no object needs more than about :data:`MAX_PARTS` parts."""
    return max(PART_BYTES, plaintext_bytes // MAX_PARTS)


class Sealer:
    """Seals one object. Use :meth:`parts` once, then :attr:`sealed`."""

    def __init__(
        self,
        *,
        sealing: bytes,
        kind: ObjectKind,
        number: int,
        name: bytes,
        plaintext_bytes: int,
        data_key: bytes,
        signing_key: SigningKey,
        codec: Codec = Codec.NONE,
        chunk_bytes: int = CHUNK_BYTES,
        runs: ElementRuns | None = None,
        pairs: Sequence[Pair] = (),
    ) -> None:
        """``runs`` says where tensors lie, ``pairs`` which of them may be derived; both are for codecs of byte planes."""
        if len(name) > MAX_NAME_BYTES or plaintext_bytes > MAX_RECORDS * chunk_bytes:
            raise UsageError(
                "a file is too large, or its name too long, for one sealed object",
                where=os.fsdecode(name)[:200],
                why=f"{plaintext_bytes} bytes in records of {chunk_bytes}, at most {MAX_RECORDS} records",
            )
        derives = codec.derives and bool(pairs)
        flags = DERIVED_FLAG if derives else 0
        bare = Header(sealing, kind, number, bytes.fromhex(signing_key.key_id), os.urandom(32), chunk_bytes=chunk_bytes, flags=flags)
        keys = derive(data_key, bare)
        self._header = replace(bare, commitment=keys.commitment).pack()
        self._cipher = RecordCipher(keys)
        self._chunk_bytes = chunk_bytes
        self._codec = codec
        proof = DerivedProof(pairs, chunk_bytes) if derives else None
        self._planes = PlanePacker(runs or ElementRuns(), codec, proof) if codec.has_planes else None
        self._name = name
        self._plaintext_bytes = plaintext_bytes
        self._signing_key = signing_key
        self.object_name = object_name(kind, number)
        self.sealed: SealedObject | None = None

    def part_capacity(self, part_bytes: int) -> int:
        """Bytes that a buffer must have to hold any part of this object."""
        chunk = min(self._chunk_bytes, self._plaintext_bytes)
        records = max(1, -(-self._plaintext_bytes // self._chunk_bytes))
        tail = 8 + 36 * records + 60 + len(self._name) + TRAILER_BYTES
        whole = HEADER_BYTES + self._plaintext_bytes + records * OVERHEAD_BYTES + tail
        return min(whole, HEADER_BYTES + part_bytes + chunk + OVERHEAD_BYTES + tail)

    def parts(
        self,
        read_into: Callable[[memoryview], int],
        take: Callable[[int], memoryview],
        part_bytes: int = PART_BYTES,
        observe: Callable[[int, memoryview], None] | None = None,
    ) -> Iterator[Part]:
        """Seal the plaintext that ``read_into`` fills buffers with.

        ``take`` lends a buffer of at least the asked size for each part. ``observe`` sees each plaintext chunk with its
        offset while it is in the cache. Raises :class:`SourceChangedError` when the plaintext is shorter or longer than it was said to be.
        """
        size, chunk_bytes = self._plaintext_bytes, self._chunk_bytes
        scratch = fresh_buffer(_CHUNK_AT + min(size, chunk_bytes))
        plaintext_digest = sha256()
        leaves: list[Leaf] = []
        capacity = self.part_capacity(part_bytes)
        buffer = take(capacity)
        buffer[:HEADER_BYTES] = self._header
        used, start, number, total_crc = HEADER_BYTES, 0, 1, 0
        at = 0
        while True:
            length = min(chunk_bytes, size - at)
            chunk = scratch[_CHUNK_AT : _CHUNK_AT + length]
            _fill(read_into, chunk, at, self._name)
            plaintext_digest.update(chunk)
            if observe is not None:
                observe(at, chunk)
            last = at + length == size
            record_bytes = self._cipher.seal_into(len(leaves), last, self._pack(at, scratch, length), buffer[used:])
            leaves.append(Leaf(record_bytes, sha256(buffer[used : used + record_bytes]).digest()))
            used += record_bytes
            at += length
            if last:
                break
            if used >= part_bytes:
                part_crc = crc64(buffer[:used])
                total_crc = combine(total_crc, part_crc, used)
                yield Part(number, start, buffer[:used], part_crc, False)
                start, number, used = start + used, number + 1, 0
                buffer = take(capacity)
        if read_into(memoryview(bytearray(1))):
            raise SourceChangedError("a file grew while it was read", where=os.fsdecode(self._name), do="sync again when the save is over")
        tail_offset = start + used
        footer = self._cipher.seal_footer(Footer(self._name, size, plaintext_digest.digest()).pack())
        tail = pack_leaves(leaves) + footer
        buffer[used : used + len(tail)] = tail
        used += len(tail)
        length = start + used + TRAILER_BYTES
        body_crc = crc64(buffer[:used])
        signed_crc = combine(total_crc, body_crc, used)
        root = leaf_root(leaves)
        statement = signed_statement(self._header, root, tail, signed_crc, length, tail_offset)
        trailer = Trailer(signed_crc, self._signing_key.sign(statement), tail_offset).pack()
        buffer[used : used + TRAILER_BYTES] = trailer
        part_crc = crc64(trailer, body_crc)
        self.sealed = SealedObject(
            self.object_name,
            length,
            sha256(trailer).digest(),
            combine(total_crc, part_crc, used + TRAILER_BYTES),
            root,
            size,
            plaintext_digest.digest(),
        )
        yield Part(number, start, buffer[: used + TRAILER_BYTES], part_crc, True)

    def _pack(self, at: int, scratch: memoryview, length: int) -> memoryview | bytes:
        """Packing byte and packed chunk; a chunk that does not shrink is stored as it is."""
        chunk = scratch[_CHUNK_AT : _CHUNK_AT + length]
        if self._planes is not None:
            planes = self._planes.pack(at, chunk)
            if planes is not None:
                return planes
        elif self._codec == Codec.ZSTD and length:
            frame = pack_frame(chunk)
            if len(frame) < length:
                return b"".join((bytes((Packing.ZSTD,)), frame))
        scratch[_CHUNK_AT - 1] = Packing.NONE
        return scratch[_CHUNK_AT - 1 : _CHUNK_AT + length]


def _fill(read_into: Callable[[memoryview], int], chunk: memoryview, at: int, name: bytes) -> None:
    done = 0
    while done < len(chunk):
        count = read_into(chunk[done:])
        if not count:
            raise SourceChangedError(
                "a file is shorter than it was",
                where=os.fsdecode(name),
                why=f"it ends at byte {at + done}",
                do="sync again when the save is over",
            )
        done += count


def seal_bytes(
    plaintext: bytes, *, sealing: bytes, kind: ObjectKind, number: int, name: bytes, data_key: bytes, signing_key: SigningKey,
    codec: Codec = Codec.ZSTD, chunk_bytes: int = CHUNK_BYTES, runs: ElementRuns | None = None, pairs: Sequence[Pair] = (),
) -> tuple[bytes, SealedObject]:  # fmt: skip
    """Seal something small that is in memory: a plan, a batch, an inventory."""
    sealer = Sealer(
        sealing=sealing,
        kind=kind,
        number=number,
        name=name,
        plaintext_bytes=len(plaintext),
        data_key=data_key,
        signing_key=signing_key,
        codec=codec,
        chunk_bytes=chunk_bytes,
        runs=runs,
        pairs=pairs,
    )
    view, at = memoryview(plaintext), 0

    def read_into(buffer: memoryview) -> int:
        nonlocal at
        count = min(len(buffer), len(view) - at)
        buffer[:count] = view[at : at + count]
        at += count
        return count

    whole = bytearray()
    for part in sealer.parts(read_into, lambda nbytes: memoryview(bytearray(nbytes))):
        whole += part.data
    assert sealer.sealed is not None
    return bytes(whole), sealer.sealed
