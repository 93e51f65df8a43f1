"""The arithmetic of a copy against numbers worked out by hand, and what must hold for any of them."""

from hypothesis import given
from hypothesis import strategies as st

from seawall.estimate.transfer import Link, Load, plan_transfer, prediction_error, sealed_size, transfer_seconds

GBIT = 10**9


def test_the_example_of_the_requirement() -> None:
    plan = plan_transfer(Load(2_800_000_000_000), Link(25 * GBIT))
    assert plan.line_seconds == plan.seconds == 896.0 and plan.mode == "full"


def test_a_small_one_is_sent_whole_although_most_of_it_is_there() -> None:
    plan = plan_transfer(Load(10 * GBIT, 10, there_bytes=9 * GBIT, there_objects=9), Link(GBIT))
    assert (plan.mode, plan.send_bytes, plan.seconds) == ("full", 10 * GBIT, 80.0)


def test_five_minutes_are_the_border() -> None:
    link = Link(8 * GBIT)
    there = {"there_bytes": GBIT, "there_objects": 1}
    assert plan_transfer(Load(300 * GBIT - 1, 300, **there), link).mode == "full"
    border = plan_transfer(Load(300 * GBIT, 300, **there), link)
    assert (border.mode, border.send_bytes, border.send_objects, border.full_seconds) == ("incremental", 299 * GBIT, 299, 300.0)


def test_nothing_to_send() -> None:
    plan = plan_transfer(Load(GBIT, 4, there_bytes=GBIT, there_objects=4), Link(GBIT))
    assert (plan.mode, plan.seconds, plan.send_bytes) == ("nothing", 0.0, 0)


def test_a_long_way_is_filled_by_windows_and_not_by_the_link() -> None:
    # 16 streams with 4 MiB on the way each, every 100 ms: 5.37 Gbit/s of the 25.
    link = Link(25 * GBIT, round_trip_seconds=0.1)
    assert link.usable_bits_per_second == 16 * (4 << 20) * 8 * 10
    plan = plan_transfer(Load(2_800_000_000_000, 700), link)
    # 700 objects of 4 GB: 3 requests each and one for every 8 MiB, 16 at a time, 0.1 s a turn.
    assert plan.seconds == 2_800_000_000_000 * 8 / (16 * (4 << 20) * 80) + (2100 + 2_800_000_000_000 // (8 << 20)) / 16 * 0.1
    assert any("streams" in reason for reason in plan.reasons)


def test_codec_gain() -> None:
    assert sealed_size(1000, 0.8) == 800 and sealed_size(1001, 0.9) == 901 and sealed_size(2**63, 1.0) == 2**63


def test_error_of_a_prediction() -> None:
    assert prediction_error(110, 100) == 0.1 and prediction_error(90, 100) == -0.1 and prediction_error(1, 0) == 0


@given(
    st.integers(1, 10**16), st.integers(1, 10**5), st.floats(0, 1), st.integers(1, 10**12),
    st.floats(0, 1, allow_subnormal=False), st.integers(1, 256),
)  # fmt: skip
def test_for_any_numbers(nbytes: int, objects: int, share: float, rate: int, trip: float, transfers: int) -> None:
    link = Link(rate, trip, transfers)
    load = Load(nbytes, objects, there_bytes=int(nbytes * share), there_objects=int(objects * share))
    plan = plan_transfer(load, link)
    assert 0 <= plan.line_seconds <= plan.seconds <= plan.full_seconds
    assert plan.send_bytes in (0, nbytes, nbytes - load.there_bytes)
    assert transfer_seconds(nbytes, objects, link) <= transfer_seconds(nbytes + (8 << 20), objects, link)
    faster = plan_transfer(load, Link(rate * 2, trip, transfers))
    assert faster.full_seconds <= plan.full_seconds
