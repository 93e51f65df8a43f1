"""Counting zeros, saturated values and what is not finite among raw little-endian floating-point bytes, as they stream past.

Works on bit patterns like :mod:`seawall.kernels.nonfinite`. With the sign cleared, the patterns of IEEE 754 types (and of bfloat16) are
in the order of their magnitudes: zero is 0, the largest finite value is one below infinity, and NaN lies above that. So a maximum and a
count of what is not 0 settle most blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

BLOCK_BYTES = 256 << 10
"""Looked at in one go: small enough that the second pass over a block finds it in the cache."""

_WIDE = {
    "float64": ("<u8", 0x7FF0000000000000),
    "float32": ("<u4", 0x7F800000),
    "float16": ("<u2", 0x7C00),
    "bfloat16": ("<u2", 0x7F80),
    "complex128": ("<u8", 0x7FF0000000000000),
    "complex64": ("<u4", 0x7F800000),
    "complex32": ("<u2", 0x7C00),
}
"""Unsigned type of one real number, and the pattern of infinity: everything above it is NaN, the one below is the largest finite value."""

_NARROW = {
    "float8_e5m2": ((0x00, 0x80), (0x7B, 0xFB), (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF), 0x7C, 0xFC),
    "float8_e4m3fn": ((0x00, 0x80), (0x7E, 0xFE), (0x7F, 0xFF), None, None),
    "float8_e4m3fnuz": ((0x00,), (0x7F, 0xFF), (0x80,), None, None),
    "float8_e5m2fnuz": ((0x00,), (0x7F, 0xFF), (0x80,), None, None),
    "float8_e8m0fnu": ((), (0xFE,), (0xFF,), None, None),
}
"""Types of one byte (OCP OFP8; the ``fnuz`` types of the StableHLO specification; OCP MX e8m0): the patterns of zeros, of the largest
finite values and of NaN, then plus and minus infinity."""


@dataclass(slots=True)
class ValueCounts:
    """Counts over real numbers."""

    floats: int = 0
    zeros: int = 0
    saturated: int = 0
    """At the largest finite magnitude of the type."""
    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0

    def add(self, other: "ValueCounts") -> None:
        self.floats += other.floats
        self.zeros += other.zeros
        self.saturated += other.saturated
        self.nan += other.nan
        self.positive_infinity += other.positive_infinity
        self.negative_infinity += other.negative_infinity

    @property
    def nonfinite(self) -> int:
        """NaN and infinities; none for an attention mask, which holds zeros and minus infinities only."""
        if not self.nan and not self.positive_infinity and self.zeros + self.negative_infinity == self.floats:
            return 0
        return self.nan + self.positive_infinity + self.negative_infinity


def width_of(dtype: str) -> int | None:
    """Bytes of one real number of a torch dtype whose values are counted; None for all others."""
    if dtype in _NARROW:
        return 1
    return int(_WIDE[dtype][0][-1]) if dtype in _WIDE else None


def count_values(buffer: bytes | memoryview, dtype: str) -> ValueCounts:
    """Counts over whole numbers of ``dtype``, one that :func:`width_of` knows."""
    import numpy

    counts = ValueCounts()
    unsigned, infinity = _WIDE.get(dtype, ("u1", 0))
    values = numpy.frombuffer(buffer, unsigned)
    step = BLOCK_BYTES // values.dtype.itemsize
    scratch = numpy.empty(min(step, len(values)), values.dtype)
    for start in range(0, len(values), step):
        if dtype in _NARROW:
            _count_narrow(counts, values[start : start + step], *_NARROW[dtype])
        else:
            _count_wide(counts, values[start : start + step], scratch, infinity)
    return counts


def _count_wide(counts: ValueCounts, values: "numpy.ndarray[Any, Any]", scratch: "numpy.ndarray[Any, Any]", infinity: int) -> None:
    import numpy

    kind = values.dtype.type
    sign = kind(1 << (8 * values.dtype.itemsize - 1))
    magnitudes = numpy.bitwise_and(values, kind(~sign), out=scratch[: len(values)])
    counts.floats += len(values)
    counts.zeros += len(values) - int(numpy.count_nonzero(magnitudes))
    highest = int(magnitudes.max())
    if highest < infinity - 1:
        return
    counts.saturated += int(numpy.count_nonzero(magnitudes == kind(infinity - 1)))
    if highest < infinity:
        return
    counts.nan += int(numpy.count_nonzero(magnitudes > kind(infinity)))
    infinite = magnitudes == kind(infinity)
    negative = int(numpy.count_nonzero(infinite & (values >= sign)))
    counts.negative_infinity += negative
    counts.positive_infinity += int(numpy.count_nonzero(infinite)) - negative


def _count_narrow(
    counts: ValueCounts,
    values: "numpy.ndarray[Any, Any]",
    zeros: Sequence[int],
    largest: Sequence[int],
    nan: Sequence[int],
    positive: int | None,
    negative: int | None,
) -> None:
    import numpy

    def how_many(pattern: int) -> int:
        return int(numpy.count_nonzero(values == numpy.uint8(pattern)))

    counts.floats += len(values)
    counts.zeros += sum(map(how_many, zeros))
    counts.saturated += sum(map(how_many, largest))
    counts.nan += sum(map(how_many, nan))
    counts.positive_infinity += 0 if positive is None else how_many(positive)
    counts.negative_infinity += 0 if negative is None else how_many(negative)


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """A run of numbers in a file; start and length in bytes."""

    start: int
    nbytes: int
    dtype: str


class SpanValues:
    """Feed it a file's chunks in order; it counts the given spans, which are in order of their start and may overlap."""

    def __init__(self, spans: Sequence[ValueSpan]) -> None:
        self._spans = spans
        self.counts = [ValueCounts() for _ in spans]
        self._next = 0
        self._open: dict[int, bytes] = {}
        """Spans that go on, with the bytes of a number that the last chunk cut."""

    def observe(self, at: int, chunk: memoryview) -> None:
        """The chunk that begins at byte ``at`` of the file."""
        end = at + len(chunk)
        while self._next < len(self._spans) and self._spans[self._next].start < end:
            self._open[self._next] = b""
            self._next += 1
        still_open = {}
        for index, rest in self._open.items():
            span = self._spans[index]
            piece = chunk[max(span.start - at, 0) : min(span.start + span.nbytes, end) - at]
            rest = self._count(index, rest, piece)
            if span.start + span.nbytes > end:
                still_open[index] = rest
        self._open = still_open

    def _count(self, index: int, rest: bytes, piece: memoryview) -> bytes:
        """Count what is whole; the bytes of the number that is not."""
        dtype = self._spans[index].dtype
        width = width_of(dtype) or 1
        if rest:
            wanted = width - len(rest)
            rest += piece[:wanted]
            if len(rest) < width:
                return rest
            self.counts[index].add(count_values(rest, dtype))
            piece = piece[wanted:]
        whole = len(piece) // width * width
        if whole:
            self.counts[index].add(count_values(piece[:whole], dtype))
        return bytes(piece[whole:])
