"""Polynomials over GF(2) modulo that of CRC-64/NVME, on the host: the constants that the kernels look up.

Reflected, as in the CRC's definition: bit 63 is the coefficient of x^0, bit 0 that of x^63.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from seawall.kernels.crc64 import POLYNOMIAL, combine

if TYPE_CHECKING:
    import numpy

    Words = numpy.ndarray[Any, numpy.dtype[numpy.uint64]]

REFLECTED = int(f"{POLYNOMIAL:064b}"[::-1], 2)
ALL_ONES = (1 << 64) - 1
ONE = 1 << 63


def multiply(a: int, b: int) -> int:
    """a·b mod P."""
    product = 0
    for _ in range(64):
        if a >> 63:
            product ^= b
        a = a << 1 & ALL_ONES
        b = b >> 1 ^ (REFLECTED if b & 1 else 0)
    return product


@cache
def squares() -> tuple[int, ...]:
    """x^(2^k) mod P for k from 0 to 63."""
    powers = [ONE >> 1]
    while len(powers) < 64:
        powers.append(multiply(powers[-1], powers[-1]))
    return tuple(powers)


def power_of_x(exponent: int) -> int:
    """x^exponent mod P, for exponents below 2^64."""
    product = ONE
    for k, square in enumerate(squares()):
        if exponent >> k & 1:
            product = multiply(product, square)
    return product


@cache
def row_factor(lanes: int) -> "Words":
    """256 words for ``crc64_chunks``: 16 tables, one a nibble j of a state, with (v << 4j)·x^(64·lanes) at place v."""
    import numpy

    factor = power_of_x(64 * lanes)
    of_bit = [multiply(1 << bit, factor) for bit in range(64)]
    table = numpy.zeros(256, numpy.uint64)
    for place in range(256):
        nibble, value = divmod(place, 16)
        word = 0
        for bit in range(4):
            if value >> bit & 1:
                word ^= of_bit[4 * nibble + bit]
        table[place] = word
    return table


@cache
def lane_factor(lanes: int) -> "Words":
    """What each lane's sum is multiplied by for ``crc64_chunks``: x^(64·(lanes − t)) for lane t."""
    import numpy

    step = power_of_x(64)
    powers = [step]
    while len(powers) < lanes:
        powers.append(multiply(powers[-1], step))
    return numpy.array(powers[::-1], numpy.uint64)


def crc_of_remainder(remainder: int, nbytes: int) -> int:
    """The CRC of a message from its raw remainder: the initial all ones stand before the message, the final ones are added.

    ``combine(a, b, n)`` is a·x^(8n) + b, for any two words and n > 0; so ``nbytes`` is not 0 either."""
    return combine(ALL_ONES, remainder ^ ALL_ONES, nbytes)
