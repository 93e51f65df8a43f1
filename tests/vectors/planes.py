"""The good copy whose records are byte planes, and payloads of such records made by hand."""

import struct
from collections.abc import Sequence

from seawall.vault.casts import cast
from seawall.vault.codecs import Codec
from seawall.vault.plane_header import Kind
from seawall.vault.tensors import TensorPiece, TensorRecord
from seawall.vault.zstd_frames import pack_frame
from tests.vectors.copies import SealedCopy, noise, seal_copy, text


def weights(name: str, count: int, width: int = 4) -> bytes:
    """Elements whose top byte has few values, as weights have; always the same for one name."""
    raw = bytearray(noise(name, count * width))
    for at in range(width - 1, len(raw), width):
        raw[at] = (0x3C, 0x3D, 0xBC, 0xBD)[raw[at] % 4]
    return bytes(raw)


MASTER = weights("master", 256)
"""Record 0 of ``derived.bin``."""


def derived_bin() -> bytes:
    """Three records: a master, a moment, and half a record of weights before text."""
    return MASTER + weights("moment", 256) + cast(MASTER, Kind.BFLOAT16) + text(512)


def planes() -> SealedCopy:
    """Codec balanced."""
    half = weights("half", 300)
    widths = b"".join((noise("lead", 3), weights("w2", 400, 2), weights("w8", 90, 8), weights("w4", 200), b"end"))
    contents = {
        "derived.bin": derived_bin(),
        "widths.bin": widths,
        "within.bin": half[:400] + b"-" + cast(half[:400], Kind.FLOAT16) + half + cast(half, Kind.BFLOAT16),
        "text.bin": text(1500),
    }
    tensors = [
        *((0, "float32", at, 1024) for at in (0, 1024)),
        (0, "bfloat16", 2048, 512),
        (1, "bfloat16", 3, 800),
        (1, "int64", 803, 720),
        (1, "float32", 1523, 800),
        (2, "float32", 0, 400),
        (2, "float16", 401, 200),
        (2, "float32", 601, 1200),
        (2, "bfloat16", 1801, 600),
    ]
    records = tuple(
        TensorRecord(f"{dtype} {file} {start}", dtype, (), (TensorPiece(file, nbytes, start, (), ()),))
        for file, dtype, start, nbytes in tensors
    )
    return seal_copy("planes", 400, contents, Codec.BALANCED, batches=1, tensors=records)


# --- payloads by hand (format-1.md section 5) ---


def run(kind: int, length: int, master: int | None = None) -> bytes:
    return struct.pack(">BI", kind, length) + (b"" if master is None else struct.pack(">Q", master))


def stored(coded: bytes) -> tuple[bytes, bytes]:
    return plane(0, coded)


def framed(content: bytes) -> tuple[bytes, bytes]:
    return plane(1, pack_frame(content))


def plane(method: int, coded: bytes, length: int | None = None) -> tuple[bytes, bytes]:
    return struct.pack(">BI", method, len(coded) if length is None else length), coded


def payload(
    runs: Sequence[bytes], planes: Sequence[tuple[bytes, bytes]], *, form: int = 1, count: int | None = None, after: bytes = b""
) -> bytes:
    """What follows the packing byte."""
    head = bytes((form,)) + struct.pack(">H", len(runs) if count is None else count)
    return head + b"".join(runs) + b"".join(entry for entry, _ in planes) + b"".join(coded for _, coded in planes) + after
