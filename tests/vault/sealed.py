"""Sealing in memory with small records, for the tests of the vault."""

from collections.abc import Sequence
from hashlib import sha256

from seawall.kernels.crc64 import crc64
from seawall.vault.codecs import Codec
from seawall.vault.derived import Pair
from seawall.vault.element_runs import ElementRuns
from seawall.vault.header import ObjectKind
from seawall.vault.open import Frame, Opener, read_frame
from seawall.vault.seal import Part, SealedObject, Sealer
from seawall.vault.signing import PublicKey
from tests.log.actors import KEYS

DATA_KEY = sha256(b"data key").digest()
SEALING = sha256(b"sealing").digest()[:16]
CHUNK_BYTES = 1024


def resolve(key_id: str) -> PublicKey | None:
    return KEYS.writer.public if key_id == KEYS.writer.key_id else None


def sealer_of(
    nbytes: int, codec: Codec = Codec.NONE, name: bytes = b"a file", chunk_bytes: int = CHUNK_BYTES,
    runs: ElementRuns | None = None, pairs: Sequence[Pair] = (),
) -> Sealer:  # fmt: skip
    return Sealer(
        sealing=SEALING,
        kind=ObjectKind.FILE,
        number=7,
        name=name,
        plaintext_bytes=nbytes,
        data_key=DATA_KEY,
        signing_key=KEYS.writer,
        codec=codec,
        chunk_bytes=chunk_bytes,
        runs=runs,
        pairs=pairs,
    )


class Source:
    """Bytes that are handed out at most ``most`` at a time, as pipes and network file systems do."""

    def __init__(self, plaintext: bytes, most: int = 1 << 30) -> None:
        self._plaintext = memoryview(plaintext)
        self._most = most

    def read_into(self, buffer: memoryview) -> int:
        piece = self._plaintext[: min(len(buffer), self._most)]
        buffer[: len(piece)] = piece
        self._plaintext = self._plaintext[len(piece) :]
        return len(piece)


def sealed(
    plaintext: bytes, codec: Codec = Codec.NONE, part_bytes: int = 1 << 23, most: int = 1 << 30,
    runs: ElementRuns | None = None, pairs: Sequence[Pair] = (),
) -> tuple[bytes, SealedObject, list[int]]:  # fmt: skip
    """The object, its facts, and the lengths of its parts. Every part is checked on the way."""
    sealer = sealer_of(len(plaintext), codec, runs=runs, pairs=pairs)
    whole, lengths = b"", []
    capacity = sealer.part_capacity(part_bytes)
    parts: list[Part] = []
    for part in sealer.parts(Source(plaintext, most).read_into, lambda nbytes: memoryview(bytearray(nbytes)), part_bytes):
        assert len(part.data) <= capacity
        assert (part.number, part.start, part.crc64) == (len(parts) + 1, len(whole), crc64(part.data))
        parts.append(part)
        lengths.append(len(part.data))
        whole += part.data
    assert [part.last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert sealer.sealed is not None
    return whole, sealer.sealed, lengths


def frame_of(raw: bytes) -> Frame:
    return read_frame(lambda start, length: raw[start : start + length], len(raw), resolve, "object")


def opener_of(raw: bytes) -> Opener:
    return Opener(frame_of(raw), DATA_KEY)


def range_of(raw: bytes, start: int, length: int) -> bytes:
    def read_into(at: int, buffer: memoryview) -> int:
        piece = raw[at : at + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)

    return b"".join(opener_of(raw).read_range(start, length, read_into))
