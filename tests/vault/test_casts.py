"""The cast is the one of the specification, bit by bit, and the one that frameworks do where they agree."""

import json
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.vault.casts import cast, cast_into
from seawall.vault.plane_header import Kind
from tests.vault import second_reader
from tests.vectors import casts

VECTORS = [[int(text, 16) for text in row] for row in json.loads((Path(casts.__file__).parent / "casts.json").read_text())]


def ours(patterns: list[int], kind: Kind) -> list[int]:
    raw: list[int] = numpy.frombuffer(cast(numpy.array(patterns, "<u4").tobytes(), kind), "<u2").tolist()
    return raw


def test_the_vectors() -> None:
    patterns = [x for x, _, _ in VECTORS]
    assert len(patterns) > 300
    assert ours(patterns, Kind.BFLOAT16) == [half for _, half, _ in VECTORS]
    assert ours(patterns, Kind.FLOAT16) == [half for _, _, half in VECTORS]
    assert [[x, second_reader.bfloat16(x), second_reader.float16(x)] for x in patterns] == VECTORS


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, (1 << 32) - 1), max_size=50))
def test_any_bits(patterns: list[int]) -> None:
    assert ours(patterns, Kind.BFLOAT16) == [second_reader.bfloat16(x) for x in patterns]
    assert ours(patterns, Kind.FLOAT16) == [second_reader.float16(x) for x in patterns]


@pytest.mark.parametrize("kind", [Kind.BFLOAT16, Kind.FLOAT16])
def test_a_long_buffer_is_cast_block_by_block(kind: Kind) -> None:
    words = numpy.random.default_rng(1).integers(0, 1 << 32, 100_001, numpy.uint32)
    one = getattr(second_reader, kind.name.lower())
    out = bytearray(2 * len(words))
    cast_into(words.data, kind, memoryview(out))
    chosen = [0, 32767, 32768, 65535, 65536, 99_999, 100_000]
    halves = numpy.frombuffer(out, "<u2")
    assert [int(halves[at]) for at in chosen] == [one(int(words[at])) for at in chosen]
    assert bytes(out) == b"".join(cast(words[at : at + 999].tobytes(), kind) for at in range(0, len(words), 999))


@pytest.mark.parametrize(("kind", "dtype"), [(Kind.BFLOAT16, "bfloat16"), (Kind.FLOAT16, "float16")])
def test_numbers_are_cast_as_torch_does(kind: Kind, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="the training extra is not installed")
    words = torch.randint(-(1 << 31), 1 << 31, (200_000,), generator=torch.Generator().manual_seed(1), dtype=torch.int64).to(torch.int32)
    numbers = words.view(torch.float32)
    kept = numbers[~numbers.isnan()]
    theirs = kept.to(getattr(torch, dtype)).view(torch.int16).numpy().tobytes()
    assert cast(kept.numpy().tobytes(), kind) == theirs
