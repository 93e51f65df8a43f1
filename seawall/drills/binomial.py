"""Confidence intervals for a rate that was measured by counting."""

import math

_STEPS = 200
_PRECISE = 1e-15


def clopper_pearson(hits: int, trials: int, confidence: float) -> tuple[float, float]:
    """The exact two-sided interval for a probability, from ``hits`` in ``trials`` independent trials.

    Clopper and Pearson 1934 (Biometrika 26, 404): its ends are quantiles of beta distributions, so it holds for no hits and for few, where
    the normal approximation says nothing.
    """
    if not 0 <= hits <= trials or trials < 1 or not 0 < confidence < 1:
        raise ValueError(f"{hits} hits in {trials} trials at {confidence}")
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _quantile(tail, hits, trials - hits + 1)
    high = 1.0 if hits == trials else _quantile(1 - tail, hits + 1, trials - hits)
    return low, high


def _quantile(probability: float, a: int, b: int) -> float:
    """Where the beta distribution reaches ``probability``, to a relative 1e-15: rates are read by their order of size."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _beta_below(middle, a, b) < probability:
            low = middle
        else:
            high = middle
        if high - low <= _PRECISE * high:
            break
    return (low + high) / 2


def _beta_below(x: float, a: int, b: int) -> float:
    """The regularised incomplete beta function I_x(a, b), DLMF 8.17; the fraction of 8.17.22 converges fast below the mean."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_below(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    return math.exp(log_front) / _fraction(x, a, b)


def _fraction(x: float, a: int, b: int) -> float:
    """1 + d₁/(1 + d₂/(1 + …)) of DLMF 8.17.23, forwards, by the products of ratios of Lentz (Applied Optics 15, 668)."""
    value = upper = 1.0
    lower = 0.0
    for step in range(1, 100_000):
        half = step // 2
        if step % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        upper = 1 + term / upper
        lower = 1 / (1 + term * lower)
        value *= upper * lower
        if abs(upper * lower - 1) < _PRECISE:
            break
    return value
