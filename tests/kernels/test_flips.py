"""Draws that are uniform, distinct and the same everywhere; bursts as a CRC's guarantee means them."""

from collections import Counter
from itertools import combinations

import numpy
import pytest
import torch

from seawall.kernels.crc64 import crc64
from seawall.kernels.errors import KernelArgumentError
from seawall.kernels.flips import burst_at, draw_below, draw_burst, draw_flips, flip, masks_of, random_words


def test_the_sequence_is_splitmix64() -> None:
    """The first words of seed 1234567, as published with the reference code, and that a part is the same part of the whole."""
    first = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert random_words(1234567, 0, 5).tolist() == first
    assert random_words(1234567, 3, 2).tolist() == first[3:]


def test_the_draws_of_a_seed_never_change() -> None:
    """Evidence names a seed. These numbers were computed once; a release that draws others makes old evidence worthless."""
    assert draw_flips(1 << 20, 3, 1).tolist() == [594082, 782008, 1018170]
    assert draw_burst(1000, 9, 5).tolist() == [396, 398, 399, 400, 401, 403, 404]
    assert draw_flips(1 << 20, 3, 2).tolist() != [594082, 782008, 1018170]


def test_numbers_below_a_bound_are_uniform() -> None:
    drawn = Counter(draw_below(6, 60_000, 3).tolist())
    assert set(drawn) == set(range(6))
    # Six standard deviations of a count of 10,000.
    assert all(abs(count - 10_000) < 6 * (60_000 * 5 / 36) ** 0.5 for count in drawn.values())
    assert draw_below(1, 4, 0).tolist() == [0, 0, 0, 0]
    assert draw_below(1 << 64, 3, 0).tolist() == random_words(0, 0, 3).tolist()


def test_every_set_of_places_is_as_likely() -> None:
    drawn = Counter(tuple(draw_flips(5, 2, seed).tolist()) for seed in range(3000))
    assert set(drawn) == set(combinations(range(5), 2))
    assert all(abs(count - 300) < 6 * (3000 * 0.1 * 0.9) ** 0.5 for count in drawn.values())


@pytest.mark.parametrize(("nbits", "count"), [(10, 0), (10, 4), (10, 6), (10, 10), (1, 1), (100_000, 2000)])
def test_places_are_different_and_in_order(nbits: int, count: int) -> None:
    places = draw_flips(nbits, count, 8).tolist()
    assert places == sorted(set(places)) and len(places) == count and all(0 <= place < nbits for place in places)


@pytest.mark.parametrize("length", [1, 2, 3, 64, 65, 1000])
def test_a_burst_begins_and_ends_with_a_flip(length: int) -> None:
    for seed in range(20):
        places = draw_burst(1000, length, seed).tolist()
        assert places[-1] - places[0] == length - 1 and places[-1] < 1000
    assert burst_at(7, length).tolist() == list(range(7, 7 + length))


def test_a_burst_of_64_bits_is_found_by_the_crc() -> None:
    content = bytes(range(200))
    for seed in range(200):
        changed = bytearray(content)
        flip(changed, draw_burst(8 * len(content), 1 + seed % 64, seed))
        assert crc64(changed) != crc64(content)


def test_flipping_again_restores() -> None:
    tensor = torch.arange(20, dtype=torch.float32)
    places = draw_flips(20 * 32, 100, 1)
    flip(tensor, places)
    assert not torch.equal(tensor, torch.arange(20, dtype=torch.float32))
    flip(tensor, places)
    assert torch.equal(tensor, torch.arange(20, dtype=torch.float32))


def test_bits_of_one_byte_are_one_change() -> None:
    index, mask = masks_of(4, [31, 0, 7, 9])
    assert (index.tolist(), mask.tolist()) == ([0, 1, 3], [0x81, 2, 0x80])


@pytest.mark.parametrize(("positions", "says"), [([32], "bit 32 lies outside"), ([3, 3], "named twice"), ([[1], [2]], "flat list")])
def test_places_that_mean_nothing_are_refused(positions: list[int], says: str) -> None:
    with pytest.raises(KernelArgumentError, match=says):
        flip(bytearray(4), positions)


def test_memory_that_may_not_change_is_refused() -> None:
    with pytest.raises(KernelArgumentError, match="read-only"):
        flip(bytes(4), [0])
    fixed = numpy.zeros(4, numpy.uint8)
    fixed.flags.writeable = False
    with pytest.raises(KernelArgumentError, match="read-only"):
        flip(fixed, [0])


@pytest.mark.parametrize(
    "call", [lambda: draw_flips(3, 4, 0), lambda: draw_burst(3, 4, 0), lambda: draw_below(0, 1, 0), lambda: burst_at(-1, 2)]
)
def test_draws_that_cannot_be_are_refused(call: object) -> None:
    with pytest.raises(KernelArgumentError):
        call()
