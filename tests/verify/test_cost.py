"""What verification costs: a line through measurements, never below zero, and the error of its own prediction."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.verify.cost import CostModel, Measured, Work, fit, fit_all, measurements, predict
from seawall.verify.levels import Level
from seawall.verify.proofs import FAILED, OK, Proof
from tests.verify.judging import proof, store_id

GB = 1e9


def measured(requests: int, nbytes: int, per_request: float, bytes_per_second: float) -> Measured:
    return Measured(requests, nbytes, requests * per_request + nbytes / bytes_per_second)


SHAPES = [(10, int(1e6)), (12, int(80e6)), (600, int(5e9)), (50_000, int(2e9)), (40, int(1e9))]


@pytest.mark.parametrize(("per_request", "speed"), [(0.0002, 6.2 * GB), (0.03, 0.37 * GB), (0.0, 4.8 * GB), (0.08, 1e15)])
def test_a_medium_is_known_again(per_request: float, speed: float) -> None:
    model = fit([measured(requests, nbytes, per_request, speed) for requests, nbytes in SHAPES])
    assert model is not None and model.samples == len(SHAPES)
    for requests, nbytes in [(100, int(1e9)), (100_000, int(1e8)), (5, int(9e10))]:
        truth = measured(requests, nbytes, per_request, speed).seconds
        assert model.predict(requests, nbytes) == pytest.approx(truth, rel=0.02)
    assert model.relative_error is not None and model.relative_error < 0.05


def test_one_measurement_gives_throughput_and_none_gives_nothing() -> None:
    assert fit([]) is None
    model = fit([Measured(10, int(2e9), 4.0)])
    assert model == CostModel(0.0, pytest.approx(2e-9), 1, None)
    assert model.bytes_per_second == pytest.approx(0.5e9)


@given(
    st.lists(
        st.builds(Measured, st.integers(0, 10**6), st.integers(0, 10**14), st.floats(0.001, 10**6, allow_nan=False)),
        min_size=1,
        max_size=12,
    )
)
@settings(deadline=None)
def test_nothing_costs_less_than_nothing(samples: list[Measured]) -> None:
    model = fit(samples)
    assert model is not None
    assert model.seconds_per_request >= 0 and model.seconds_per_byte >= 0
    assert model.relative_error is None or model.relative_error >= 0


def test_noise_shows_in_the_error() -> None:
    noisy = [replace(each, seconds=each.seconds * factor) for each, factor in zip(
        [measured(requests, nbytes, 0.001, GB) for requests, nbytes in SHAPES], [1.4, 0.7, 1.3, 0.8, 1.2], strict=True
    )]  # fmt: skip
    model = fit(noisy)
    assert model is not None and model.relative_error is not None and 0.1 < model.relative_error < 3


def costing(at: float, store: str, level: Level, result: str = OK, **evidence: str) -> Proof:
    return replace(proof(at, store, level, result), evidence=evidence)


def test_measurements_are_what_proofs_say() -> None:
    proofs = [
        costing(2, "a", Level.L2, requests="20", read_bytes="2000", seconds="2.000"),
        costing(1, "a", Level.L2, requests="10", read_bytes="1000", seconds="1.000"),
        costing(1, "b", Level.L2, requests="10", read_bytes="1000", seconds="9.000"),
        costing(1, "a", Level.L3, requests="10", read_bytes="1000", seconds="5.000"),
        costing(3, "a", Level.L2, FAILED, requests="10", read_bytes="1000", seconds="0.100"),
        costing(4, "a", Level.L2, requests="10"),
        costing(5, "a", Level.L2, requests="10", read_bytes="-3", seconds="1.000"),
        costing(6, "a", Level.L2, requests="10", read_bytes="1000", seconds="inf"),
        costing(7, "a", Level.L2, requests="10", read_bytes="1000", seconds="nan"),
    ]
    assert measurements(proofs, store_id("a"), Level.L2) == [Measured(10, 1000, 1.0), Measured(20, 2000, 2.0)]


def test_a_plan_is_the_sum_of_its_readings_and_says_what_it_does_not_know() -> None:
    proofs = [
        costing(1, "a", Level.L2, requests="0", read_bytes="1000", seconds="1.000"),
        costing(1, "a", Level.L3, requests="0", read_bytes="1000", seconds="3.000"),
        costing(1, "b", Level.L2, requests="0", read_bytes="1000", seconds="10.000"),
    ]
    a, b, c = (store_id(name) for name in "abc")
    models = fit_all(proofs, [a, b, c])
    plan = [Work(a, Level.L2, 1, 2000), Work(a, Level.L4, 1, 1000), Work(b, Level.L2, None, 500)]
    assert predict(models, plan).seconds == pytest.approx(2 + 3 + 5), "one pass proves L2 and what is above it"
    assert predict(models, plan).unknown == 0
    unknown = [Work(c, Level.L2, 1, 1), Work(b, Level.L3, 1, 1), Work(a, Level.L2, 1, None)]
    assert predict(models, unknown).unknown == 3
