"""One way to ask for integrity arithmetic, wherever the bytes lie: on the CPU or on a GPU, with the same results to the bit.

``cpu()`` is always there and is what production uses without a GPU: awscrt and NumPy, with the interpreter lock released. ``gpu()``
runs the kernels of ``cu/`` by CuPy on memory of that GPU and copies nothing to the host but results.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from seawall.kernels.byte_views import CUDA_MEMORY, Buffer
from seawall.kernels.health import Health

if TYPE_CHECKING:
    import numpy

Bytes = Any
"""A flat array of bytes where the device is: ``numpy.ndarray`` or ``cupy.ndarray`` of uint8."""


class Device(Protocol):
    """What every device can do. Buffers are contiguous; a wrong argument raises ``KernelArgumentError`` before anything runs."""

    @property
    def name(self) -> str:
        """For people: ``cpu``, or the GPU's own name."""

    def view(self, buffer: Buffer) -> Any:
        """The buffer's bytes where they lie, without a copy, as something flat that can be sliced and passed to the others."""

    def to_host(self, view: Any) -> bytes:
        """A copy of these bytes in host memory."""

    def crc64_ranges(self, buffer: Buffer, offsets: Sequence[int], lengths: Sequence[int]) -> list[int]:
        """CRC-64/NVME of ``buffer[offset : offset + length]`` for every pair. Ranges may overlap; each byte is read once."""

    def crc64_of(self, buffers: Sequence[Buffer]) -> list[int]:
        """CRC-64/NVME of each buffer, all in one go: the tensors of a model, the shards of a checkpoint."""

    def health(self, buffer: Buffer, dtype: str, *, histogram: bool = False) -> Health:
        """Count the elements of ``dtype`` (torch's name) that are NaN, infinite, saturated, subnormal or zero."""

    def split_planes(self, buffer: Buffer, width: int) -> Bytes:
        """All first bytes of the elements of ``width`` bytes, then all second ones, and so on."""

    def join_planes(self, planes: Buffer, width: int) -> Bytes:
        """The elements back from their planes."""

    def delta(self, new: Buffer, base: Buffer, width: int) -> Bytes:
        """``new − base`` for elements of ``width`` bytes taken as integers, zigzag-coded: small changes of either sign have zeros
        in their upper bytes."""

    def apply_delta(self, delta: Buffer, base: Buffer, width: int) -> Bytes:
        """``new`` back from ``base`` and what ``delta`` gave."""

    def flip(self, buffer: Buffer, positions: "Sequence[int] | numpy.ndarray[Any, Any]") -> None:
        """Flip these bits of the buffer in place (``flips.py`` draws places). Doing it again restores it."""


def cpu(threads: int = 1) -> Device:
    """The CPU. ``threads`` is how many a call may use."""
    from seawall.kernels.cpu import CpuDevice

    return CpuDevice(threads)


def gpu(index: int = 0) -> Device:
    """A GPU by its number among those that are visible. Raises ``NoGpuError`` where there is none, or no CuPy."""
    return _gpu(index)


def number_of_gpus() -> int:
    """How many ``gpu()`` can give."""
    from seawall.kernels import cuda

    return cuda.number_of_gpus()


def device_of(buffer: Buffer) -> Device:
    """The device in whose memory this lies: a GPU for a tensor or a CuPy array there, else the CPU."""
    if hasattr(buffer, "__dlpack_device__"):
        kind, index = buffer.__dlpack_device__()
        if kind == CUDA_MEMORY:
            return _gpu(int(index))
    return cpu()


@cache
def _gpu(index: int) -> Device:
    """One object a GPU: it keeps the compiled kernels."""
    from seawall.kernels.cuda import CudaEngine
    from seawall.kernels.kernel_device import KernelDevice

    return KernelDevice(CudaEngine(index))
