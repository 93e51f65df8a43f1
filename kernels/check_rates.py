"""How fast each kernel is beside a plain copy within the device's memory, in the same run: a share of what the memory can do means
the same on every GPU."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from seawall.kernels.byte_views import byte_view
from seawall.kernels.flips import draw_flips
from seawall.kernels.kernel_device import KernelDevice
from seawall.kernels.pinned_ring import PinnedRing

REPEATS = 7
RANGES = 1000
FLIPS = 100_000


@dataclass(frozen=True, slots=True)
class Rate:
    """One operation."""

    name: str
    seconds: float
    """Median, planning on the host included."""
    nbytes: int
    """Of input."""

    @property
    def gigabytes_per_second(self) -> float:
        return self.nbytes / self.seconds / 1e9


def rates(device: KernelDevice, nbytes: int, repeats: int = REPEATS) -> Iterator[Rate]:
    """Measure every operation on ``nbytes`` bytes; the copy comes first. Needs three times as much device memory."""
    engine = device.engine
    tables = KernelDevice(engine, fold=False)
    buffer, other = _noise(device, nbytes), engine.empty(nbytes, "uint8")

    def copy() -> None:
        other[...] = buffer

    def timed(name: str, work: Callable[[], Any]) -> Rate:
        return Rate(name, _seconds(device, work, repeats), nbytes)

    yield timed("copy", copy)
    piece = nbytes // RANGES
    starts, lengths = [piece * i for i in range(RANGES)], [piece] * RANGES
    yield timed("crc64, fold", partial(device.start_crc64_ranges, buffer, [0], [nbytes]))
    yield timed(f"crc64, fold, {RANGES} ranges", partial(device.start_crc64_ranges, buffer, starts, lengths))
    yield timed("crc64, tables", partial(tables.start_crc64_ranges, buffer, [0], [nbytes]))
    yield timed("crc64, tables, odd address", partial(tables.start_crc64_ranges, buffer, [1], [nbytes - 1]))
    for dtype in ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2", "float64"):
        for histogram in (False, True):
            name = f"health {dtype}{', histogram' * histogram}"
            yield timed(name, partial(device.health, buffer, dtype, histogram=histogram))
    for width in (2, 4, 8):
        yield timed(f"split_planes {width}", partial(device.split_planes, buffer, width))
        yield timed(f"join_planes {width}", partial(device.join_planes, buffer, width))
        yield timed(f"delta {width}", partial(device.delta, buffer, other, width))
        yield timed(f"apply_delta {width}", partial(device.apply_delta, buffer, other, width))
    places = draw_flips(8 * nbytes, min(FLIPS, nbytes), 1)
    yield timed(f"flip {len(places)} bits", partial(device.flip, buffer, places))


def transfer_rates(device: KernelDevice, nbytes: int, repeats: int = REPEATS) -> Iterator[Rate]:
    """Host to device and back through the ring, with checksums; the host's side is a copy in memory."""
    import numpy

    ring = PinnedRing(device)
    target, source = device.engine.empty(nbytes, "uint8"), byte_view(numpy.zeros(nbytes, numpy.uint8))
    at = 0

    def read_into(view: memoryview) -> int:
        nonlocal at
        taken = min(len(view), nbytes - at)
        view[:taken] = source[at : at + taken]
        at += taken
        return taken

    def upload() -> None:
        nonlocal at
        at = 0
        ring.upload(target, read_into)

    def download() -> None:
        nonlocal at
        at = 0

        def write(view: memoryview) -> None:
            nonlocal at
            source[at : at + len(view)] = view
            at += len(view)

        ring.download(target, write)

    yield Rate("upload with checksum", _seconds(device, upload, repeats), nbytes)
    yield Rate("download with checksum", _seconds(device, download, repeats), nbytes)


def _seconds(device: KernelDevice, work: Callable[[], Any], repeats: int) -> float:
    """Median of several, each until the device is done; a first one, which compiles, is not counted."""
    engine, taken = device.engine, []
    for _ in range(repeats + 1):
        engine.synchronize(engine.record())
        begin = time.perf_counter()
        kept = work()
        engine.synchronize(engine.record())
        taken.append(time.perf_counter() - begin)
        del kept
    return statistics.median(taken[1:])


def _noise(device: KernelDevice, nbytes: int) -> Any:
    """Random bytes: zeros would be judged faster than numbers."""
    import numpy

    tile = device.engine.to_device(numpy.random.default_rng(1).integers(0, 256, min(nbytes, 16 << 20), dtype=numpy.uint8))
    noise = device.engine.empty(nbytes, "uint8")
    for start in range(0, nbytes, tile.size):
        part = noise[start : start + tile.size]
        part[...] = tile[: part.size]
    return noise
