"""The simulator as an engine (kernels/engine.py), with streams that do as little as they may, as late as they may.

Work on a stream other than the first waits in a queue until somebody synchronizes with a mark behind it, and then only that stream
runs, and what it waits for. Code that forgets to wait meets memory that is not there yet, every time.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy

from seawall.kernels.byte_views import Buffer, byte_view
from seawall.kernels.programs import checked_arguments, program_text, signatures_of
from tests.kernels.simulator.build import library

GUARD_BYTES = 64
GUARD = 0xA5


class LateStream:
    """A queue of work; ``eager`` runs it at once, as code that never heard of streams expects."""

    def __init__(self, eager: bool = False) -> None:
        self._eager = eager
        self._queue: deque[Callable[[], None]] = deque()

    def add(self, work: Callable[[], None]) -> None:
        self._queue.append(work)
        if self._eager:
            self.run()

    def run(self, until: "Mark | None" = None) -> None:
        while self._queue and not (until and until.reached):
            self._queue.popleft()()


class Mark:
    """An event: reached when everything before it on its stream has run."""

    def __init__(self, stream: LateStream) -> None:
        self.reached = False
        self._stream = stream
        stream.add(self._reach)

    def _reach(self) -> None:
        self.reached = True

    def reach(self) -> None:
        if not self.reached:
            self._stream.run(self)


class SimulatedEngine:
    """One block at a time, one thread at a time. Guards around what it allocates are looked at after every launch."""

    name = "simulator"

    def __init__(
        self, folder: Path, *, order: str = "seeded", seed: int = 1, blocks: int = 3, texts: Mapping[str, str] | None = None
    ) -> None:
        self.order = order
        self.seed = seed
        self.blocks = blocks
        self._folder = folder
        self._texts = texts or {}
        self._first = LateStream(eager=True)
        self._current = self._first
        self._guarded: list[numpy.ndarray] = []

    def text(self, program: str) -> str:
        return self._texts.get(program) or program_text(program)

    def guarded(self, content: Any, misalignment: int = 0) -> numpy.ndarray:
        """A copy in memory whose address is ``misalignment`` behind a multiple of 64, with guards on both sides."""
        content = numpy.asarray(content)
        memory = numpy.full(content.nbytes + 2 * GUARD_BYTES + 128, GUARD, numpy.uint8)
        begin = GUARD_BYTES + (misalignment - memory.ctypes.data - GUARD_BYTES) % 64
        inside = memory[begin : begin + content.nbytes]
        inside[:] = numpy.frombuffer(content.tobytes(), numpy.uint8)
        outside = (memory[:begin], memory[begin + content.nbytes :])
        self._guarded.extend(outside)
        return inside.view(content.dtype) if misalignment % content.dtype.itemsize == 0 else inside

    def check_guards(self) -> None:
        for guard in self._guarded:
            assert (guard == GUARD).all(), "a kernel wrote outside an array"

    def forget_guards(self) -> None:
        self._guarded.clear()

    def on_stream_of(self, buffer: Buffer) -> AbstractContextManager[object]:
        return nullcontext()

    def view(self, buffer: Buffer) -> numpy.ndarray:
        return numpy.frombuffer(byte_view(buffer), numpy.uint8)

    def address(self, array: numpy.ndarray) -> int:
        return array.ctypes.data

    def to_device(self, array: Any) -> numpy.ndarray:
        return self.guarded(array)

    def to_host(self, array: numpy.ndarray) -> numpy.ndarray:
        Mark(self._current).reach()
        return array.copy()

    def empty(self, count: int, dtype: str) -> numpy.ndarray:
        return self.guarded(numpy.full(count * numpy.dtype(dtype).itemsize, 0x5A, numpy.uint8).view(dtype))

    def zeros(self, count: int, dtype: str) -> numpy.ndarray:
        return self.guarded(numpy.zeros(count, dtype))

    def launch(self, program: str, kernel: str, grid: int, block: int, arguments: Mapping[str, Any], items: Mapping[str, int]) -> None:
        text = self.text(program)
        checked = checked_arguments(signatures_of(text)[kernel], grid, block, arguments, items)

        def work() -> None:
            loaded = library(text, self._folder)
            loaded.configure(self.order, self.seed)
            loaded.launch(kernel, grid, block, checked)
            self.check_guards()

        self._current.add(work)

    def new_stream(self) -> LateStream:
        return LateStream()

    @contextmanager
    def on(self, stream: LateStream) -> Iterator[None]:
        before, self._current = self._current, stream
        try:
            yield
        finally:
            self._current = before

    def pinned(self, nbytes: int) -> numpy.ndarray:
        return numpy.full(nbytes, 0xEE, numpy.uint8)

    def copy_in(self, target: numpy.ndarray, pinned: numpy.ndarray) -> None:
        self._current.add(lambda: numpy.copyto(target, pinned))

    def copy_out(self, pinned: numpy.ndarray, source: numpy.ndarray) -> None:
        self._current.add(lambda: numpy.copyto(pinned, source))

    def record(self) -> Mark:
        return Mark(self._current)

    def wait(self, event: Mark) -> None:
        self._current.add(event.reach)

    def synchronize(self, event: Mark) -> None:
        event.reach()
