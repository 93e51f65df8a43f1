"""What kernel_device.py needs of whatever runs kernels: CUDA in production, the simulator in tests (tests/kernels)."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from seawall.kernels.byte_views import Buffer

Array = Any
"""An array where the engine is: ``cupy.ndarray``, or ``numpy.ndarray`` in the simulator."""
Stream = Any
Event = Any


class Engine(Protocol):
    """Memory, launches and streams of one device. Work of one stream runs in order; streams run beside each other."""

    name: str
    blocks: int
    """How many keep the device busy."""

    def on_stream_of(self, buffer: Buffer) -> AbstractContextManager[object]:
        """Everything inside runs on the stream on which the buffer's owner works: torch's current one for a torch tensor."""

    def view(self, buffer: Buffer) -> Array:
        """The buffer's bytes as a flat uint8 array over the same memory. Refuses memory that is elsewhere or not contiguous."""

    def address(self, array: Array) -> int:
        """Of its first byte."""

    def to_device(self, array: Any) -> Array:
        """A copy of a NumPy array."""

    def to_host(self, array: Array) -> Any:
        """A copy as a NumPy array, when everything before it on the stream is done."""

    def empty(self, count: int, dtype: str) -> Array:
        """Memory with anything in it."""

    def zeros(self, count: int, dtype: str) -> Array:
        """Memory of zeros."""

    def launch(self, program: str, kernel: str, grid: int, block: int, arguments: Mapping[str, Any], items: Mapping[str, int]) -> None:
        """Check the arguments (``programs.checked_arguments``) and queue the kernel on the current stream."""

    def new_stream(self) -> Stream:
        """A stream that waits for no other."""

    def on(self, stream: Stream) -> AbstractContextManager[object]:
        """Everything inside runs on this stream."""

    def pinned(self, nbytes: int) -> Any:
        """Host memory that the device reads and writes by itself, as a NumPy array of uint8."""

    def copy_in(self, target: Array, pinned: Any) -> None:
        """Queue a copy of pinned memory to the device."""

    def copy_out(self, pinned: Any, source: Array) -> None:
        """Queue a copy from the device to pinned memory."""

    def record(self) -> Event:
        """A mark in the current stream."""

    def wait(self, event: Event) -> None:
        """Let the current stream wait for a mark in another."""

    def synchronize(self, event: Event) -> None:
        """Let the caller wait until the mark is reached."""
