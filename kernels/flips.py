"""Bit flips on purpose: one bit, several, or a burst; at given places or drawn from a seed.

Bit ``i`` of a buffer is bit ``i % 8`` (0 is the least significant) of byte ``i // 8``. That is also the order in which a reflected
CRC takes the bits, so a burst here is a burst in the sense of the CRC's guarantee (Koopman, "32-Bit Cyclic Redundancy Codes for
Internet Applications", DSN 2002: a CRC of n bits finds every burst of at most n).

The draws are a function of the seed and of nothing else: SplitMix64 over a counter (Steele, Lea, Flood, "Fast Splittable
Pseudorandom Number Generators", OOPSLA 2014). NumPy's own generators may give other numbers in the next release.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seawall.kernels.byte_views import Buffer, writable_view
from seawall.kernels.errors import KernelArgumentError

if TYPE_CHECKING:
    import numpy

    Words = numpy.ndarray[Any, numpy.dtype[numpy.uint64]]

_STEP = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_ALL = (1 << 64) - 1


def random_words(seed: int, start: int, count: int) -> "Words":
    """Words ``start`` to ``start + count - 1`` of the seed's sequence, uniform over 64 bits."""
    import numpy

    first = (seed + (start + 1) * _STEP) & _ALL
    words = numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(_STEP) + numpy.uint64(first)
    words = (words ^ (words >> numpy.uint64(30))) * numpy.uint64(_MIX_1)
    words = (words ^ (words >> numpy.uint64(27))) * numpy.uint64(_MIX_2)
    return words ^ (words >> numpy.uint64(31))


def draw_below(bound: int, count: int, seed: int) -> "Words":
    """``count`` numbers below ``bound``, uniform and independent. Exact: draws at or above the bound are drawn again."""
    import numpy

    if not 0 < bound <= 1 << 64:
        raise KernelArgumentError(f"no number is drawn below {bound}")
    if bound == 1:
        return numpy.zeros(count, numpy.uint64)
    # Only as many bits as the bound needs, so that at least every second draw fits.
    unused = numpy.uint64(64 - (bound - 1).bit_length())
    drawn, start = numpy.empty(0, numpy.uint64), 0
    while len(drawn) < count:
        asked = 2 * (count - len(drawn)) + 8
        words = random_words(seed, start, asked) >> unused
        drawn = numpy.concatenate([drawn, words[words <= numpy.uint64(bound - 1)]])
        start += asked
    return drawn[:count]


def draw_flips(nbits: int, count: int, seed: int) -> "Words":
    """``count`` different places among ``nbits`` bits, ascending. Every set of places is equally likely."""
    import numpy

    if not 0 <= count <= nbits:
        raise KernelArgumentError(f"{count} different places were asked for among {nbits} bits")
    if 2 * count > nbits:
        kept = numpy.ones(nbits, bool)
        kept[draw_flips(nbits, nbits - count, seed).astype(numpy.int64)] = False
        return numpy.flatnonzero(kept).astype(numpy.uint64)
    # The first `count` different ones of a longer sequence; the longer sequence begins with the shorter.
    asked = count + count // 4 + 8
    while True:
        _, first = numpy.unique(draw := draw_below(nbits, asked, seed), return_index=True)
        if len(first) >= count:
            return numpy.sort(draw[numpy.sort(first)[:count]])
        asked *= 2


def burst_at(start: int, length: int, seed: int | None = None) -> "Words":
    """A burst of ``length`` bits from bit ``start``: its first and its last bit are flipped (or it would be a shorter one), and
    between them every bit (no seed) or each with probability one half."""
    import numpy

    if start < 0 or length < 1:
        raise KernelArgumentError(f"a burst of {length} bits at bit {start}")
    flipped = numpy.ones(length, bool)
    if seed is not None and length > 2:
        flipped[1:-1] = (random_words(seed, 0, length - 2) >> numpy.uint64(63)).astype(bool)
    return numpy.flatnonzero(flipped).astype(numpy.uint64) + numpy.uint64(start)


def draw_burst(nbits: int, length: int, seed: int) -> "Words":
    """A burst of ``length`` bits at a place drawn among all that fit into ``nbits`` bits, its inside drawn as well."""
    if not 1 <= length <= nbits:
        raise KernelArgumentError(f"a burst of {length} bits does not fit into {nbits} bits")
    (start,) = draw_below(nbits - length + 1, 1, seed)
    return burst_at(int(start), length, (seed + _MIX_1) & _ALL)


def masks_of(nbytes: int, positions: "Sequence[int] | Words") -> "tuple[Words, numpy.ndarray[Any, numpy.dtype[numpy.uint8]]]":
    """The bytes to change, ascending and each once, and what to XOR into each: no two writers meet in one byte, on any device.

    Refuses a place outside the buffer, and one that is named twice: the two flips would undo each other, and be counted as two.
    """
    import numpy

    places = numpy.sort(numpy.asarray(positions, numpy.uint64))
    if places.ndim != 1:
        raise KernelArgumentError("the places of flips are a flat list of bit numbers")
    if not len(places):
        return places, numpy.empty(0, numpy.uint8)
    if int(places[-1]) >= 8 * nbytes:
        raise KernelArgumentError(f"bit {int(places[-1])} lies outside a buffer of {nbytes} bytes")
    if (places[1:] == places[:-1]).any():
        raise KernelArgumentError("a place is named twice: the second flip would undo the first")
    bytes_, first = numpy.unique(places >> numpy.uint64(3), return_index=True)
    bits = numpy.left_shift(numpy.uint8(1), (places & numpy.uint64(7)).astype(numpy.uint8))
    return bytes_, numpy.bitwise_or.reduceat(bits, first).astype(numpy.uint8)


def flip(buffer: Buffer, positions: "Sequence[int] | Words") -> None:
    """Flip these bits in place, on the CPU. Doing it again restores the buffer."""
    import numpy

    view = writable_view(buffer)
    index, mask = masks_of(len(view), positions)
    numpy.frombuffer(view, numpy.uint8)[index.astype(numpy.int64)] ^= mask
