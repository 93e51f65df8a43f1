"""Errors are of the kind that they are said to be, spread as they are said to be, and the same for the same seed."""

import numpy
import pytest

from seawall.drills.flip_patterns import BLOCK_TRIALS, BORDER, LONG, LONG_BURST, PATTERNS, SHORT, SHORT_BURST, THREE, TWO, Flips, Pattern

BITS = 4096 * 8


def errors(pattern: Pattern, chunk_bits: int, trials: int, seed: int = 1) -> list[list[list[int]]]:
    return [flips.of_trial(trial) for flips in pattern.blocks(seed, chunk_bits, trials) for trial in range(flips.trials)]


@pytest.mark.parametrize(("pattern", "count"), [(PATTERNS[0], 1), (TWO, 2), (THREE, 3)], ids=["1", "2", "3"])
def test_scattered_flips_are_as_many_different_bits(pattern: Pattern, count: int) -> None:
    # Of five bits, so that a bit drawn twice and an uneven choice would show.
    drawn = [frozenset(positions) for (positions,) in errors(pattern, 5, 20_000)]
    assert {len(bits) for bits in drawn} == {count}
    sets = {bits: drawn.count(bits) for bits in set(drawn)}
    assert len(sets) == {1: 5, 2: 10, 3: 10}[count]
    even = 20_000 / len(sets)
    # Five standard deviations.
    assert all(abs(seen - even) < 5 * even**0.5 for seen in sets.values())


@pytest.mark.parametrize(("pattern", "lengths"), [(SHORT, SHORT_BURST), (LONG, LONG_BURST)], ids=["short", "long"])
def test_bursts_have_every_length_and_both_ends(pattern: Pattern, lengths: tuple[int, int]) -> None:
    drawn = [positions for (positions,) in errors(pattern, 300, 20_000)]
    assert {positions[-1] - positions[0] + 1 for positions in drawn} == set(range(lengths[0], lengths[1] + 1))
    assert all(positions == sorted(set(positions)) and positions[0] >= 0 and positions[-1] < 300 for positions in drawn)
    assert {0, 299} <= {end for positions in drawn for end in (positions[0], positions[-1])}
    inner = [len(positions) - 2 for positions in drawn if positions[-1] - positions[0] + 1 == lengths[1]]
    # Half of the bits between the ends.
    assert sum(inner) / len(inner) == pytest.approx((lengths[1] - 2) / 2, rel=0.1)


def test_a_burst_across_a_border_ends_one_chunk_and_begins_the_next() -> None:
    drawn = errors(BORDER, BITS, 20_000)
    assert all(len(parts) == 2 and parts[0] and parts[1] for parts in drawn)
    lengths = {BITS - before[0] + after[-1] + 1 for before, after in drawn}
    assert lengths == set(range(2, 65))
    assert all(before[0] >= BITS - 63 and before[-1] < BITS and after[-1] < 63 for before, after in drawn)
    assert {len(before) for before, _ in drawn if before[0] == BITS - 1} == {1}


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_a_seed_gives_the_same_errors_and_another_seed_others(pattern: Pattern) -> None:
    first, again, other = (errors(pattern, BITS, 100, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_blocks_add_up() -> None:
    assert [flips.trials for flips in TWO.blocks(1, BITS, BLOCK_TRIALS + 3)] == [BLOCK_TRIALS, 3]


def test_the_last_trial_ends_with_the_positions() -> None:
    flips = Flips(numpy.array([1, 2, 3, 4, 5]), numpy.array([0, 1, 3, 4]), 2)
    assert [flips.of_trial(trial) for trial in range(flips.trials)] == [[[1], [2, 3]], [[4], [5]]]
