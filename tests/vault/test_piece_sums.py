"""Checksums of tensor pieces, taken while a file streams past, against those of the bytes themselves."""

from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.kernels.crc64 import crc64
from seawall.vault.piece_sums import MAX_COVERAGE, PieceSums, spans_of
from seawall.vault.tensors import TensorPiece, TensorRecord
from tests.vectors.copies import noise

FILE_BYTES = 500
CONTENT = noise("pieces", FILE_BYTES)


def tensor(*pieces: tuple[int, int | None, int]) -> TensorRecord:
    """Of pieces (file, start, length)."""
    return TensorRecord("t", "U8", (), tuple(TensorPiece(file, nbytes, start, (), ()) for file, start, nbytes in pieces))


def sums_of(spans: tuple[tuple[int, int], ...], chunk_bytes: int) -> tuple[int, ...]:
    sums = PieceSums(spans)
    for at in range(0, FILE_BYTES, chunk_bytes):
        sums.observe(at, memoryview(CONTENT)[at : at + chunk_bytes])
    return sums.result()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, FILE_BYTES), st.integers(0, FILE_BYTES)), max_size=12), st.integers(1, FILE_BYTES + 1))
def test_they_are_the_checksums_of_the_bytes(wanted: list[tuple[int, int]], chunk_bytes: int) -> None:
    pieces = [(0, start, min(length, FILE_BYTES - start)) for start, length in wanted]
    (spans,) = spans_of([tensor(*pieces)], [FILE_BYTES])
    covered = sum(length for _, length in {(start, length) for _, start, length in pieces})
    if covered > MAX_COVERAGE * FILE_BYTES:
        assert spans == ()
    else:
        assert spans == tuple(sorted({(start, length) for _, start, length in pieces}))
    assert sums_of(spans, chunk_bytes) == tuple(crc64(CONTENT[start : start + length]) for start, length in spans)


def test_views_of_one_storage_share_a_sum() -> None:
    assert spans_of([tensor((0, 10, 20)), tensor((0, 10, 20)), tensor((0, 10, 21))], [FILE_BYTES]) == [((10, 20), (10, 21))]


def test_pieces_that_cannot_be_summed_are_left_out() -> None:
    found = spans_of([tensor((0, None, 10), (1, 0, 5), (0, FILE_BYTES - 1, 2))], [FILE_BYTES, 5])
    assert found == [(), ((0, 5),)]


def test_a_crafted_checkpoint_cannot_ask_for_passes_without_end() -> None:
    """Many views of nearly the whole file."""
    pieces = [(0, start, FILE_BYTES - start) for start in range(20)]
    assert spans_of([tensor(*pieces)], [FILE_BYTES]) == [()]
    assert spans_of([tensor(*pieces[:4])], [FILE_BYTES]) != [()]
