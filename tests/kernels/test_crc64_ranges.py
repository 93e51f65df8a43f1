"""Ranges that overlap in every way, the plan of the GPU's chunks, and the algebra that puts them together."""

import random

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.kernels import polynomials
from seawall.kernels.chunk_plan import FOLD_WORD_BYTES, chunk_bytes_for, fold_step_bytes, plan_chunks
from seawall.kernels.crc64 import combine, crc64
from seawall.kernels.crc64_ranges import PIECE_BYTES, combine_all, crc64_ranges, cut
from seawall.kernels.errors import KernelArgumentError

SIZE = 300
CONTENT = random.Random(1).randbytes(SIZE)
RANGES = st.lists(st.integers(0, SIZE).flatmap(lambda start: st.tuples(st.just(start), st.integers(0, SIZE - start))), max_size=10)


@settings(max_examples=200, deadline=None)
@given(RANGES)
def test_pieces_cover_the_union_once(ranges: list[tuple[int, int]]) -> None:
    cuts = cut(SIZE, [start for start, _ in ranges], [length for _, length in ranges])
    read = [0] * SIZE
    for start, length in cuts.pieces:
        assert length > 0
        for place in range(start, start + length):
            read[place] += 1
    wanted = {place for start, length in ranges for place in range(start, start + length)}
    assert read == [int(place in wanted) for place in range(SIZE)]


@settings(max_examples=200, deadline=None)
@given(RANGES, st.integers(1, 3))
def test_every_range_has_its_own_sum(ranges: list[tuple[int, int]], threads: int) -> None:
    given_ = crc64_ranges(CONTENT, [start for start, _ in ranges], [length for _, length in ranges], threads=threads)
    assert given_ == [crc64(CONTENT[start : start + length]) for start, length in ranges]


def test_a_long_piece_is_shared_by_the_threads() -> None:
    content = bytes(PIECE_BYTES) + b"behind the border"
    assert len(cut(len(content), [0], [len(content)], PIECE_BYTES).pieces) == 2
    assert crc64_ranges(content, [0, 5], [len(content), 3], threads=2) == [crc64(content), crc64(content[5:8])]


def test_one_pass_gives_tensors_file_and_object() -> None:
    """Tensors of one file, the file, and an S3 object of three parts whose borders lie elsewhere."""
    lengths = [100, 0, 150, 50]
    of_tensors = crc64_ranges(CONTENT, [0, 100, 100, 250], lengths)
    parts = crc64_ranges(CONTENT, [0, 128, 256], [128, 128, 44])
    assert combine_all(of_tensors, lengths) == combine_all(parts, [128, 128, 44]) == crc64(CONTENT)
    assert combine_all([], []) == 0 == crc64(b"")


def test_tensors_and_arrays_are_seen_without_a_copy() -> None:
    tensor = torch.arange(50, dtype=torch.bfloat16).reshape(5, 10)
    content = tensor.view(torch.uint8).numpy().tobytes()
    assert crc64_ranges(tensor, [0, 10], [100, 7]) == [crc64(content), crc64(content[10:17])]
    assert crc64_ranges(torch.zeros(()), [0], [4]) == [crc64(bytes(4))]
    assert crc64_ranges(torch.zeros(0), [0], [0]) == [0]
    assert crc64_ranges(numpy.arange(5, dtype="<u4"), [4], [4]) == [crc64(b"\1\0\0\0")]


@pytest.mark.parametrize(
    ("buffer", "says"),
    [
        (torch.zeros(4, 4).t(), "not contiguous"),
        (numpy.zeros((4, 4)).T, "not contiguous"),
        (memoryview(b"abcd")[::2], "not contiguous"),
        (torch.zeros(4, device="meta"), "not in host memory|meta"),
        ("text", "no buffer"),
    ],
)
def test_what_is_no_flat_memory_is_refused(buffer: object, says: str) -> None:
    with pytest.raises((KernelArgumentError, ValueError, BufferError), match=says):
        crc64_ranges(buffer, [0], [1])


@pytest.mark.parametrize(("offset", "length"), [(-1, 2), (0, SIZE + 1), (SIZE, 1), (1, -1)])
def test_a_range_outside_the_buffer_is_refused(offset: int, length: int) -> None:
    with pytest.raises(KernelArgumentError, match="leaves the buffer"):
        crc64_ranges(CONTENT, [offset], [length])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 40_000)), max_size=6),
    st.integers(0, 1 << 40),
    st.integers(1, 5),
    st.sampled_from([32, 64]),
)
def test_chunks_cover_every_piece_once(gaps: list[tuple[int, int]], address: int, steps: int, lanes: int) -> None:
    pieces, end = [], 0
    for gap, length in gaps:
        pieces.append((end + gap, length))
        end += gap + length
    plan = plan_chunks(pieces, address, steps * fold_step_bytes(lanes), lanes)
    of_piece: dict[int, list[tuple[int, int]]] = {number: [] for number in range(len(pieces))}
    for chunks in (plan.direct, plan.folded):
        for offset, length, after, piece in zip(chunks.offset, chunks.length, chunks.after, chunks.piece, strict=True):
            assert 0 < length <= steps * fold_step_bytes(lanes)
            assert offset + length + after == sum(pieces[piece])
            of_piece[piece].append((offset, length))
    for number, (start, length) in enumerate(pieces):
        for offset, chunk in sorted(of_piece[number]):
            assert offset == start
            start, length = start + chunk, length - chunk
        assert length == 0
    for offset, length in zip(plan.folded.offset, plan.folded.length, strict=True):
        assert (address + offset) % FOLD_WORD_BYTES == 0 and length % fold_step_bytes(lanes) == 0


def test_chunk_sizes_grow_with_the_buffer_within_bounds() -> None:
    sizes = [chunk_bytes_for(total, 1056, 256) for total in (0, 1 << 20, 1 << 30, 8 << 30, 1 << 40)]
    assert sizes == sorted(sizes) and all(size % fold_step_bytes(256) == 0 for size in sizes)
    assert (sizes[0], sizes[-1]) == (256 << 10, 8 << 20)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, polynomials.ALL_ONES), st.integers(1, 1 << 50), st.integers(0, polynomials.ALL_ONES))
def test_polynomials_are_those_of_awscrt(crc: int, nbytes: int, behind: int) -> None:
    """``combine`` is documented for CRCs; that it is a·x^(8n) + b for any words and n > 0 is what the kernels' results rest on."""
    assert combine(crc, behind, nbytes) == polynomials.multiply(crc, polynomials.power_of_x(8 * nbytes)) ^ behind
