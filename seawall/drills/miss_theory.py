"""How many errors of each kind a check must miss, by arithmetic.

Sources: Peterson and Brown, "Cyclic codes for error detection", Proc. IRE 49 (1961), for CRCs; McGrew and Viega, "The security and
performance of the Galois/Counter Mode of operation" (INDOCRYPT 2004), for the tag.
"""

from dataclasses import dataclass
from math import comb

from seawall.drills.flip_patterns import BORDER, LONG, LONG_BURST, ONE, SHORT, SHORT_BURST, THREE, TWO, Pattern
from seawall.drills.linear_check import Crc

EXACT, MEAN, BOUND = "exact", "mean", "at most"


@dataclass(frozen=True, slots=True)
class Expected:
    """A rate of misses. ``basis``: *exact* for the errors as they are drawn, *mean* over all polynomials or functions of the width, or
    *at most*."""

    rate: float
    basis: str


def crc_misses(crc: Crc, pattern: Pattern, chunk_bits: int) -> Expected:
    """For a CRC over whole chunks."""
    if pattern is ONE:
        return Expected(0.0, EXACT)  # x^i is no multiple of a polynomial with a term 1
    if pattern is TWO:
        pairs = sum(chunk_bits - distance for distance in range(crc.order, chunk_bits, crc.order))
        return Expected(pairs / comb(chunk_bits, 2), EXACT)
    if pattern is THREE:
        return Expected(0.0, EXACT) if crc.even else Expected(2.0**-crc.width, MEAN)
    if pattern is BORDER:
        return Expected(_both_ends_missed(crc.width), EXACT)
    shortest, longest = {SHORT: SHORT_BURST, LONG: LONG_BURST}[pattern]
    lengths = range(shortest, longest + 1)
    return Expected(sum(_burst_missed(length, crc.width) for length in lengths) / len(lengths), EXACT)


def _burst_missed(length: int, width: int) -> float:
    """The share of bursts of that length that are multiples of the polynomial: none, then the polynomial itself, then those that
    a factor with two set ends makes."""
    return 0.0 if length <= width else 2.0 ** (1 - width) if length == width + 1 else 2.0**-width


def _both_ends_missed(width: int) -> float:
    """Of a burst that a border cuts into two, one end of each part is set and the rest is free. Each part by itself must be a multiple."""
    shortest, longest = SHORT_BURST
    total = 0.0
    for length in range(shortest, longest + 1):
        both = sum(1 for cut in range(1, length) if cut > width and length - cut > width)
        total += both * 2.0 ** (-2 * width) / (length - 1)
    return total / (longest - shortest + 1)


def partial_misses(pattern: Pattern, chunk_bits: int, covered_bits: int) -> Expected:
    """For a check that misses nothing where it looks, and looks at the first ``covered_bits`` only. What a CRC-64 itself misses is left
    out: it is 2^-64."""
    rest = chunk_bits - covered_bits
    count = {ONE: 1, TWO: 2, THREE: 3}.get(pattern)
    if count is not None:
        return Expected(comb(rest, count) / comb(chunk_bits, count), EXACT)
    if pattern is BORDER:
        return Expected(0.0, EXACT)  # it reaches into the beginning of the second chunk
    shortest, longest = {SHORT: SHORT_BURST, LONG: LONG_BURST}[pattern]
    lengths = range(shortest, longest + 1)
    return Expected(sum(max(rest - length + 1, 0) / (chunk_bits - length + 1) for length in lengths) / len(lengths), EXACT)


def digest_misses(bits: int) -> Expected:
    """For a hash function that behaves as a random one."""
    return Expected(2.0**-bits, MEAN)


def tag_misses(record_bytes: int) -> Expected:
    """For an error that does not depend on the key: the tags agree only if the hash key is a root of a polynomial whose degree is the
    number of 16-byte blocks, that of the lengths counted, so for at most so many of the 2^128 keys."""
    return Expected((-(-record_bytes // 16) + 1) * 2.0**-128, BOUND)
