"""CRC-64/NVME of a file's tensor pieces, taken from the plaintext as it streams past."""

from collections.abc import Sequence

from seawall.kernels.crc64 import crc64
from seawall.vault.tensors import TensorRecord

Span = tuple[int, int]
"""Start and length in bytes."""

MAX_COVERAGE = 4
"""Spans of one file that together are longer than this many times the file are not summed: views of one storage may overlap
(tied weights), but a crafted checkpoint could ask for millions of passes over the same bytes."""


def spans_of(tensors: Sequence[TensorRecord], file_sizes: Sequence[int]) -> list[tuple[Span, ...]]:
    """For each file the distinct spans to sum, in order of start."""
    spans: list[set[Span]] = [set() for _ in file_sizes]
    for tensor in tensors:
        for piece in tensor.pieces:
            if piece.start is not None and piece.start + piece.nbytes <= file_sizes[piece.file]:
                spans[piece.file].add((piece.start, piece.nbytes))
    return [
        tuple(sorted(of_file)) if sum(length for _, length in of_file) <= MAX_COVERAGE * size else ()
        for of_file, size in zip(spans, file_sizes, strict=True)
    ]


class PieceSums:
    """Feed it a file's chunks in order; it sums the given spans."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._crcs = [0] * len(spans)
        self._next = 0
        self._open: list[int] = []

    def observe(self, at: int, chunk: memoryview) -> None:
        """The chunk that begins at byte ``at`` of the file."""
        end = at + len(chunk)
        while self._next < len(self._spans) and self._spans[self._next][0] < end:
            self._open.append(self._next)
            self._next += 1
        still_open = []
        for index in self._open:
            start, length = self._spans[index]
            piece = chunk[max(start - at, 0) : min(start + length, end) - at]
            self._crcs[index] = crc64(piece, self._crcs[index])
            if start + length > end:
                still_open.append(index)
        self._open = still_open

    def result(self) -> tuple[int, ...]:
        """One CRC a span; call it after the last chunk."""
        return tuple(self._crcs)
