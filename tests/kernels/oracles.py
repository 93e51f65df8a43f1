"""What the kernels should say, from definitions, by other means than theirs, and slowly."""

from collections import Counter
from collections.abc import Sequence

import torch

from seawall.kernels.health import Health

POLYNOMIAL = 0xAD93D23594C93659
ALL_ONES = (1 << 64) - 1


def _table() -> list[int]:
    reflected = int(f"{POLYNOMIAL:064b}"[::-1], 2)
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (reflected if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def crc64(message: bytes) -> int:
    """Byte by byte."""
    crc = ALL_ONES
    for byte in message:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ ALL_ONES


# Bits of exponent and mantissa.
FIELDS = {
    "float64": (11, 52), "float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7), "float8_e5m2": (5, 2), "float8_e4m3fn": (4, 3),
    "float8_e4m3fnuz": (4, 3), "float8_e5m2fnuz": (5, 2), "float8_e8m0fnu": (8, 0),
}  # fmt: skip


def width(dtype: str) -> int:
    return (sum(FIELDS[dtype]) + 7) // 8


def health(content: bytes, dtype: str, *, histogram: bool) -> Health:
    """By torch's arithmetic on the values; exponents from the patterns, one by one."""
    kind = getattr(torch, dtype)
    values = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(kind).double() if content else torch.empty(0).double()
    facts = torch.finfo(kind)
    infinity = float("inf")
    exponent_bits, mantissa_bits = FIELDS[dtype]
    size = width(dtype)
    patterns = (int.from_bytes(content[at : at + size], "little") for at in range(0, len(content), size))
    found = Counter(pattern >> mantissa_bits & (1 << exponent_bits) - 1 for pattern in patterns)
    return Health(
        len(values),
        int(values.isnan().sum()),
        int((values == infinity).sum()),
        int((values == -infinity).sum()),
        int((values.abs() == facts.max).sum()),
        int(((values != 0) & (values.abs() < facts.smallest_normal)).sum()),
        int((values == 0).sum()),
        tuple(found[field] for field in range(1 << exponent_bits)) if histogram and content else (),
    )


def planes(content: bytes, size: int) -> bytes:
    return b"".join(content[rank::size] for rank in range(size))


def delta(new: bytes, base: bytes, size: int) -> bytes:
    """Python's integers know no width: the difference is taken into the range of a signed one by hand."""
    codes = []
    for at in range(0, len(new), size):
        change = int.from_bytes(new[at : at + size], "little") - int.from_bytes(base[at : at + size], "little")
        change = (change + (1 << 8 * size - 1)) % (1 << 8 * size) - (1 << 8 * size - 1)
        codes.append((2 * change if change >= 0 else -2 * change - 1).to_bytes(size, "little"))
    return b"".join(codes)


def flipped(content: bytes, positions: Sequence[int]) -> bytes:
    """Bit i of a little-endian integer is bit i % 8 of byte i // 8."""
    number = int.from_bytes(content, "little")
    for position in positions:
        number ^= 1 << position
    return number.to_bytes(len(content), "little")
