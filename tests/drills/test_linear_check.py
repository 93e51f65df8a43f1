"""The tables of syndromes against the checksums themselves, and what the theory takes for granted about the polynomials."""

import random

import numpy
import pytest

from seawall.drills.flip_patterns import PATTERNS, Flips, Pattern
from seawall.drills.linear_check import CRC16, CRC32C, CRC64, Crc, LinearCheck, flip
from seawall.kernels.crc64 import CHECK_VALUE, POLYNOMIAL

CRCS = (CRC16, CRC32C, CRC64)
CHUNK_BYTES = 4096
CHECK_OF_123456789 = {"CRC-16": 0x2189, "CRC-32C": 0xE3069283, "CRC-64/NVME": CHECK_VALUE}
"""From the catalogue of CRCs, https://reveng.sourceforge.io/crc-catalogue/."""


def polynomial(crc: Crc) -> int:
    """With its highest term, highest first."""
    return 1 << crc.width | int(f"{crc.reflected:0{crc.width}b}"[::-1], 2)


def remainder(value: int, modulus: int) -> int:
    while value.bit_length() >= modulus.bit_length():
        value ^= modulus << (value.bit_length() - modulus.bit_length())
    return value


def product(a: int, b: int, modulus: int) -> int:
    found = 0
    for bit in range(b.bit_length()):
        if b >> bit & 1:
            found ^= a << bit
    return remainder(found, modulus)


def power_of_x(exponent: int, modulus: int) -> int:
    found, square = 1, 2
    while exponent:
        if exponent & 1:
            found = product(found, square, modulus)
        square = product(square, square, modulus)
        exponent >>= 1
    return found


@pytest.mark.parametrize("crc", CRCS, ids=lambda crc: crc.name)
def test_the_checksums_are_those_of_their_names(crc: Crc) -> None:
    found = crc.compute(bytearray(b"123456789"))
    if crc is CRC16:
        found = int(f"{found:016b}"[::-1], 2)
    assert found == CHECK_OF_123456789[crc.name]


def test_the_polynomials_are_those_of_their_names() -> None:
    assert [polynomial(crc) for crc in CRCS] == [0x11021, 0x11EDC6F41, 1 << 64 | POLYNOMIAL]


@pytest.mark.parametrize(
    ("crc", "primes"),
    [(CRC16, (7, 31, 151)), (CRC32C, ((1 << 31) - 1,)), (CRC64, (3, 5, 17, 257, 641, 65537, 6700417))],
    ids=lambda value: value.name if isinstance(value, Crc) else "",
)
def test_orders_and_parities_are_as_stated(crc: Crc, primes: tuple[int, ...]) -> None:
    modulus = polynomial(crc)
    assert crc.order == numpy.prod([int(prime) for prime in primes], dtype=object)
    assert power_of_x(crc.order, modulus) == 1
    assert all(power_of_x(crc.order // prime, modulus) != 1 for prime in primes)
    # x + 1 divides what has an even number of terms.
    assert crc.even == (modulus.bit_count() % 2 == 0)


@pytest.mark.parametrize("covered", [CHUNK_BYTES, 3577, 1])
@pytest.mark.parametrize("crc", CRCS, ids=lambda crc: crc.name)
def test_the_table_says_what_the_checksum_of_flipped_bytes_does(crc: Crc, covered: int) -> None:
    check = LinearCheck(crc, CHUNK_BYTES, covered)
    data = bytearray(random.Random(covered).randbytes(CHUNK_BYTES))
    before = bytes(data)
    for pattern in PATTERNS:
        [flips] = pattern.blocks(7, CHUNK_BYTES * 8, 200)
        assert check.disagreements(flips, 200, data) == 0
    assert data == before


def test_the_comparison_sees_a_wrong_table() -> None:
    check = LinearCheck(CRC64, CHUNK_BYTES, CHUNK_BYTES)
    check.table = numpy.roll(check.table, 1)
    [flips] = PATTERNS[0].blocks(7, CHUNK_BYTES * 8, 50)
    assert check.disagreements(flips, 50, bytearray(CHUNK_BYTES)) == 50


@pytest.mark.parametrize("crc", CRCS, ids=lambda crc: crc.name)
def test_what_the_polynomial_divides_is_missed_and_its_neighbour_is_not(crc: Crc) -> None:
    check = LinearCheck(crc, CHUNK_BYTES, CHUNK_BYTES)
    terms = [crc.width - power for power in range(crc.width + 1) if polynomial(crc) >> power & 1]
    for start in (0, 1, 13, CHUNK_BYTES * 8 - crc.width - 1):
        positions = [start + term for term in sorted(terms)]
        assert check.missed(Flips(numpy.array(positions), numpy.array([0]), 1)) == 1
        assert check.missed(Flips(numpy.array(positions[:-1]), numpy.array([0]), 1)) == 0
        data = bytearray(CHUNK_BYTES)
        whole = crc.compute(data)
        flip(data, positions)
        assert crc.compute(data) == whole


def test_two_flips_a_whole_order_apart_are_missed_by_16_bits() -> None:
    check = LinearCheck(CRC16, 8192, 8192)
    for distance, expected in ((CRC16.order - 1, 0), (CRC16.order, 1), (CRC16.order + 1, 0), (2 * CRC16.order, 1)):
        assert check.missed(Flips(numpy.array([1, 1 + distance]), numpy.array([0]), 1)) == expected


def test_an_error_in_two_chunks_is_missed_only_if_both_miss_it() -> None:
    check = LinearCheck(CRC64, CHUNK_BYTES, CHUNK_BYTES - 8)
    seen, unseen = [0], [CHUNK_BYTES * 8 - 1]
    for parts, expected in (((unseen, unseen), 1), ((seen, unseen), 0), ((unseen, seen), 0), ((seen, seen), 0)):
        assert check.missed(Flips(numpy.array([*parts[0], *parts[1]]), numpy.array([0, 1]), 2)) == expected


def test_every_single_flip_that_is_covered_is_found() -> None:
    for crc in CRCS:
        assert LinearCheck(crc, CHUNK_BYTES, CHUNK_BYTES).missed_of_all_single_flips() == 0
        assert LinearCheck(crc, CHUNK_BYTES, 1000).missed_of_all_single_flips() == (CHUNK_BYTES - 1000) * 8


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_flips_are_undone_by_themselves(pattern: Pattern) -> None:
    data = bytearray(CHUNK_BYTES)
    [flips] = pattern.blocks(3, CHUNK_BYTES * 8, 20)
    for trial in range(20):
        for positions in flips.of_trial(trial):
            flip(data, positions)
            assert int.from_bytes(data, "little").bit_count() == len(positions)
            flip(data, positions)
    assert not any(data)
