"""Counting values in raw bytes, held against numpy's own types, and for the others against a decoder written from the definitions."""

import math
import struct
from collections.abc import Callable

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.verify import value_counts
from seawall.verify.value_counts import SpanValues, ValueCounts, ValueSpan, count_values, width_of


def minifloat(exponent_bits: int, mantissa_bits: int, bias: int, kind: str) -> Callable[[int], float]:
    """One byte → its value, by the definition of the type."""

    def decode(byte: int) -> float:
        sign = -1.0 if byte >> 7 else 1.0
        exponent, mantissa = (byte & 0x7F) >> mantissa_bits, byte & ((1 << mantissa_bits) - 1)
        top = (1 << exponent_bits) - 1
        if kind == "ieee" and exponent == top:
            return math.nan if mantissa else sign * math.inf
        if kind == "fn" and byte & 0x7F == 0x7F:
            return math.nan
        if kind == "fnuz" and byte == 0x80:
            return math.nan
        if exponent == 0:
            return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
        return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)

    return decode


NARROW = {
    "float8_e5m2": minifloat(5, 2, 15, "ieee"),
    "float8_e4m3fn": minifloat(4, 3, 7, "fn"),
    "float8_e4m3fnuz": minifloat(4, 3, 8, "fnuz"),
    "float8_e5m2fnuz": minifloat(5, 2, 16, "fnuz"),
    "float8_e8m0fnu": lambda byte: math.nan if byte == 0xFF else 2.0 ** (byte - 127),
}
WIDE = {
    "float64": (numpy.float64, 1),
    "float32": (numpy.float32, 1),
    "float16": (numpy.float16, 1),
    "complex64": (numpy.float32, 2),
    "complex128": (numpy.float64, 2),
    "complex32": (numpy.float16, 2),
}


def expected(values: list[float], largest: float) -> ValueCounts:
    return ValueCounts(
        len(values),
        sum(value == 0 for value in values),
        sum(abs(value) == largest for value in values),
        sum(math.isnan(value) for value in values),
        values.count(math.inf),
        values.count(-math.inf),
    )


@pytest.mark.parametrize("dtype", NARROW)
def test_every_pattern_of_one_byte(dtype: str) -> None:
    values = [NARROW[dtype](byte) for byte in range(256)]
    largest = max(value for value in values if math.isfinite(value))
    assert count_values(bytes(range(256)), dtype) == expected(values, largest)


def test_every_pattern_of_half_precision_and_bfloat16() -> None:
    patterns = numpy.arange(1 << 16, dtype="<u2")
    assert count_values(patterns.tobytes(), "float16") == expected(patterns.view("<f2").astype(float).tolist(), 65504.0)
    with numpy.errstate(invalid="ignore"):
        wide = (patterns.astype("<u4") << 16).view("<f4").astype(float).tolist()
    assert count_values(patterns.tobytes(), "bfloat16") == expected(wide, struct.unpack("<f", b"\0\0\x7f\x7f")[0])


ODD = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.5, 65504.0, -65504.0, 3.4028234663852886e38, 1.7976931348623157e308, 1e-40]


@given(st.sampled_from(sorted(WIDE)), st.lists(st.one_of(st.sampled_from(ODD), st.floats(width=16)), max_size=50))
@settings(deadline=None)
def test_wider_types(dtype: str, values: list[float]) -> None:
    kind, parts = WIDE[dtype]
    with numpy.errstate(over="ignore"):
        array = numpy.array(values * parts, dtype=kind)
    largest = float(numpy.finfo(kind).max)
    assert count_values(array.tobytes(), dtype) == expected(array.astype(float).tolist(), largest)


@pytest.mark.parametrize(
    ("values", "nonfinite"),
    [
        ([0.0, -math.inf, -math.inf], 0),
        ([-math.inf], 0),
        ([0.0, math.inf], 1),
        ([1.0, -math.inf], 1),
        ([0.0, -math.inf, math.nan], 2),
        ([1.0, 2.0], 0),
    ],
)
def test_an_attention_mask_is_not_odd(values: list[float], nonfinite: int) -> None:
    assert count_values(numpy.array(values, "<f4").tobytes(), "float32").nonfinite == nonfinite


def test_types_without_such_values_are_not_counted() -> None:
    assert [width_of(dtype) for dtype in ("int64", "bool", "float4_e2m1fn_x2", "qint8", "unheard of")] == [None] * 5
    assert width_of("complex128") == 8 and width_of("float8_e5m2") == 1


SPANS = [ValueSpan(0, 40, "float32"), ValueSpan(3, 33, "float8_e5m2"), ValueSpan(20, 80, "float64"), ValueSpan(60, 0, "float32")]
SPANS += [ValueSpan(100, 64, "float16"), ValueSpan(100, 64, "complex64")]


@given(st.lists(st.integers(1, 37), max_size=40), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_chunks_may_end_anywhere(cuts: list[int], random: object) -> None:
    data = bytes(random.getrandbits(8) for _ in range(200))  # type: ignore[attr-defined]
    spans = SpanValues(SPANS)
    at = 0
    for length in [*cuts, len(data)]:
        chunk = bytearray(data[at : at + length])
        if chunk:
            spans.observe(at, memoryview(chunk))
            # Chunks are only lent.
            chunk[:] = bytes(len(chunk))
        at += length
    for span, counts in zip(SPANS, spans.counts, strict=True):
        assert counts == count_values(data[span.start : span.start + span.nbytes], span.dtype)


def test_blocks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    values = numpy.random.default_rng(7).integers(0, 1 << 16, 10_000, dtype="<u2").tobytes()
    whole = count_values(values, "float16")
    monkeypatch.setattr(value_counts, "BLOCK_BYTES", 64)
    assert count_values(values, "float16") == whole and whole.nan
