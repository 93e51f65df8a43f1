"""The interval against the sums of the binomial distribution that define it."""

from math import comb

import pytest

from seawall.drills.binomial import clopper_pearson


def at_most(hits: int, trials: int, rate: float) -> float:
    return sum(comb(trials, i) * rate**i * (1 - rate) ** (trials - i) for i in range(hits + 1))


@pytest.mark.parametrize(("hits", "trials"), [(1, 1), (3, 10), (25, 60), (59, 60), (1, 60), (40, 80)])
def test_at_its_ends_the_count_is_just_believable(hits: int, trials: int) -> None:
    low, high = clopper_pearson(hits, trials, 0.99)
    assert 1 - at_most(hits - 1, trials, low) == pytest.approx(0.005, rel=1e-9)
    assert high == 1.0 if hits == trials else at_most(hits, trials, high) == pytest.approx(0.005, rel=1e-9)


@pytest.mark.parametrize("trials", [1, 1000, 10**9])
def test_no_hits_leave_a_rate_that_is_not_zero(trials: int) -> None:
    low, high = clopper_pearson(0, trials, 0.95)
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025 ** (1 / trials), rel=1e-6)


def test_of_many_it_is_the_normal_one() -> None:
    low, high = clopper_pearson(1_065_352, 8_388_608, 0.95)
    rate, half = 0.127, 1.959964 * (0.127 * 0.873 / 8_388_608) ** 0.5
    assert (low, high) == (pytest.approx(rate - half, rel=1e-5), pytest.approx(rate + half, rel=1e-5))


@pytest.mark.parametrize(("hits", "trials", "confidence"), [(-1, 10, 0.9), (11, 10, 0.9), (0, 0, 0.9), (0, 10, 1.0)])
def test_what_is_no_measurement_has_none(hits: int, trials: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="trials"):
        clopper_pearson(hits, trials, confidence)
