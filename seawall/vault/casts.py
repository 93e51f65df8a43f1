"""From float32 to bfloat16 and float16 by integers alone, rounding to nearest, ties to even: one result a bit pattern, on any machine.

Frameworks agree on every number but not on every NaN, so a NaN has one result here: the one of torch's scalar code
(c10/util/BFloat16.h and Half.h). What a framework cast in another way is not derived, and stored like anything else.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from seawall.vault.plane_header import Kind

if TYPE_CHECKING:
    import numpy

    Words = numpy.ndarray[Any, numpy.dtype[numpy.uint32]]
    Halves = numpy.ndarray[Any, numpy.dtype[numpy.uint16]]

KIND_OF_DTYPE = {"bfloat16": Kind.BFLOAT16, "float16": Kind.FLOAT16}
MASTER_DTYPE = "float32"

_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_BLOCK_ELEMENTS = 1 << 15
"""At a time: the temporaries stay in the second-level cache."""


def cast(master: Any, kind: Kind) -> bytes:
    """The little-endian elements of ``kind`` that the little-endian float32 numbers in a buffer become."""
    out = bytearray(len(memoryview(master).cast("B")) // 2)
    cast_into(master, kind, memoryview(out))
    return bytes(out)


def cast_into(master: Any, kind: Kind, out: memoryview) -> None:
    """The same, into a buffer of half the bytes."""
    import numpy

    words, halves = numpy.frombuffer(master, "<u4"), numpy.frombuffer(out, "<u2")
    for part in _blocks(len(words)):
        block = words[part]
        halves[part] = _bfloat16(block) if kind == Kind.BFLOAT16 else _float16(block)
        not_a_number = (block & numpy.uint32(_MAGNITUDE)) > numpy.uint32(_INFINITY)
        if not_a_number.any():
            sign = block[not_a_number] >> numpy.uint32(16) & numpy.uint32(0x8000)
            halves[part][not_a_number] = 0x7FC0 if kind == Kind.BFLOAT16 else sign | numpy.uint32(0x7E00)


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK_ELEMENTS, count)) for start in range(0, count, _BLOCK_ELEMENTS))


def _bfloat16(words: "Words") -> "Halves":
    import numpy

    # Half of the last place that stays, less one for an even one: a carry runs into the exponent, which is how numbers become infinite.
    odd = words >> numpy.uint32(16)
    odd &= numpy.uint32(1)
    odd += numpy.uint32(0x7FFF)
    odd += words
    odd >>= numpy.uint32(16)
    return odd.astype("<u2")


def _float16(words: "Words") -> "Halves":
    import numpy

    # NumPy's own cast rounds so, subnormal results included; its treatment of NaN depends on the processor and is not used.
    with numpy.errstate(all="ignore"):
        return words.view("<f4").astype("<f2").view("<u2")
