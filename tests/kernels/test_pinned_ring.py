"""Copies with checksums beside them, on streams that put everything off as long as they may."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from seawall.kernels.crc64 import crc64
from seawall.kernels.errors import KernelArgumentError
from seawall.kernels.kernel_device import KernelDevice
from seawall.kernels.pinned_ring import PinnedRing
from tests.kernels.simulator.engine import LateStream, Mark, SimulatedEngine

SLOT_BYTES = 1000
SIZES = (0, 1, 999, 1000, 1001, 2000, 5003, 12_345)


def ring_on(engine: SimulatedEngine, slots: int) -> PinnedRing:
    return PinnedRing(KernelDevice(engine, lanes=32, chunk_bytes=1024), slots=slots, slot_bytes=SLOT_BYTES)


def source_of(content: bytes, draw: random.Random) -> Callable[[memoryview], int]:
    """Gives less than it is asked for, now and then."""
    at = 0

    def read_into(view: memoryview) -> int:
        nonlocal at
        taken = draw.randint(1, len(view))
        view[:taken] = content[at : at + taken]
        at += taken
        return taken

    return read_into


@pytest.mark.parametrize("slots", [2, 3, 5])
def test_uploads_and_downloads_arrive_with_their_checksums(slots: int, compiled: Path) -> None:
    draw = random.Random(slots)
    engine = SimulatedEngine(compiled)
    ring = ring_on(engine, slots)
    for size in SIZES:
        content = draw.randbytes(size)
        target = engine.zeros(size, "uint8")
        assert ring.upload(target, source_of(content, draw)) == crc64(content)
        assert target.tobytes() == content
        written: list[bytes] = []
        assert ring.download(target, lambda view, written=written: written.append(bytes(view))) == crc64(content)
        assert b"".join(written) == content


def test_what_the_owner_queued_before_comes_first(compiled: Path) -> None:
    """The bytes of the source are still on their way on the owner's stream when the download is asked for."""
    content = random.Random(3).randbytes(3000)
    engine = SimulatedEngine(compiled)
    source, owner = engine.zeros(len(content), "uint8"), engine.new_stream()
    with engine.on(owner):
        engine.copy_in(source, numpy.frombuffer(content, numpy.uint8))
        written: list[bytes] = []
        assert ring_on(engine, 2).download(source, lambda view: written.append(bytes(view))) == crc64(content)
    assert b"".join(written) == content


class NeverWaits(SimulatedEngine):
    def wait(self, event: Mark) -> None:
        """A stream that should wait for another and does not."""


class NeverSynchronizes(SimulatedEngine):
    def synchronize(self, event: Mark) -> None:
        """A host that should wait for the device and does not."""


@pytest.mark.parametrize("engine_type", [NeverWaits, NeverSynchronizes])
def test_an_order_that_is_not_kept_shows(engine_type: type[SimulatedEngine], compiled: Path) -> None:
    """The control for the tests above: the streams are late enough that leaving out one kind of waiting is found."""
    content = random.Random(4).randbytes(9000)
    engine = engine_type(compiled)
    target = engine.zeros(len(content), "uint8")
    at = iter(range(0, len(content), SLOT_BYTES))

    def read_into(view: memoryview) -> int:
        start = next(at)
        view[:] = content[start : start + len(view)]
        return len(view)

    assert ring_on(engine, 2).upload(target, read_into) != crc64(content)


def test_nothing_runs_on_behind_a_call_that_failed(compiled: Path) -> None:
    engine = SimulatedEngine(compiled)
    target = engine.zeros(5000, "uint8")
    calls = 0

    def read_into(view: memoryview) -> int:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError("the disk is gone")
        view[:] = b"\1" * len(view)
        return len(view)

    ring = ring_on(engine, 2)
    with pytest.raises(OSError, match="the disk is gone"):
        ring.upload(target, read_into)
    assert target[:2000].all(), "what was queued has run"
    assert ring.upload(target[:3], lambda view: 3) is not None


def test_a_source_that_ends_early_is_refused(compiled: Path) -> None:
    engine = SimulatedEngine(compiled)
    with pytest.raises(KernelArgumentError, match="gave 0 bytes where 1000 were wanted, at 0 of 5000"):
        ring_on(engine, 2).upload(engine.zeros(5000, "uint8"), lambda view: 0)


@pytest.mark.parametrize(("slots", "slot_bytes"), [(1, 100), (2, 0)])
def test_a_ring_that_cannot_turn_is_refused(slots: int, slot_bytes: int, compiled: Path) -> None:
    with pytest.raises(KernelArgumentError, match="two slots or more"):
        PinnedRing(KernelDevice(SimulatedEngine(compiled)), slots=slots, slot_bytes=slot_bytes)


def test_a_late_stream_is_late() -> None:
    stream, done = LateStream(), []
    stream.add(lambda: done.append(1))
    mark = Mark(stream)
    stream.add(lambda: done.append(2))
    assert done == [] and not mark.reached
    mark.reach()
    assert done == [1] and mark.reached
