"""Weights that need not be stored because the float32 master copy before them in the same file says all about them.

A pair is guessed from a few elements of each tensor, before the file is sealed. Then the file streams by once: of the master's cast
only a digest a record is kept, and a record's weights are derived if their digest is the same. So what is derived was proved on the
very bytes that were sealed, in memory that grows by 32 bytes a record.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from seawall.vault.casts import KIND_OF_DTYPE, MASTER_DTYPE, cast
from seawall.vault.plane_header import MAX_DERIVED_RUNS, Kind, Run
from seawall.vault.tensors import TensorRecord

SAMPLE_ELEMENTS = 64
"""Read from the middle of each tensor that may be in a pair."""
MAX_CANDIDATES = 100_000
"""Tensors of one file that are looked at."""


def least_derived_bytes(chunk_bytes: int) -> int:
    """Shorter pieces of weights are stored: each derived one may cost a reader another record."""
    return chunk_bytes // MAX_DERIVED_RUNS


@dataclass(frozen=True, slots=True)
class Pair:
    """``count`` elements of ``kind`` at byte ``weights`` of a file that may be the cast of as many float32 at byte ``master``."""

    kind: Kind
    weights: int
    master: int
    count: int

    @property
    def weights_end(self) -> int:
        return self.weights + 2 * self.count

    @property
    def master_end(self) -> int:
        return self.master + 4 * self.count


@dataclass(slots=True)
class CastCandidates:
    """Tensors of one file that can be in a pair: where they begin, by their number of elements."""

    masters: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    weights: set[tuple[Kind, int, int]] = field(default_factory=set)
    """Kind, start, elements."""


def cast_candidates(tensors: Sequence[TensorRecord], file_sizes: Sequence[int], files: Collection[int]) -> dict[int, CastCandidates]:
    """Those of each of ``files``."""
    found = {file: CastCandidates() for file in files}
    for tensor in tensors:
        kind = KIND_OF_DTYPE.get(tensor.dtype)
        if kind is None and tensor.dtype != MASTER_DTYPE:
            continue
        for piece in tensor.pieces:
            if piece.file not in found or piece.start is None or piece.start + piece.nbytes > file_sizes[piece.file]:
                continue
            if kind is None:
                found[piece.file].masters[piece.nbytes // 4].add(piece.start)
            else:
                found[piece.file].weights.add((kind, piece.start, piece.nbytes // 2))
    return found


def find_pairs(candidates: CastCandidates, read_at: Callable[[int, int], bytes], least_bytes: int) -> tuple[Pair, ...]:
    """Pairs whose samples agree, by where the weights begin; ``read_at(start, length)`` reads the file. No two overlap in their weights,
    and no master holds weights of another, so nothing is derived from what is derived itself."""
    weights = [found for found in candidates.weights if 2 * found[2] >= least_bytes and found[2] in candidates.masters]
    weights = sorted(weights, key=lambda found: (found[1], -found[2], found[0]))[:MAX_CANDIDATES]
    masters = [(start, count) for count in {count for _, _, count in weights} for start in candidates.masters[count]]
    kinds = defaultdict(set)
    for kind, _, count in weights:
        kinds[count].add(kind)
    casts: defaultdict[tuple[Kind, int, bytes], list[int]] = defaultdict(list)
    for start, count in sorted(masters)[:MAX_CANDIDATES]:
        sample = _sample(read_at, start, count, 4)
        for kind in kinds[count]:
            casts[kind, count, cast(sample, kind)].append(start)
    pairs: list[Pair] = []
    for kind, start, count in weights:
        alike = casts.get((kind, count, _sample(read_at, start, count, 2)), [])
        before = bisect_right(alike, start - 4 * count)
        if before and (not pairs or pairs[-1].weights_end <= start):
            pairs.append(Pair(kind, start, alike[before - 1], count))
    return tuple(pair for pair in pairs if not _holds_weights(pairs, pair))


def _sample(read_at: Callable[[int, int], bytes], start: int, count: int, width: int) -> bytes:
    """Elements from the middle; fewer where the file is shorter than it was."""
    length = min(count, SAMPLE_ELEMENTS)
    raw = read_at(start + width * (count // 2 - length // 2), width * length)
    return raw[: len(raw) // width * width]


def _holds_weights(pairs: Sequence[Pair], pair: Pair) -> bool:
    """Whether the master of ``pair`` overlaps the weights of any."""
    index = bisect_right(pairs, pair.master, key=lambda other: other.weights_end)
    return index < len(pairs) and pairs[index].weights < pair.master_end


@dataclass(slots=True)
class _Cast:
    """The cast of one master as it streams by: a digest for each record that holds weights of it."""

    pair: Pair
    chunk_bytes: int
    least_bytes: int
    record: int = 0
    element: int = 0
    cut: bytes = b""
    """The first bytes of an element whose others are in the next chunk."""
    digest: Any = field(default_factory=sha256)
    digests: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.record = self.pair.weights // self.chunk_bytes

    def elements_in(self, record: int) -> tuple[int, int]:
        """First element that lies whole in this record, and the first behind."""
        start = record * self.chunk_bytes - self.pair.weights
        return max(0, -(-start // 2)), max(0, min(self.pair.count, (start + self.chunk_bytes) // 2))

    def follow(self, piece: memoryview) -> None:
        """The next bytes of the master."""
        if self.cut or len(piece) % 4:
            joined = self.cut + bytes(piece)
            whole = len(joined) // 4 * 4
            piece, self.cut = memoryview(joined)[:whole], joined[whole:]
        halves = memoryview(cast(piece, self.pair.kind))
        while halves:
            first, behind = self.elements_in(self.record)
            skipped = min(max(0, first - self.element), len(halves) // 2)
            taken = min(behind - self.element - skipped, len(halves) // 2 - skipped)
            self.digest.update(halves[2 * skipped : 2 * (skipped + taken)])
            self.element += skipped + taken
            halves = halves[2 * (skipped + taken) :]
            if self.element == behind:
                if 2 * (behind - first) >= self.least_bytes:
                    self.digests[self.record] = self.digest.digest()
                self.digest, self.record = sha256(), self.record + 1


class DerivedProof:
    """Feed it a file's chunks in order; it says which weights of each are proved to be casts."""

    def __init__(self, pairs: Sequence[Pair], chunk_bytes: int) -> None:
        """``pairs`` as :func:`find_pairs` gives them; ``chunk_bytes`` is that of the records."""
        least = least_derived_bytes(chunk_bytes)
        self._chunk_bytes = chunk_bytes
        self._casts = [_Cast(pair, chunk_bytes, least) for pair in pairs]
        self._waiting = sorted(self._casts, key=lambda one: one.pair.master, reverse=True)
        self._open: list[_Cast] = []

    def derived_in(self, at: int, chunk: memoryview) -> list[tuple[int, Run]]:
        """The derived runs of the chunk that begins at byte ``at``, and where in the file each begins."""
        self._feed(at, chunk)
        end, record = at + len(chunk), at // self._chunk_bytes
        index = bisect_right(self._casts, at, key=lambda one: one.pair.weights_end)
        runs: list[tuple[int, Run]] = []
        while index < len(self._casts) and self._casts[index].pair.weights < end:
            one = self._casts[index]
            index += 1
            expected = one.digests.pop(record, None)
            if expected is None or len(runs) == MAX_DERIVED_RUNS:
                continue
            first, behind = one.elements_in(record)
            start = one.pair.weights + 2 * first
            length = 2 * (behind - first)
            if sha256(chunk[start - at : start - at + length]).digest() == expected:
                runs.append((start, Run(one.pair.kind, length, one.pair.master + 4 * first)))
        return runs

    def _feed(self, at: int, chunk: memoryview) -> None:
        end = at + len(chunk)
        while self._waiting and self._waiting[-1].pair.master < end:
            self._open.append(self._waiting.pop())
        for one in self._open:
            one.follow(chunk[max(0, one.pair.master - at) : one.pair.master_end - at])
        self._open = [one for one in self._open if one.pair.master_end > end]
