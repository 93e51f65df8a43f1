"""The CPU path of the kernels beside what else is at hand, in the same run: ``python bench/kernels.py [--mib 64] [--rounds 7]``.

Every operation and its peers take turns in each round. Rates are medians of input bytes by CPU second; the ratio is the median, over
the rounds, of the peer's CPU time by ours, so above 1 is faster than the peer. Exits 1 when one of the goals is missed.
"""

import argparse
import hashlib
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy
from awscrt.checksums import crc32c, crc64nvme
from numcodecs import Shuffle

from seawall.kernels.cpu import CpuDevice
from seawall.kernels.flips import draw_flips

RANGES = 40
"""Tensors of 1.6 MiB, of the 64 MiB."""
FLIPS = 10_000


@dataclass(slots=True)
class Task:
    """One operation of ours and others that do the same, or come nearest to it."""

    name: str
    ours: Callable[[], Any]
    peers: dict[str, Callable[[], Any]]
    goals: dict[str, float] = field(default_factory=dict)
    """Least ratio to a peer."""
    seconds: dict[str, list[float]] = field(default_factory=dict)


def tasks(mib: int) -> list[Task]:
    """On weights as models have them: normal numbers of small magnitude."""
    cpu = CpuDevice()
    count = mib << 19
    weights = (numpy.random.default_rng(7).standard_normal(count, numpy.float32) * 0.02).astype(numpy.float16)
    later = weights + numpy.float16(1e-4)
    singles = weights[: count // 2].astype(numpy.float32)
    content = memoryview(weights.view(numpy.uint8))
    size = len(content)
    shuffled = {width: Shuffle(width).encode(content) for width in (2, 4)}
    planes = {width: cpu.split_planes(content, width) for width in (2, 4)}
    assert all(bytes(planes[width]) == bytes(shuffled[width]) for width in planes), "the same planes, or the comparison means nothing"
    starts = [size // RANGES * i for i in range(RANGES)]
    places = draw_flips(8 * size, FLIPS, 1)
    scratch = bytearray(content)

    def flip_one_by_one() -> None:
        for place in places.tolist():
            scratch[place >> 3] ^= 1 << (place & 7)

    def file_and_tensors_twice() -> None:
        crc64nvme(content)
        for start in starts:
            crc64nvme(content[start : start + size // RANGES])

    return [
        Task(
            "crc64, one range",
            lambda: cpu.crc64_ranges(content, [0], [size]),
            {
                "awscrt crc64nvme": lambda: crc64nvme(content), "awscrt crc32c": lambda: crc32c(content),
                "zlib crc32": lambda: zlib.crc32(content), "hashlib sha256": lambda: hashlib.sha256(content).digest(),
            },
            {"awscrt crc64nvme": 0.7, "hashlib sha256": 2.0},
        ),
        Task(
            f"crc64, file and its {RANGES} tensors",
            lambda: cpu.crc64_ranges(content, [0, *starts], [size, *[size // RANGES] * RANGES]),
            {"awscrt, each range by itself": file_and_tensors_twice},
            {"awscrt, each range by itself": 1.3},
        ),
        Task(
            "health of float16",
            lambda: cpu.health(weights, "float16"),
            {"NumPy on values": lambda: _numpy_health(weights), "with histogram": lambda: cpu.health(weights, "float16", histogram=True)},
            {"NumPy on values": 1.0},
        ),
        Task(
            "health of float32",
            lambda: cpu.health(singles, "float32"),
            {"NumPy on values": lambda: _numpy_health(singles), "with histogram": lambda: cpu.health(singles, "float32", histogram=True)},
            {"NumPy on values": 1.0},
        ),
        *(
            Task(
                f"split_planes {width}",
                lambda width=width: cpu.split_planes(content, width),
                {
                    "numcodecs Shuffle": lambda width=width: Shuffle(width).encode(content),
                    "NumPy transpose": lambda width=width: numpy.frombuffer(content, numpy.uint8).reshape(-1, width).T.copy(),
                },
            )
            for width in (2, 4)
        ),
        *(
            Task(
                f"join_planes {width}",
                lambda width=width: cpu.join_planes(planes[width], width),
                {
                    "numcodecs Shuffle": lambda width=width: Shuffle(width).decode(shuffled[width]),
                    "NumPy transpose": lambda width=width: planes[width].reshape(width, -1).T.copy(),
                },
            )
            for width in (2, 4)
        ),
        Task(
            "delta 2",
            lambda: cpu.delta(later, weights, 2),
            {"NumPy XOR": lambda: later.view("<u2") ^ weights.view("<u2"), "NumPy in one block": lambda: _numpy_delta(later, weights)},
            {"NumPy in one block": 1.0},
        ),
        Task("apply_delta 2", lambda: cpu.apply_delta(later, weights, 2), {"numpy.add": lambda: later.view("<u2") + weights.view("<u2")}),
        Task(f"flip {FLIPS} bits", lambda: cpu.flip(scratch, places), {"Python, one by one": flip_one_by_one}, {"Python, one by one": 1.0}),
    ]  # fmt: skip


def _numpy_health(values: numpy.ndarray) -> tuple[int, ...]:
    """What one would write without this package; the subnormals and the saturated are two more comparisons."""
    facts, magnitudes = numpy.finfo(values.dtype), numpy.abs(values)
    return tuple(
        int(numpy.count_nonzero(found))
        for found in (
            numpy.isnan(values), numpy.isposinf(values), numpy.isneginf(values), values == 0, magnitudes == facts.max,
            (magnitudes < facts.smallest_normal) & (values != 0),
        )
    )  # fmt: skip


def _numpy_delta(new: numpy.ndarray, base: numpy.ndarray) -> numpy.ndarray:
    change = new.view("<i2") - base.view("<i2")
    return (change << 1) ^ (change >> 15)


def run(found: list[Task], rounds: int) -> None:
    """Fill in the CPU seconds of all; the first round warms up and does not count."""
    for number in range(rounds + 1):
        for task in found:
            for name, work in {"": task.ours, **task.peers}.items():
                begin = time.process_time()
                kept = work()
                taken = time.process_time() - begin
                del kept
                if number:
                    task.seconds.setdefault(name, []).append(taken)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--mib", type=int, default=64, help="of input for each operation")
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    found = tasks(chosen.mib)
    run(found, chosen.rounds)
    nbytes, missed = chosen.mib << 20, []
    print(f"{'':36}{'GB a CPU second':>16}{'ours is faster by':>20}{'goal':>8}")
    for task in found:
        ours = task.seconds[""]
        print(f"{task.name:36}{nbytes / median(ours) / 1e9:16.2f}")
        for peer in task.peers:
            theirs, goal = task.seconds[peer], task.goals.get(peer)
            ratio = median(b / a for a, b in zip(ours, theirs, strict=True))
            asked = f"{goal:8.1f}" if goal else ""
            print(f"  {peer:34}{nbytes / median(theirs) / 1e9:16.2f}{ratio:20.2f}{asked}")
            if goal and ratio < goal:
                missed.append(f"{task.name} beside {peer}: {ratio:.2f}, the goal is {goal}")
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
