"""Byte planes: a chunk's elements taken apart by the rank of their bytes, each plane coded by itself, and back.

Signs and exponents of weights lie in few values, mantissas are noise: apart each costs its own entropy, and noise costs no time. What the
elements are comes from the inspection (element_runs.py); the record says it again, so that a reader needs nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seawall.errors import CorruptError
from seawall.kernels.device import Device, cpu
from seawall.stores.part_buffers import fresh_buffer
from seawall.vault.casts import cast_into
from seawall.vault.codecs import Codec, Packing
from seawall.vault.derived import DerivedProof
from seawall.vault.element_runs import ElementRuns
from seawall.vault.plane_coding import EFFORTS, code_plane
from seawall.vault.plane_header import (
    Kind,
    Method,
    Plane,
    Run,
    coded_bytes_of,
    header_bytes,
    pack_plane,
    pack_runs,
    parse_plane_header,
)
from seawall.vault.zstd_frames import unpack_frame

_BLOCK_ELEMENTS = 1 << 16
"""Joined at a time, so that they stay in the second-level cache."""
_DERIVED_BYTES = 1 << 18
"""Derived at a time."""

if TYPE_CHECKING:
    import numpy

    Bytes = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]

Earlier = Callable[[int, int], bytes]
"""From start and length to the plaintext there, all of it before the record that asks."""


class PlanePacker:
    """Packs the chunks of one file, in order. Holds one buffer, so it serves one thread."""

    def __init__(self, runs: ElementRuns, codec: Codec, proof: DerivedProof | None = None, device: Device | None = None) -> None:
        self._runs = runs
        self._effort = EFFORTS[codec]
        self._proof = proof
        self._device = device or cpu()
        self._out: memoryview | None = None

    def pack(self, at: int, chunk: memoryview) -> memoryview | None:
        """Packing byte and packed chunk, lent until the next call; None for a chunk that would not shrink."""
        derived = self._proof.derived_in(at, chunk) if self._proof is not None else []
        runs = self._runs.cut(at, len(chunk), derived)
        place = 1 + header_bytes(runs)
        if place > len(chunk):
            return None
        if self._out is None or len(self._out) < len(chunk):
            self._out = fresh_buffer(len(chunk))
        out = self._out
        head = [bytes((Packing.PLANES,)), pack_runs(runs)]
        for width in coded_bytes_of(runs):
            for plane in self._planes(chunk, runs, width):
                frame = code_plane(plane, self._effort)
                length = len(plane) if frame is None else len(frame)
                # As long as the chunk with the packing byte before it: no shorter than the chunk without one.
                if place + length > len(chunk):
                    return None
                out[place : place + length] = plane.data if frame is None else frame
                head.append(pack_plane(Method.STORED if frame is None else Method.ZSTD, length))
                place += length
        packed_head = b"".join(head)
        out[: len(packed_head)] = packed_head
        return out[:place]

    def _planes(self, chunk: memoryview, runs: Sequence[Run], width: int) -> Sequence["Bytes"]:
        import numpy

        gathered = _gathered(numpy.frombuffer(chunk, numpy.uint8), runs, width)
        if width == 1:
            return (gathered,)
        return tuple(_on_host(self._device, self._device.split_planes(gathered, width)).reshape(width, -1))


def _on_host(device: Device, array: Any) -> "Bytes":
    """Where a device answers with an array of the host, that; else a copy."""
    import numpy

    return array if isinstance(array, numpy.ndarray) else numpy.frombuffer(device.to_host(array), numpy.uint8)


def _gathered(chunk: "Bytes", runs: Sequence[Run], width: int) -> "Bytes":
    """The runs of one width, one after the other; without a copy where it is one run and lies as the processor likes it."""
    import numpy

    pieces, at = [], 0
    for run in runs:
        if run.width == width:
            pieces.append(chunk[at : at + run.length])
        at += run.length
    if len(pieces) == 1:
        return pieces[0] if pieces[0].ctypes.data % width == 0 else pieces[0].copy()
    return numpy.concatenate(pieces)


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A chunk, and the parts of it that are derived and were not filled."""

    chunk: memoryview
    hollow: tuple[range, ...] = ()


def unpack_planes(payload: memoryview, chunk_bytes: int, at: int, may_derive: bool, earlier: Earlier | None) -> Unpacked:
    """The chunk of ``chunk_bytes`` that begins at byte ``at`` of its file, from its payload.

    ``earlier`` gives what derived runs come from; without it they stay empty and are named. Raises :class:`CorruptError` for anything
    that is not exactly such a chunk. Whatever the payload, no more is allocated than the chunk and its planes, which are as long.
    """
    import numpy

    header = parse_plane_header(payload, chunk_bytes, at, may_derive)
    planes = {
        width: [_plane(payload, plane, nbytes // width) for plane in header.planes[width]] for width, nbytes in header.coded_bytes.items()
    }
    if [run.kind for run in header.runs] == [Kind.ONE]:
        return Unpacked(planes[1][0].data)
    chunk = numpy.empty(chunk_bytes, numpy.uint8)
    used = dict.fromkeys(planes, 0)
    derived: list[tuple[int, Run]] = []
    place = 0
    for run in header.runs:
        if run.width:
            first = used[run.width]
            used[run.width] = behind = first + run.length // run.width
            join_planes([plane[first:behind] for plane in planes[run.width]], chunk[place : place + run.length])
        else:
            derived.append((place, run))
        place += run.length
    hollow = tuple(range(place, place + run.length) for place, run in derived)
    whole = chunk.data
    for part in hollow:
        whole[part.start : part.stop] = bytes(len(part))
    if earlier is None:
        return Unpacked(whole, hollow)
    for place, run in derived:
        _derive(whole, place, run, at, hollow, earlier)
    return Unpacked(whole)


def _derive(chunk: memoryview, place: int, run: Run, at: int, hollow: Sequence[range], earlier: Earlier) -> None:
    """Fill a derived run from its master, which lies before the record, within it, or across its beginning."""
    within = range(max(run.master - at, 0), max(run.master + 2 * run.length - at, 0))
    if any(max(part.start, within.start) < min(part.stop, within.stop) for part in hollow):
        raise CorruptError("a run is derived from one that is derived itself", why=f"bytes {run.master} to {run.master + 2 * run.length}")
    for done in range(0, run.length, _DERIVED_BYTES):
        length = min(_DERIVED_BYTES, run.length - done)
        begin, end = run.master + 2 * done, run.master + 2 * (done + length)
        before = earlier(begin, min(end, at) - begin) if begin < at else b""
        master = before if end <= at else before + bytes(chunk[max(begin - at, 0) : end - at])
        cast_into(master, run.kind, chunk[place + done : place + done + length])


def _plane(payload: memoryview, plane: Plane, count: int) -> "Bytes":
    import numpy

    coded: memoryview | bytes = payload[plane.start : plane.start + plane.length]
    if plane.method == Method.ZSTD:
        coded = unpack_frame(memoryview(coded), count)
        if len(coded) != count:
            raise CorruptError("a plane holds another number of bytes than its runs", why=f"{len(coded)}, not {count}")
    return numpy.frombuffer(coded, numpy.uint8)


def join_planes(planes: Sequence["Bytes"], out: "Bytes") -> None:
    """Elements from their planes, into the place where they belong.

    What a record unpacks to is wanted in host memory, and its stored planes lie in its payload: a device that wants all planes in one
    buffer would be two copies more.
    """
    import numpy

    width, count = len(planes), len(planes[0])
    elements = out.reshape(count, width)
    for begin in range(0, count, _BLOCK_ELEMENTS):
        part = slice(begin, begin + _BLOCK_ELEMENTS)
        if width == 2:
            # A shift and an or: twice as fast as two copies with a stride. For wider elements there are too many of them.
            pairs = out.view("<u2")[part]
            numpy.left_shift(planes[1][part], numpy.uint16(8), out=pairs, dtype="<u2", casting="unsafe")
            numpy.bitwise_or(pairs, planes[0][part], out=pairs)
        else:
            for rank in range(width):
                elements[part, rank] = planes[rank][part]
