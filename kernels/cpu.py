"""The CPU as a device."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seawall.kernels import crc64_ranges, flips, health, planes
from seawall.kernels.byte_views import Buffer, byte_view

if TYPE_CHECKING:
    import numpy


class CpuDevice:
    """A ``Device`` (device.py) over awscrt and NumPy. Holds no state: one object may serve many threads."""

    name = "cpu"

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def view(self, buffer: Buffer) -> memoryview:
        return byte_view(buffer)

    def to_host(self, view: memoryview) -> bytes:
        return bytes(view)

    def crc64_ranges(self, buffer: Buffer, offsets: Sequence[int], lengths: Sequence[int]) -> list[int]:
        return crc64_ranges.crc64_ranges(buffer, offsets, lengths, threads=self.threads)

    def crc64_of(self, buffers: Sequence[Buffer]) -> list[int]:
        return crc64_ranges.crc64_of(buffers, threads=self.threads)

    def health(self, buffer: Buffer, dtype: str, *, histogram: bool = False) -> health.Health:
        return health.health(buffer, dtype, histogram=histogram)

    def split_planes(self, buffer: Buffer, width: int) -> "planes.Bytes":
        return planes.split_planes(buffer, width)

    def join_planes(self, planes_: Buffer, width: int) -> "planes.Bytes":
        return planes.join_planes(planes_, width)

    def delta(self, new: Buffer, base: Buffer, width: int) -> "planes.Bytes":
        return planes.delta(new, base, width)

    def apply_delta(self, delta: Buffer, base: Buffer, width: int) -> "planes.Bytes":
        return planes.apply_delta(delta, base, width)

    def flip(self, buffer: Buffer, positions: "Sequence[int] | numpy.ndarray[Any, Any]") -> None:
        flips.flip(buffer, positions)
