"""The head of a record that is packed as byte planes: which bytes of the chunk are elements of which width, and how each plane is coded.

Layout (big-endian, docs/spec/format-1.md section 5)::

    1  form, 1
    2  number of runs
    5  a run: kind (1), length in bytes (4); 8 more for a derived one: where its master begins in the file
    5  a plane: method (1), coded length (4)
    …  the coded planes

The runs follow each other without a gap and fill the chunk, so none can overlap another or lie outside. The elements of one width
are coded together, run after run; widths go up, and within a width the planes from the least significant byte.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from seawall.errors import CorruptError
from seawall.vault.header import UnsupportedFormatError

FORM = 1
WIDTHS = (1, 2, 4, 8)
MAX_RUNS = (1 << 16) - 1
MAX_DERIVED_RUNS = 128
"""In one record: each may ask for other records to be read."""
DERIVED_WIDTH = 2
"""Bytes of a derived element; those of its master are twice as many."""

_RUN = struct.Struct(">BI")
_DERIVED = struct.Struct(">BIQ")
_PLANE = struct.Struct(">BI")


class Kind(IntEnum):
    """What a run holds. The first four are elements of so many bytes; bytes of no known type are elements of one."""

    ONE = 1
    TWO = 2
    FOUR = 4
    EIGHT = 8
    BFLOAT16 = 0x12
    """bfloat16, derived from float32."""
    FLOAT16 = 0x22
    """float16, derived from float32."""


DERIVED_KINDS = (Kind.BFLOAT16, Kind.FLOAT16)


class Method(IntEnum):
    """How a plane is coded."""

    STORED = 0
    ZSTD = 1


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes of the chunk that belong together. ``master`` is an offset in the file, for derived runs only."""

    kind: Kind
    length: int
    master: int = 0

    @property
    def width(self) -> int:
        """Of the elements that are coded; 0 where none are, because they are derived."""
        return 0 if self.kind in DERIVED_KINDS else int(self.kind)


@dataclass(frozen=True, slots=True)
class Plane:
    """One coded plane: where it lies in the payload."""

    method: Method
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class PlaneHeader:
    """Checked: the runs fill the chunk and the planes fill the payload."""

    runs: tuple[Run, ...]
    planes: dict[int, tuple[Plane, ...]]
    """By width."""
    coded_bytes: dict[int, int]
    """By width: bytes of all its runs together."""


def coded_bytes_of(runs: Sequence[Run]) -> dict[int, int]:
    """Bytes of each width that occurs, widths going up."""
    found = dict.fromkeys(WIDTHS, 0)
    for run in runs:
        if run.width:
            found[run.width] += run.length
    return {width: nbytes for width, nbytes in found.items() if nbytes}


def header_bytes(runs: Sequence[Run]) -> int:
    """Length of the header of a block with these runs."""
    derived = sum(run.kind in DERIVED_KINDS for run in runs)
    return 3 + _RUN.size * len(runs) + 8 * derived + _PLANE.size * sum(coded_bytes_of(runs))


def pack_runs(runs: Sequence[Run]) -> bytes:
    """Form, number and runs: the header up to the planes."""
    packed = [bytes((FORM,)), len(runs).to_bytes(2, "big")]
    for run in runs:
        packed.append(_DERIVED.pack(*_fields(run)) if run.kind in DERIVED_KINDS else _RUN.pack(run.kind, run.length))
    return b"".join(packed)


def _fields(run: Run) -> tuple[int, int, int]:
    return run.kind, run.length, run.master


def pack_plane(method: Method, length: int) -> bytes:
    """A plane's entry."""
    return _PLANE.pack(method, length)


def parse_plane_header(payload: memoryview, chunk_bytes: int, at: int, may_derive: bool) -> PlaneHeader:
    """Read the header of a chunk of ``chunk_bytes`` that begins at byte ``at`` of its file; allocates nothing that the payload could size.

    Raises :class:`CorruptError` for what no writer makes, :class:`UnsupportedFormatError` for a form, kind or method of a newer one.
    """
    if not len(payload) or payload[0] != FORM:
        raise UnsupportedFormatError(
            "a record's planes have a form that this reader does not know", why=f"form {payload[0] if len(payload) else 'none'}"
        )
    if len(payload) >= chunk_bytes:
        raise CorruptError("a record of planes is no shorter than its chunk")
    runs, place = _parse_runs(payload, chunk_bytes, at, may_derive)
    coded = coded_bytes_of(runs)
    start = place + _PLANE.size * sum(coded)
    if start > len(payload):
        raise CorruptError("a record's planes end inside their header")
    planes: dict[int, tuple[Plane, ...]] = {}
    for width, nbytes in coded.items():
        found = []
        for _ in range(width):
            method, length = _PLANE.unpack_from(payload, place)
            if method not in list(Method):
                raise UnsupportedFormatError("a plane is coded in a way that this reader does not know", why=f"method {method}")
            if (length != nbytes // width) if method == Method.STORED else not 0 < length < nbytes // width:
                raise CorruptError("a plane has an impossible length", why=f"{length} bytes for {nbytes // width} elements")
            found.append(Plane(Method(method), start, length))
            place, start = place + _PLANE.size, start + length
        planes[width] = tuple(found)
    if start != len(payload):
        raise CorruptError("a record's planes do not fill it", why=f"they end at byte {start} of {len(payload)}")
    return PlaneHeader(tuple(runs), planes, coded)


def _parse_runs(payload: memoryview, chunk_bytes: int, at: int, may_derive: bool) -> tuple[list[Run], int]:
    count, place, filled, derived = int.from_bytes(payload[1:3], "big"), 3, 0, 0
    if not count or place + _RUN.size * count > len(payload):
        raise CorruptError("a record's planes end inside their runs", why=f"{count} runs")
    runs = []
    for _ in range(count):
        if place + _RUN.size > len(payload):
            raise CorruptError("a record's planes end inside their runs")
        kind, length = _RUN.unpack_from(payload, place)
        master = 0
        place += _RUN.size
        if kind in DERIVED_KINDS:
            derived += 1
            if not may_derive or derived > MAX_DERIVED_RUNS:
                raise CorruptError("a record derives bytes where it may not, or too often")
            if place + 8 > len(payload):
                raise CorruptError("a record's planes end inside their runs")
            master = int.from_bytes(payload[place : place + 8], "big")
            place += 8
            if master + 2 * length > at + filled:
                raise CorruptError("a run is derived from bytes that do not lie before it", why=f"byte {master} for byte {at + filled}")
        elif kind not in WIDTHS:
            raise UnsupportedFormatError("a record has a kind of run that this reader does not know", why=f"kind {kind}")
        run = Run(Kind(kind), length, master)
        if not length or length % (run.width or DERIVED_WIDTH) or length > chunk_bytes - filled:
            raise CorruptError("a run of a record has an impossible length", why=f"{length} bytes")
        filled += length
        runs.append(run)
    if filled != chunk_bytes:
        raise CorruptError("the runs of a record do not fill its chunk", why=f"{filled} of {chunk_bytes} bytes")
    return runs, place
