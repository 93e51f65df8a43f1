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
from seawall.vault.casts import cast
from seawall.vault.codecs import Codec, Packing
from seawall.vault.derived import DerivedProof
from seawall.vault.element_runs import ElementRuns
from seawall.vault.plane_coding import EFFORTS, code_plane
from seawall.vault.plane_header import (
    Method,
    PlaneHeader,
    Run,
    coded_bytes_of,
    header_bytes,
    pack_plane,
    pack_runs,
    parse_plane_header,
)
from seawall.vault.zstd_frames import unpack_frame

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


def unpack_planes(
    payload: memoryview, chunk_bytes: int, at: int, may_derive: bool, earlier: Earlier | None, device: Device | None = None
) -> Unpacked:
    """The chunk of ``chunk_bytes`` that begins at byte ``at`` of its file, from its payload.

    ``earlier`` gives what derived runs come from; without it they stay empty and are named. Raises :class:`CorruptError` for anything
    that is not exactly such a chunk, before a byte more than that is allocated.
    """
    import numpy

    header = parse_plane_header(payload, chunk_bytes, at, may_derive)
    by_width = {width: _elements(payload, header, width, device or cpu()) for width in header.planes}
    if len(header.runs) == 1 and by_width:
        return Unpacked(next(iter(by_width.values())).data)
    chunk = numpy.zeros(chunk_bytes, numpy.uint8)
    used = dict.fromkeys(by_width, 0)
    derived: list[tuple[int, Run]] = []
    place = 0
    for run in header.runs:
        if run.width:
            begin = used[run.width]
            chunk[place : place + run.length] = by_width[run.width][begin : begin + run.length]
            used[run.width] = begin + run.length
        else:
            derived.append((place, run))
        place += run.length
    hollow = tuple(range(place, place + run.length) for place, run in derived)
    if earlier is None:
        return Unpacked(chunk.data, hollow)
    whole = chunk.data
    for place, run in derived:
        whole[place : place + run.length] = cast(_master(whole, hollow, at, run, earlier), run.kind)
    return Unpacked(whole)


def _master(chunk: memoryview, hollow: Sequence[range], at: int, run: Run, earlier: Earlier) -> bytes:
    """The bytes that a run is derived from: before the record, within it, or both."""
    end = run.master + 2 * run.length
    before = earlier(run.master, min(end, at) - run.master) if run.master < at else b""
    within = range(max(run.master, at) - at, max(end - at, 0))
    if any(max(part.start, within.start) < min(part.stop, within.stop) for part in hollow):
        raise CorruptError("a run is derived from one that is derived itself", why=f"bytes {run.master} to {end}")
    return before + bytes(chunk[within.start : within.stop])


def _elements(payload: memoryview, header: PlaneHeader, width: int, device: Device) -> "Bytes":
    """All elements of one width, from their planes."""
    import numpy

    count = header.coded_bytes[width] // width
    if width == 1:
        (plane,) = header.planes[width]
        return numpy.frombuffer(_plane(payload, plane.start, plane.length, plane.method, count), numpy.uint8)
    planes = numpy.empty((width, count), numpy.uint8)
    for rank, plane in enumerate(header.planes[width]):
        planes[rank] = numpy.frombuffer(_plane(payload, plane.start, plane.length, plane.method, count), numpy.uint8)
    return _on_host(device, device.join_planes(planes, width))


def _plane(payload: memoryview, start: int, length: int, method: Method, count: int) -> memoryview | bytes:
    coded = payload[start : start + length]
    if method == Method.STORED:
        return coded
    plane = unpack_frame(coded, count)
    if len(plane) != count:
        raise CorruptError("a plane holds another number of bytes than its runs", why=f"{len(plane)}, not {count}")
    return plane
