"""CRC-64/NVME of a file's tensor pieces, taken from the plaintext as it streams past, and compared with those that training took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seawall.errors import CorruptError
from seawall.kernels.crc64 import crc64
from seawall.vault.tensors import TensorRecord

Span = tuple[int, int]
"""Start and length in bytes."""

MAX_COVERAGE = 4
"""Spans of one file that together are longer than this many times the file are not summed: views of one storage may overlap
(tied weights), but a crafted checkpoint could ask for millions of passes over the same bytes."""
_MAX_NAMED = 8


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


@dataclass(frozen=True, slots=True)
class TakenSum:
    """What training said of a span."""

    crc64: int
    tensor: str


def taken_sums(tensors: Sequence[TensorRecord], files: int) -> list[dict[Span, TakenSum]]:
    """For each file the sums that training took of its spans when it saved them."""
    taken: list[dict[Span, TakenSum]] = [{} for _ in range(files)]
    for tensor in tensors:
        for piece in tensor.pieces:
            if piece.start is not None and piece.crc64 is not None:
                taken[piece.file][piece.start, piece.nbytes] = TakenSum(piece.crc64, tensor.name)
    return taken


def check_taken(file: str, spans: Sequence[Span], crcs: Sequence[int], taken: Mapping[Span, TakenSum]) -> None:
    """Compare the sums of a file's spans with training's. :class:`CorruptError` names the file and the tensors that differ."""
    other = sorted({taken[span].tensor for span, crc in zip(spans, crcs, strict=True) if span in taken and taken[span].crc64 != crc})
    if other:
        more = f" and {len(other) - _MAX_NAMED} more" if len(other) > _MAX_NAMED else ""
        raise CorruptError(
            "a tensor in the file is not the one that training had in memory when it saved",
            where=f"{file} {', '.join(other[:_MAX_NAMED])}{more}",
            why="its checksum, taken before it was written, is another",
            do="restore an older checkpoint and look for bad memory, a bad disk or a bad cable on the host that wrote it; "
            "`--as-opaque` seals this one quarantined",
        )


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
