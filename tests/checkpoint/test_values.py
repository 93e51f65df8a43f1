"""Counting what is not finite agrees with torch, for every pattern of the small types and samples of the large ones."""

import pytest
import torch

from seawall.kernels.nonfinite import Finiteness, count

SMALL = (
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
    torch.float16,
    torch.bfloat16,
)
LARGE = (torch.float32, torch.float64)


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype", SMALL)
def test_every_pattern(dtype: torch.dtype) -> None:
    width = dtype.itemsize
    bits = torch.arange(1 << (8 * width), dtype=torch.int32).to(torch.uint8 if width == 1 else torch.uint16)
    values = bits.view(dtype).to(torch.float32)
    found = count(bits.numpy().tobytes(), name(dtype))
    assert found.nan == int(values.isnan().sum())
    assert found.positive_infinity == int((values == float("inf")).sum())
    assert found.negative_infinity == int((values == float("-inf")).sum())
    assert found.other_than_zero == int((values.isfinite() & (values != 0)).sum())


@pytest.mark.parametrize("dtype", LARGE)
def test_samples(dtype: torch.dtype) -> None:
    values = torch.randn(1000, generator=torch.Generator().manual_seed(1)).to(dtype)
    assert count(values.numpy().tobytes(), name(dtype)).sound
    values[[3, 5, 7, 11]] = torch.tensor([float("nan"), float("inf"), float("-inf"), -0.0]).to(dtype)
    found = count(values.numpy().tobytes(), name(dtype))
    assert (found.nan, found.positive_infinity, found.negative_infinity, found.other_than_zero) == (1, 1, 1, 996)


def test_complex_numbers_are_two_reals() -> None:
    values = torch.tensor([1 + 1j, complex(0, float("nan")), complex(float("inf"), 0)], dtype=torch.complex64)
    found = count(values.numpy().tobytes(), "complex64")
    assert (found.nan, found.positive_infinity) == (1, 1)


@pytest.mark.parametrize("dtype", ["int32", "bool", "uint8", "float4_e2m1fn_x2", "qint8"])
def test_types_that_are_always_finite(dtype: str) -> None:
    assert count(b"\xff" * 64, dtype) == Finiteness()


def test_no_elements() -> None:
    assert count(b"", "float32").sound


def test_counts_of_blocks_add_up() -> None:
    assert Finiteness(1, 2, 3, 4) + Finiteness(10, 20, 30, 40) == Finiteness(11, 22, 33, 44)
