"""CUDA by CuPy: memory, launches and streams of one GPU.

No managed memory: a page fault from a kernel costs more than the copy that it hides. CuPy's own pool keeps scratch memory of a few
megabytes; tensors stay where torch put them and are seen through DLPack.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from seawall.kernels.byte_views import CUDA_MEMORY, Buffer, flat_bytes
from seawall.kernels.engine import Array, Event, Stream
from seawall.kernels.errors import KernelArgumentError, KernelBuildError, NoGpuError
from seawall.kernels.programs import Signature, checked_arguments, program_text, signatures_of

COMPILER_OPTIONS = ("--std=c++17",)
"""The compile gate measured the texts with the same."""

BLOCKS_PER_MULTIPROCESSOR = 8
"""Of 256 threads: as many as a multiprocessor of compute capability 8.0 and later keeps at once, where registers suffice."""


def number_of_gpus() -> int:
    """How many GPUs CuPy can use: 0 without CuPy, without a driver, or without a GPU."""
    try:
        import cupy
    except ImportError:
        return 0
    return int(cupy.cuda.runtime.getDeviceCount()) if cupy.cuda.is_available() else 0


class CudaEngine:
    """An ``Engine`` (engine.py) over one GPU. One object may serve many threads: streams are CuPy's, which are a thread's own."""

    def __init__(self, index: int = 0) -> None:
        if index >= number_of_gpus():
            raise NoGpuError(
                f"there is no GPU {index}", why=f"CuPy sees {number_of_gpus()}", do="use the CPU, or install seawall[gpu] on a GPU host"
            )
        import cupy

        self._cupy = cupy
        self.index = index
        properties = cupy.cuda.runtime.getDeviceProperties(index)
        self.name = properties["name"].decode()
        self.blocks = BLOCKS_PER_MULTIPROCESSOR * int(properties["multiProcessorCount"])
        self._kernel = cache(self._load)

    def _on_device(self) -> AbstractContextManager[object]:
        """A new object each time: some releases keep the stack of their context manager in the object, and threads would share it."""
        context: AbstractContextManager[object] = self._cupy.cuda.Device(self.index)
        return context

    def _load(self, program: str, kernel: str) -> tuple[Signature, Any]:
        text = program_text(program)
        with self._on_device():
            function = self._cupy.RawModule(code=text, options=COMPILER_OPTIONS).get_function(kernel)
            if function.local_size_bytes:
                raise KernelBuildError(
                    f"{kernel} keeps {function.local_size_bytes} bytes a thread in local memory on {self.name}",
                    why="its registers did not suffice, so it is many times slower than measured",
                    do="report the GPU and the CUDA version",
                )
        return signatures_of(text)[kernel], function

    def on_stream_of(self, buffer: Buffer) -> AbstractContextManager[object]:
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(buffer, torch.Tensor) or not buffer.is_cuda:
            return self._on_device()
        return self.on(self._cupy.cuda.Stream.from_external(torch.cuda.current_stream(buffer.device)))

    def view(self, buffer: Buffer) -> Array:
        if hasattr(buffer, "__dlpack_device__") and hasattr(buffer, "is_contiguous"):
            kind, index = buffer.__dlpack_device__()
            if kind != CUDA_MEMORY or index != self.index:
                raise KernelArgumentError(f"the tensor is on {buffer.device}, not on GPU {self.index}")
            # DLPack lets CuPy's current stream wait for torch's: what torch has queued on the tensor comes first.
            with self._on_device():
                return self._cupy.from_dlpack(flat_bytes(buffer))
        if not isinstance(buffer, self._cupy.ndarray):
            raise KernelArgumentError(f"{type(buffer).__name__} is not in GPU memory", do="pass a CuPy array or a torch tensor on the GPU")
        if not buffer.flags.c_contiguous:
            raise KernelArgumentError("the array is not contiguous", do="copy it first (cupy.ascontiguousarray)")
        if buffer.device.id != self.index:
            raise KernelArgumentError(f"the array is on GPU {buffer.device.id}, not on GPU {self.index}")
        return buffer.reshape(-1).view(self._cupy.uint8)

    def address(self, array: Array) -> int:
        return int(array.data.ptr)

    def to_device(self, array: Any) -> Array:
        with self._on_device():
            return self._cupy.asarray(array)

    def to_host(self, array: Array) -> Any:
        with self._on_device():
            return self._cupy.asnumpy(array)

    def empty(self, count: int, dtype: str) -> Array:
        with self._on_device():
            return self._cupy.empty(count, dtype)

    def zeros(self, count: int, dtype: str) -> Array:
        with self._on_device():
            return self._cupy.zeros(count, dtype)

    def launch(self, program: str, kernel: str, grid: int, block: int, arguments: Mapping[str, Any], items: Mapping[str, int]) -> None:
        signature, function = self._kernel(program, kernel)
        with self._on_device():
            function((grid,), (block,), checked_arguments(signature, grid, block, arguments, items))

    def new_stream(self) -> Stream:
        with self._on_device():
            return self._cupy.cuda.Stream(non_blocking=True)

    @contextmanager
    def on(self, stream: Stream) -> Iterator[None]:
        # The device first: CuPy refuses to enter a stream of another one.
        with self._on_device(), stream:
            yield

    def pinned(self, nbytes: int) -> Any:
        import cupyx

        return cupyx.empty_pinned(nbytes, self._cupy.uint8)

    def copy_in(self, target: Array, pinned: Any) -> None:
        with self._on_device():
            target.data.copy_from_host_async(pinned.ctypes.data, pinned.nbytes, self._cupy.cuda.get_current_stream())

    def copy_out(self, pinned: Any, source: Array) -> None:
        with self._on_device():
            source.data.copy_to_host_async(pinned.ctypes.data, pinned.nbytes, self._cupy.cuda.get_current_stream())

    def record(self) -> Event:
        with self._on_device():
            return self._cupy.cuda.get_current_stream().record(self._cupy.cuda.Event(disable_timing=True))

    def wait(self, event: Event) -> None:
        with self._on_device():
            self._cupy.cuda.get_current_stream().wait_event(event)

    def synchronize(self, event: Event) -> None:
        event.synchronize()
