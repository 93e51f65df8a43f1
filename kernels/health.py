"""The health of numbers: how many are NaN, infinite, saturated, subnormal or zero, and which exponents occur. On the CPU.

``nonfinite.count`` answers a narrower question for inspections, is anything here not finite, and stops counting where all is well.
This is the whole picture, for evidence and trends, and what the GPU kernel is compared with. Both take the borders between kinds of
numbers from the bit patterns (number_formats.py), never from arithmetic, and agree on NaN and infinity (a test holds them together).

*Saturated* is a finite number of the largest magnitude, ±65504 for float16: training that clips instead of overflowing leaves them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seawall.kernels.byte_views import Buffer, byte_view
from seawall.kernels.errors import SplitElementError
from seawall.kernels.number_formats import NumberFormat, format_of

if TYPE_CHECKING:
    import numpy

    Patterns = numpy.ndarray[Any, Any]

_BLOCK_BYTES = 1 << 18
"""Stays in the second-level cache through the passes over it."""


@dataclass(frozen=True, slots=True)
class Health:
    """Counts of real numbers; a complex element is two. Counts of parts add up to that of the whole."""

    elements: int = 0
    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    saturated: int = 0
    subnormal: int = 0
    zero: int = 0
    """Of either sign."""
    exponents: tuple[int, ...] = ()
    """How often each value of the exponent field occurs, NaN and infinity included; empty unless it was asked for."""

    def __add__(self, other: "Health") -> "Health":
        if not self.elements or not other.elements:
            return other if not self.elements else self
        exponents = tuple(a + b for a, b in zip(self.exponents, other.exponents, strict=True))
        return Health(
            self.elements + other.elements,
            self.nan + other.nan,
            self.positive_infinity + other.positive_infinity,
            self.negative_infinity + other.negative_infinity,
            self.saturated + other.saturated,
            self.subnormal + other.subnormal,
            self.zero + other.zero,
            exponents,
        )

    @property
    def infinite(self) -> int:
        """Of either sign."""
        return self.positive_infinity + self.negative_infinity

    @property
    def finite(self) -> bool:
        """Whether every number is."""
        return not self.nan and not self.infinite

    @property
    def zero_share(self) -> float:
        """Zeros among all numbers, 0 to 1; 0 of nothing."""
        return self.zero / self.elements if self.elements else 0.0


def numbers_in(nbytes: int, form: NumberFormat) -> int:
    """How many a buffer holds. Refuses one that ends inside a number: PiecewiseHealth takes those."""
    if nbytes % form.width:
        raise SplitElementError(
            f"{nbytes} bytes end {nbytes % form.width} bytes into a number of {form.width}",
            do="give whole numbers, or the pieces in turn to PiecewiseHealth",
        )
    return nbytes // form.width


def health(buffer: Buffer, dtype: str, *, histogram: bool = False) -> Health:
    """Count on the CPU. ``buffer`` holds whole little-endian elements of ``dtype`` (torch's name), at any address. ``histogram`` counts
    exponents too, at a fifth of the speed."""
    import numpy

    form = format_of(dtype)
    view = byte_view(buffer)
    numbers_in(len(view), form)
    total = Health()
    for at in range(0, len(view), _BLOCK_BYTES):
        patterns = numpy.frombuffer(view[at : at + _BLOCK_BYTES], f"<u{form.width}")
        total += _counted(patterns, form, histogram)
    return total


def _counted(patterns: "Patterns", form: NumberFormat, histogram: bool) -> Health:
    import numpy

    kind = patterns.dtype.type
    magnitudes = patterns & kind(form.sign - 1) if form.sign else patterns
    lowest = len(magnitudes) - int(numpy.count_nonzero(magnitudes))
    below_normal = int(numpy.count_nonzero(magnitudes < kind(1 << form.mantissa_bits)))
    at_the_top = magnitudes >= kind(form.largest)
    nan = positive = negative = saturated = 0
    if at_the_top.any():
        nan, positive, negative, saturated = _at_the_top(patterns[at_the_top], form)
    zero = lowest if form.has_zero else 0
    if form.negative_zero_is_nan and lowest:
        negative_zero = int(numpy.count_nonzero(patterns == kind(form.sign)))
        nan, zero = nan + negative_zero, zero - negative_zero
    exponents: tuple[int, ...] = ()
    if histogram:
        fields = magnitudes >> kind(form.mantissa_bits)
        exponents = tuple(numpy.bincount(fields.astype(numpy.int64), minlength=form.bins).tolist())
    return Health(len(patterns), nan, positive, negative, saturated, below_normal - lowest, zero, exponents)


def _at_the_top(patterns: "Patterns", form: NumberFormat) -> tuple[int, int, int, int]:
    import numpy

    kind = patterns.dtype.type
    magnitudes = patterns & kind(form.sign - 1) if form.sign else patterns
    saturated = int(numpy.count_nonzero(magnitudes == kind(form.largest)))
    positive = negative = 0
    if form.infinity:
        positive = int(numpy.count_nonzero(patterns == kind(form.infinity)))
        negative = int(numpy.count_nonzero(patterns == kind(form.infinity | form.sign)))
    return len(patterns) - saturated - positive - negative, positive, negative, saturated


def blocks_health(blocks: Iterator[bytes], dtype: str, *, histogram: bool = False) -> Health:
    """Of one run of elements that comes block by block, in order; a block may end inside an element, the last one may not."""
    from seawall.kernels.piecewise_health import PiecewiseHealth

    pieces, at = PiecewiseHealth(dtype, histogram=histogram), 0
    for block in blocks:
        pieces.observe(at, block)
        at += len(block)
    return pieces.result()
