"""Bits and bytes, GB and GiB are kept apart, exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.errors import UsageError
from seawall.estimate.units import bytes_text, parse_bits_per_second, parse_bytes, parse_seconds, rate_text, seconds_text


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0), ("17", 17), ("512 B", 512), ("2.8TB", 2_800_000_000_000), ("16 GiB", 16 << 30), ("1.5kB", 1500), ("1KB", 1000),
        ("9007199254740993B", 9007199254740993), ("8EiB", 8 << 60), ("0.5KiB", 512),
    ],
)  # fmt: skip
def test_sizes(text: str, nbytes: int) -> None:
    assert parse_bytes(text) == nbytes


@pytest.mark.parametrize("text", ["", "2.8", "2.8Tb", "2 GBB", "-1B", "1e9B", "0.1B", "12 g", "16gib", "GB"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(UsageError):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("25Gbit/s", 25 * 10**9), ("25 Gbps", 25 * 10**9), ("3.1GB/s", 24_800_000_000), ("1Gib/s", 1 << 30), ("300 bit/s", 300)],
)
def test_rates(text: str, rate: int) -> None:
    assert parse_bits_per_second(text) == rate


@pytest.mark.parametrize("text", ["", "25", "25G", "25GB", "25Gbit", "0bit/s", "0.5bit/s"])
def test_no_rates(text: str) -> None:
    with pytest.raises(UsageError):
        parse_bits_per_second(text)


@given(st.integers(0, 10**20))
def test_a_size_is_read_back_to_three_digits(nbytes: int) -> None:
    shown = bytes_text(nbytes)
    if "e+" not in shown:
        assert abs(parse_bytes(shown) - nbytes) * 200 <= nbytes


def test_times() -> None:
    assert [parse_seconds(text) for text in ("80ms", "0.08s", "2min", "12 h")] == [0.08, 0.08, 120.0, 43200.0]
    for text in ("80", "-1s", "1d", ""):
        with pytest.raises(UsageError):
            parse_seconds(text)


def test_texts() -> None:
    assert [bytes_text(n) for n in (999, 999_499, 999_500, 2_800_000_000_000)] == ["999 B", "999 kB", "1 MB", "2.8 TB"]
    assert rate_text(25 * 10**9) == "25 Gbit/s"
    assert [seconds_text(s) for s in (2.4, 59.4, 896, 7260, 273600)] == ["2.4 s", "59.4 s", "14 min 56 s", "2 h 1 min", "3 d 4 h"]
