"""Counting NaN and infinity in raw little-endian element bytes, on the CPU, for every dtype that checkpoints hold.

Works on the bit patterns, because numpy has no bfloat16 and no 8-bit floats: a value is not finite when its exponent field is all
ones (IEEE 754,
bfloat16, OCP OFP8 e5m2), or when it is one of the few patterns that the type reserves (OFP8 e4m3fn; the ``fnuz`` types; OCP MX e8m0).

It answers an inspection's question in one pass where all is well. ``health.py`` counts everything (saturated, subnormal, zero,
exponents) and runs on a GPU as well.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Finiteness:
    """What a run of elements holds. Counts add up over blocks of one tensor."""

    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    other_than_zero: int = 0
    """Finite elements that are not zero; counted only where something is not finite."""

    def __add__(self, other: "Finiteness") -> "Finiteness":
        return Finiteness(
            self.nan + other.nan,
            self.positive_infinity + other.positive_infinity,
            self.negative_infinity + other.negative_infinity,
            self.other_than_zero + other.other_than_zero,
        )

    @property
    def sound(self) -> bool:
        """Whether every element is finite."""
        return self.nan == self.positive_infinity == self.negative_infinity == 0


_EXPONENT = {
    "float64": ("<u8", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
    "float32": ("<u4", 0x7F800000, 0x007FFFFF),
    "float16": ("<u2", 0x7C00, 0x03FF),
    "bfloat16": ("<u2", 0x7F80, 0x007F),
    "float8_e5m2": ("u1", 0x7C, 0x03),
    "complex128": ("<u8", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
    "complex64": ("<u4", 0x7F800000, 0x007FFFFF),
    "complex32": ("<u2", 0x7C00, 0x03FF),
}
"""Unsigned type of one real number, mask of its exponent, mask of its mantissa."""
_RESERVED = {
    "float8_e4m3fn": (0x7F, 0xFF),
    "float8_e4m3fnuz": (0x80,),
    "float8_e5m2fnuz": (0x80,),
    "float8_e8m0fnu": (0xFF,),
}
"""Types without infinity, and the bytes that are their NaN."""
_ZEROS: dict[str, tuple[int, ...]] = {
    "float8_e4m3fn": (0x00, 0x80),
    "float8_e4m3fnuz": (0x00,),
    "float8_e5m2fnuz": (0x00,),
    "float8_e8m0fnu": (),
}
"""And those that are zero: ``fnuz`` has no negative zero, e8m0 holds powers of two only."""


def count(buffer: Buffer, dtype: str) -> Finiteness:
    """Count what is not finite. ``buffer`` holds whole elements of ``dtype`` (torch's name); types that are always finite count as
    sound."""
    import numpy

    if dtype in _RESERVED:
        values = numpy.frombuffer(buffer, numpy.uint8)
        nan = sum(int(numpy.count_nonzero(values == pattern)) for pattern in _RESERVED[dtype])
        if not nan:
            return Finiteness()
        zeros = sum(int(numpy.count_nonzero(values == pattern)) for pattern in _ZEROS[dtype])
        return Finiteness(nan=nan, other_than_zero=len(values) - nan - zeros)
    if dtype not in _EXPONENT:
        return Finiteness()
    unsigned, exponent, mantissa = _EXPONENT[dtype]
    return _by_exponent(numpy.frombuffer(buffer, unsigned), exponent, mantissa)


def _by_exponent(values: "numpy.ndarray[Any, Any]", exponent: int, mantissa: int) -> Finiteness:
    import numpy

    kind = values.dtype.type
    # A view of the whole block costs one pass; the counts below are needed only for the rare block that has something.
    special = (values & kind(exponent)) == kind(exponent)
    if not special.any():
        return Finiteness()
    found = values[special]
    infinite = (found & kind(mantissa)) == 0
    top_bit = kind(1 << (values.dtype.itemsize * 8 - 1))
    negative = int(numpy.count_nonzero(infinite & ((found & top_bit) != 0)))
    both = int(numpy.count_nonzero(infinite))
    zero = int(numpy.count_nonzero((values & ~top_bit) == 0))
    return Finiteness(len(found) - both, both - negative, negative, len(values) - len(found) - zero)
