"""Which bytes of a file are elements of which width, from the tensors that the inspection found. Pure."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence

from seawall.vault.plane_header import MAX_RUNS, Kind, Run
from seawall.vault.tensors import TensorRecord

WIDTH_OF_DTYPE = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "complex128": 8, "complex64": 4, "complex32": 2,
    "int64": 8, "int32": 4, "int16": 2, "uint64": 8, "uint32": 4, "uint16": 2,
    "qint32": 4, "bits16": 2,
}  # fmt: skip
"""By torch's names; a complex number is two real ones. What is not here is one byte wide, or packed within bytes."""

LEAST_RUN_BYTES = 128
"""Shorter runs are taken as bytes: each costs five bytes, and a little time."""

Element = tuple[int, int, int]
"""Start and length in bytes, and width."""


class ElementRuns:
    """The elements of one file that are wider than a byte, in order and apart."""

    def __init__(self, elements: Iterable[Element] = ()) -> None:
        """Of elements that overlap (tied weights, views of a storage) those that begin first count, then the longest, then the widest."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._widths: list[int] = []
        for start, nbytes, width in sorted(elements, key=lambda element: (element[0], -element[1], -element[2])):
            if self._ends and start < self._ends[-1]:
                continue
            end = start + nbytes // width * width
            if self._ends and (start, width) == (self._ends[-1], self._widths[-1]):
                self._ends[-1] = end
            elif end - start >= LEAST_RUN_BYTES:
                self._starts.append(start)
                self._ends.append(end)
                self._widths.append(width)

    def cut(self, at: int, length: int, derived: Sequence[tuple[int, Run]] = ()) -> list[Run]:
        """The runs of the chunk that begins at ``at``. ``derived`` are runs and where they begin in the file; they take precedence."""
        runs: list[Run] = []
        here = at
        for start, run in derived:
            self._plain(here, start, runs, 2 * len(derived) + 2)
            runs.append(run)
            here = start + run.length
        self._plain(here, at + length, runs, 2)
        return runs

    def _plain(self, at: int, end: int, runs: list[Run], kept_free: int) -> None:
        """Add the runs from ``at`` to ``end``. What a border cuts an element into counts as bytes."""
        index = bisect_right(self._ends, at)
        while index < len(self._starts) and self._starts[index] < end and len(runs) + kept_free < MAX_RUNS:
            start, width = self._starts[index], self._widths[index]
            first = max(start, at + (start - at) % width)
            length = (min(self._ends[index], end) - first) // width * width
            if length >= LEAST_RUN_BYTES:
                _add_bytes(runs, first - at)
                runs.append(Run(Kind(width), length))
                at = first + length
            index += 1
        _add_bytes(runs, end - at)


def _add_bytes(runs: list[Run], length: int) -> None:
    if length:
        runs.append(Run(Kind.ONE, length))


def element_runs(tensors: Sequence[TensorRecord], file_sizes: Sequence[int], files: Collection[int]) -> dict[int, ElementRuns]:
    """The runs of each of ``files``."""
    found: dict[int, set[Element]] = {file: set() for file in files}
    for tensor in tensors:
        width = WIDTH_OF_DTYPE.get(tensor.dtype, 1)
        if width == 1:
            continue
        for piece in tensor.pieces:
            if piece.file in found and piece.start is not None and piece.start + piece.nbytes <= file_sizes[piece.file]:
                found[piece.file].add((piece.start, piece.nbytes, width))
    return {file: ElementRuns(elements) for file, elements in found.items()}
