"""Floating-point formats by their bit patterns: what the judgement of a number needs, for CPU and GPU alike.

Take away the sign, and the patterns of every one of these formats ascend with the value: zero, subnormal, normal, the largest finite
one, infinity (where there is one), NaN. So a few borders say it all.

Sources: IEEE 754-2019 (binary16, 32, 64); bfloat16 is binary32 cut to 16 bits; OCP 8-bit Floating Point Specification 1.0 (e4m3 has
no infinity and one NaN pattern a sign, e5m2 is IEEE-like); Noune et al. 2022, arXiv:2206.02915, for the ``fnuz`` types (NaN in the
place of negative zero); OCP Microscaling Formats 1.0 for e8m0 (powers of two, no sign, no zero).
"""

from dataclasses import dataclass

from seawall.kernels.errors import KernelArgumentError


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """One real number in little-endian bytes."""

    width: int
    """Bytes."""
    exponent_bits: int
    mantissa_bits: int
    largest: int
    """Pattern of the largest finite number."""
    infinity: int
    """Pattern of infinity, 0 where the format has none."""
    sign: int
    """The sign's bit, 0 where numbers have none."""
    negative_zero_is_nan: bool = False
    has_zero: bool = True

    @property
    def bins(self) -> int:
        """How many values the exponent field has."""
        return 1 << self.exponent_bits


def _like_ieee(exponent_bits: int, mantissa_bits: int) -> NumberFormat:
    bits = 1 + exponent_bits + mantissa_bits
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    return NumberFormat(bits // 8, exponent_bits, mantissa_bits, infinity - 1, infinity, 1 << (bits - 1))


FORMATS = {
    "float64": _like_ieee(11, 52),
    "float32": _like_ieee(8, 23),
    "float16": _like_ieee(5, 10),
    "bfloat16": _like_ieee(8, 7),
    "float8_e5m2": _like_ieee(5, 2),
    "float8_e4m3fn": NumberFormat(1, 4, 3, largest=0x7E, infinity=0, sign=0x80),
    "float8_e4m3fnuz": NumberFormat(1, 4, 3, largest=0x7F, infinity=0, sign=0x80, negative_zero_is_nan=True),
    "float8_e5m2fnuz": NumberFormat(1, 5, 2, largest=0x7F, infinity=0, sign=0x80, negative_zero_is_nan=True),
    "float8_e8m0fnu": NumberFormat(1, 8, 0, largest=0xFE, infinity=0, sign=0, has_zero=False),
}
"""By torch's names. float16's largest finite number is 65504, pattern 0x7BFF."""
FORMATS |= {"complex128": FORMATS["float64"], "complex64": FORMATS["float32"], "complex32": FORMATS["float16"]}
"""A complex number is two real ones."""


def format_of(dtype: str) -> NumberFormat:
    """The format of a dtype by torch's name, with or without ``torch.`` before it. Refuses types without NaN, such as integers."""
    found = FORMATS.get(dtype.removeprefix("torch."))
    if found is None:
        raise KernelArgumentError(f"{dtype} is no floating-point type that is judged here", do=f"known are {', '.join(FORMATS)}")
    return found
