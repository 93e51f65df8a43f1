"""Bit patterns of float32 and what they become as bfloat16 and float16, worked out with integers alone (format-1.md section 5)."""

import hashlib
import json

BORDERS = (0, 1, 0x007FFFFF, 0x00800000, 0x33000000, 0x33000001, 0x33800000, 0x387FC000, 0x387FE000, 0x38800000, 0x3F800000, 0x477FE000,
           0x477FEFFF, 0x477FF000, 0x47800000, 0x7F7F0000, 0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000,
           0x7FFFFFFF)  # fmt: skip
"""Zero, the smallest subnormal numbers, where float16 begins, becomes normal and ends, where bfloat16 ends, infinity, NaN."""


def bfloat16(x: int) -> int:
    if x & 0x7FFFFFFF > 0x7F800000:
        return 0x7FC0
    return (x + 0x7FFF + (x >> 16 & 1)) >> 16 & 0xFFFF


def float16(x: int) -> int:
    sign, magnitude, exponent = x >> 16 & 0x8000, x & 0x7FFFFFFF, x >> 23 & 0xFF
    if magnitude > 0x7F800000:
        return sign | 0x7E00
    if magnitude >= 0x477FF000:
        return sign | 0x7C00
    if exponent > 112:
        magnitude -= 0x38000000
        return sign | (magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13
    if exponent == 0:
        return sign
    mantissa, shift = x & 0x7FFFFF | 0x800000, 126 - exponent
    whole, rest, half = mantissa >> shift, mantissa & (1 << shift) - 1, 1 << shift - 1
    return sign | whole + (rest > half or (rest == half and whole & 1))


def patterns() -> list[int]:
    """Borders and their neighbours with both signs, ties of every length, and others by chance."""
    near = [border + by for border in BORDERS for by in (-1, 0, 1) if 0 <= border + by < 1 << 31]
    ties = [0x3F800000 + (odd << 16 | 0x8000) + by for odd in (0, 1) for by in (-1, 0, 1)]
    ties += [(126 - shift) << 23 | (1 << shift - 1) + by & 0x7FFFFF for shift in range(14, 26) for by in (-1, 0, 1)]
    chance = hashlib.shake_256(b"casts").digest(4 * 200)
    drawn = [int.from_bytes(chance[at : at + 4], "little") for at in range(0, len(chance), 4)]
    return sorted({pattern | sign for pattern in (*near, *ties) for sign in (0, 1 << 31)} | set(drawn))


def encoded() -> bytes:
    """The file ``casts.json``."""
    rows = ",\n".join(json.dumps([f"{x:08x}", f"{bfloat16(x):04x}", f"{float16(x):04x}"]) for x in patterns())
    return f"[\n{rows}\n]\n".encode()
