"""Checksums of tensor pieces, taken while a file streams past, against those of the bytes themselves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.errors import CorruptError
from seawall.kernels.crc64 import crc64
from seawall.vault.piece_sums import MAX_COVERAGE, PieceSums, TakenSum, check_taken, spans_of, taken_sums
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


def taken_of(*tensors: tuple[str, int | None, int | None]) -> list[TensorRecord]:
    """Tensors of one piece of ten bytes each, by name, start and the sum that training took."""
    return [TensorRecord(name, "U8", (10,), (TensorPiece(0, 10, start, (), (10,), crc),)) for name, start, crc in tensors]


def test_what_training_said_is_compared_and_others_are_named() -> None:
    tensors = taken_of(("a", 0, 1), ("b", 10, 2), ("c", 20, None), ("d", None, 4))
    (taken,) = taken_sums(tensors, 1)
    assert taken == {(0, 10): TakenSum(1, "a"), (10, 10): TakenSum(2, "b")}
    spans = ((0, 10), (10, 10), (20, 10))
    check_taken("f", spans, (1, 2, 77), taken)
    with pytest.raises(CorruptError) as raised:
        check_taken("f", spans, (1, 3, 77), taken)
    assert raised.value.where == "f b"
    with pytest.raises(CorruptError) as raised:
        check_taken("f", spans, (0, 0, 0), taken)
    assert raised.value.where == "f a, b"


def test_a_file_whose_spans_are_not_summed_is_not_judged() -> None:
    (taken,) = taken_sums(taken_of(("a", 0, 1)), 1)
    check_taken("f", (), (), taken)


def test_of_many_others_the_first_are_named() -> None:
    tensors = taken_of(*((f"t{number:02}", 10 * number, 1) for number in range(20)))
    (taken,) = taken_sums(tensors, 1)
    with pytest.raises(CorruptError) as raised:
        check_taken("f", sorted(taken), [0] * 20, taken)
    assert raised.value.where == "f t00, t01, t02, t03, t04, t05, t06, t07 and 12 more"
