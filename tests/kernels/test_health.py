"""Every pattern of the short formats, the borders of the long ones, and tensors that are cut inside a number."""

import random
from itertools import pairwise

import numpy
import pytest
import torch

from seawall.kernels.device import cpu, device_of
from seawall.kernels.errors import KernelArgumentError, SplitElementError
from seawall.kernels.health import Health, blocks_health, health
from seawall.kernels.nonfinite import count
from seawall.kernels.number_formats import FORMATS
from seawall.kernels.piecewise_health import PiecewiseHealth
from tests.kernels import oracles
from tests.kernels.agreement import some_numbers


@pytest.mark.parametrize("dtype", [name for name, form in FORMATS.items() if form.width <= 2 and not name.startswith("complex")])
def test_every_pattern_is_judged_as_torch_judges_its_value(dtype: str) -> None:
    width = FORMATS[dtype].width
    content = numpy.arange(1 << 8 * width, dtype=f"<u{width}").tobytes()
    assert health(content, dtype, histogram=True) == oracles.health(content, dtype, histogram=True)


def test_the_numbers_that_the_documents_name() -> None:
    found = health(torch.tensor([65504.0, -65504.0, 65503.0, 6e-8, 0.0, -0.0, 1.0, float("inf")]).half(), "float16")
    # 65503 rounds to 65504; 6e-8 is float16's smallest subnormal.
    assert found == Health(elements=8, positive_infinity=1, saturated=3, subnormal=1, zero=2)
    assert (found.finite, found.infinite, found.zero_share) == (False, 1, 0.25)
    assert health(b"", "float16") == Health() and Health().zero_share == 0.0 and Health().finite


@pytest.mark.parametrize("dtype", [*FORMATS])
def test_it_agrees_with_the_quick_look(dtype: str) -> None:
    draw = random.Random(dtype)
    for _ in range(20):
        content = some_numbers(dtype, draw)
        found, quick = health(content, dtype), count(content, dtype)
        assert (found.nan, found.positive_infinity, found.negative_infinity) == (
            quick.nan,
            quick.positive_infinity,
            quick.negative_infinity,
        )


def test_counts_of_blocks_add_up() -> None:
    content = some_numbers("bfloat16", random.Random(2)) * 3000
    whole = health(content, "bfloat16", histogram=True)
    assert len(content) > 1 << 18, "several blocks"
    assert whole == oracles.health(content, "bfloat16", histogram=True)
    half = len(content) // 4 * 2
    parts = [health(part, "bfloat16", histogram=True) for part in (content[:half], b"", content[half:])]
    assert sum(parts, Health()) == whole


def test_a_buffer_that_ends_inside_a_number_is_refused() -> None:
    with pytest.raises(SplitElementError, match="3 bytes end 1 bytes into a number of 2"):
        health(b"\0\0\0", "float16")


@pytest.mark.parametrize("dtype", ["int64", "float4_e2m1fn_x2", "bool"])
def test_what_has_no_nan_is_refused(dtype: str) -> None:
    with pytest.raises(KernelArgumentError, match="no floating-point type"):
        health(b"", dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "float8_e5m2"])
def test_shards_that_cut_numbers_give_what_the_whole_gives(dtype: str) -> None:
    draw = random.Random(dtype)
    for _ in range(40):
        content = some_numbers(dtype, draw)
        borders = sorted({0, len(content), *(draw.randint(0, len(content)) for _ in range(draw.randrange(8)))})
        shards = [(start, content[start:end]) for start, end in pairwise(borders)]
        draw.shuffle(shards)
        pieces = PiecewiseHealth(dtype, histogram=True, device=cpu(2))
        for start, shard in shards:
            pieces.observe(start, shard)
        assert pieces.result() == oracles.health(content, dtype, histogram=True)


def test_shards_by_themselves_would_be_judged_wrongly() -> None:
    """Ones in float16 are 00 3c 00 3c …: from the second byte on they read as 3c 00, which is subnormal."""
    ones = torch.ones(100).half().numpy().tobytes()
    assert health(ones[1:-1], "float16").subnormal == 99
    pieces = PiecewiseHealth("float16")
    pieces.observe(0, ones[:1])
    pieces.observe(1, ones[1:])
    assert pieces.result() == Health(elements=100)


def test_a_number_whose_rest_never_came_is_refused() -> None:
    pieces = PiecewiseHealth("float32")
    pieces.observe(0, bytes(6))
    with pytest.raises(SplitElementError, match="of number 1 only 2 of 4 bytes came"):
        pieces.result()
    pieces.observe(6, bytes(2))
    assert pieces.result() == Health(elements=2, zero=2)


def test_a_byte_that_comes_twice_is_refused() -> None:
    pieces = PiecewiseHealth("float32")
    pieces.observe(0, bytes(6))
    with pytest.raises(KernelArgumentError, match="byte 5 of the tensor came twice"):
        pieces.observe(5, bytes(3))


def test_blocks_of_a_stream_may_end_anywhere() -> None:
    content = some_numbers("float64", random.Random(9)) + bytes(8)
    blocks = (content[at : at + 13] for at in range(0, len(content), 13))
    assert blocks_health(blocks, "float64") == health(content, "float64")
    with pytest.raises(SplitElementError):
        blocks_health(iter([content[:13]]), "float64")


def test_a_tensor_is_judged_where_it_lies() -> None:
    tensor = torch.zeros(3, 5, dtype=torch.bfloat16)
    device = device_of(tensor)
    assert device.name == "cpu"
    assert device.health(tensor, str(tensor.dtype)) == Health(elements=15, zero=15)
