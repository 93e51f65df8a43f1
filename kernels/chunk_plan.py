"""Which block of the GPU sums which bytes: pieces of a buffer cut into chunks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from seawall.kernels.crc64_ranges import Range

FOLD_WORD_BYTES = 4
"""``crc64_fold`` reads words, so its chunks begin at a multiple of this in memory."""
ROWS_OF_FOLD = 8
"""It takes this many rows of ``lanes`` words a step, and chunks are whole steps."""
SHORTENED_ROWS = 64
"""Rows of words that it leaves of each chunk."""

LEAST_CHUNK_BYTES = 256 << 10
"""Four times what a fold leaves of a chunk with 256 lanes, so that reading it again costs little."""
MOST_CHUNK_BYTES = 8 << 20


@dataclass(slots=True)
class Chunks:
    """Equal places of the four lists belong together."""

    offset: list[int] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    """Bytes of the piece behind the chunk."""
    piece: list[int] = field(default_factory=list)
    """Number of the piece."""

    def add(self, offset: int, length: int, end_of_piece: int, piece: int) -> None:
        self.offset.append(offset)
        self.length.append(length)
        self.after.append(end_of_piece - offset - length)
        self.piece.append(piece)

    @property
    def end(self) -> int:
        """Of the chunk that reaches furthest."""
        return max(map(sum, zip(self.offset, self.length, strict=True)), default=0)

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """Together they cover every piece exactly once."""

    direct: Chunks
    """For ``crc64_chunks``: any length, any alignment."""
    folded: Chunks
    """For ``crc64_fold`` first."""


def fold_step_bytes(lanes: int) -> int:
    """A fold's chunk is a multiple of this."""
    return ROWS_OF_FOLD * FOLD_WORD_BYTES * lanes


def chunk_bytes_for(total_bytes: int, blocks: int, lanes: int) -> int:
    """A chunk size that gives each of ``blocks`` blocks a chunk of a large buffer: a multiple of a fold's step."""
    bounded = min(max(total_bytes // blocks, LEAST_CHUNK_BYTES), MOST_CHUNK_BYTES)
    step = fold_step_bytes(lanes)
    return max(bounded // step, 1) * step


def plan_chunks(pieces: Sequence[Range], address: int, chunk_bytes: int, lanes: int, *, fold: bool = True) -> ChunkPlan:
    """Cut pieces of the buffer at ``address``. Pieces of at least one chunk have their middle folded; the bytes before the first word,
    and those behind the last whole step, are summed directly."""
    plan = ChunkPlan(Chunks(), Chunks())
    for number, (start, length) in enumerate(pieces):
        end = start + length
        middle, middle_end = end, end
        if fold and length >= chunk_bytes:
            middle = start + -(address + start) % FOLD_WORD_BYTES
            middle_end = end - (end - middle) % fold_step_bytes(lanes)
        for chunks, begin, stop in ((plan.direct, start, middle), (plan.folded, middle, middle_end), (plan.direct, middle_end, end)):
            for at in range(begin, stop, chunk_bytes):
                chunks.add(at, min(chunk_bytes, stop - at), end, number)
    return plan
