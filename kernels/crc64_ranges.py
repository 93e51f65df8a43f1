"""CRC-64/NVME of many ranges of one buffer, reading each byte once.

One pass gives the checksums of all tensors of a file, of the file itself, and the value that S3 keeps for the whole object: the
ranges may overlap, nest and repeat. The buffer is cut where a range begins or ends, each piece between two cuts is summed once, and
the sums are put together by ``combine``.

With ``+`` for XOR and ``n`` bytes in B: ``crc(AB) = crc(A)·x^(8n) + crc(B)``. So what ``combine(crc(A), y, n)`` adds to y is the part
of A, and with y = crc(AB) it takes A away again: ``crc(B) = combine(crc(A), crc(AB), n)``. A range is therefore one ``combine``
of two running sums, however many pieces it spans: time is in proportion to bytes + ranges, also for ranges that all overlap.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from seawall.kernels.byte_views import Buffer, byte_view
from seawall.kernels.crc64 import combine, crc64
from seawall.kernels.errors import KernelArgumentError

Range = tuple[int, int]
"""Start and length in bytes."""

PIECE_BYTES = 16 << 20
"""With several threads a longer piece is cut, so that one large tensor does not leave the others idle."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where the wanted ranges cut the buffer."""

    ranges: tuple[Range, ...]
    """As they were asked for."""
    pieces: tuple[Range, ...]
    """What has to be read: ascending, without overlap, covering exactly the union of the ranges."""


def cut(size: int, offsets: Sequence[int], lengths: Sequence[int], piece_bytes: int = 0) -> Cuts:
    """Plan the pieces of a buffer of ``size`` bytes. Refuses ranges that leave it. ``piece_bytes`` bounds a piece (0: no bound)."""
    if len(offsets) != len(lengths):
        raise KernelArgumentError(f"{len(offsets)} offsets and {len(lengths)} lengths")
    ranges = tuple((int(start), int(length)) for start, length in zip(offsets, lengths, strict=True))
    steps: dict[int, int] = {}
    for start, length in ranges:
        if start < 0 or length < 0 or start + length > size:
            raise KernelArgumentError(f"the range of {length} bytes at {start} leaves the buffer of {size} bytes")
        if length:
            steps[start] = steps.get(start, 0) + 1
            steps[start + length] = steps.get(start + length, 0) - 1
    pieces: list[Range] = []
    depth = 0
    for start, end in pairwise(sorted(steps)):
        depth += steps[start]
        if depth:
            most = piece_bytes or end - start
            pieces.extend((at, min(most, end - at)) for at in range(start, end, most))
    return Cuts(ranges, tuple(pieces))


def crcs_of_ranges(cuts: Cuts, piece_crcs: Sequence[int]) -> list[int]:
    """The checksum of every range from those of the pieces."""
    # The sum of everything from the beginning of the run of adjoining pieces up to a cut. Where no piece adjoins, a run begins
    # with 0, the CRC of nothing. No range spans the gap between two runs.
    end_of_last, running = -1, 0
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    alone: dict[Range, int] = {}
    for (start, length), crc in zip(cuts.pieces, piece_crcs, strict=True):
        if start != end_of_last:
            running = 0
        begins[start] = running
        running = combine(running, crc, length)
        end_of_last = start + length
        ends[end_of_last] = running
        alone[start, length] = crc
    results = []
    for start, length in cuts.ranges:
        if not length:
            results.append(0)
        elif (start, length) in alone:
            results.append(alone[start, length])
        else:
            results.append(combine(begins[start], ends[start + length], length))
    return results


def crc64_ranges(buffer: Buffer, offsets: Sequence[int], lengths: Sequence[int], *, threads: int = 1) -> list[int]:
    """CRC-64/NVME of ``buffer[offset : offset + length]`` for every pair, on the CPU.

    ``threads`` above 1 spreads the pieces over as many threads for this call (awscrt lets go of the interpreter lock). Raises
    ``KernelArgumentError`` for a range that leaves the buffer.
    """
    view = byte_view(buffer)
    cuts = cut(len(view), offsets, lengths, PIECE_BYTES if threads > 1 else 0)
    return crcs_of_ranges(cuts, _sums([view[start : start + length] for start, length in cuts.pieces], threads))


def crc64_of(buffers: Sequence[Buffer], *, threads: int = 1) -> list[int]:
    """CRC-64/NVME of each buffer, on the CPU."""
    return _sums([byte_view(buffer) for buffer in buffers], threads)


def _sums(views: Sequence[memoryview], threads: int) -> list[int]:
    if threads <= 1 or len(views) < 2:
        return [crc64(view) for view in views]
    with ThreadPoolExecutor(threads, thread_name_prefix="crc64") as pool:
        return list(pool.map(crc64, views))


def combine_all(crcs: Sequence[int], lengths: Sequence[int]) -> int:
    """CRC of all parts in order, from the CRC and the length in bytes of each: of a file from its tensors, of an object from its
    parts. Nothing has the CRC 0."""
    whole = 0
    for crc, length in zip(crcs, lengths, strict=True):
        whole = combine(whole, crc, length)
    return whole
