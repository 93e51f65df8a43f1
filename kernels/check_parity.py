"""Whether a device says what the CPU says, on random lengths, contents and addresses."""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from seawall.kernels import flips
from seawall.kernels.cpu import CpuDevice
from seawall.kernels.device import Device
from seawall.kernels.number_formats import FORMATS

Place = Callable[[bytes, int], Any]
"""Puts bytes into the device's memory, so many bytes behind an aligned address."""

WIDTHS = (1, 2, 4, 8)


def parity_cases(device: Device, place: Place, most_bytes: int, seed: int) -> Iterator[list[str]]:
    """Endless: what disagrees in each next case, an empty list when nothing does."""
    for number in count():
        draw = random.Random(seed * 1_000_003 + number)
        size = draw.choice((draw.randrange(64), draw.randrange(5000), draw.randrange(most_bytes)))
        content, misalignment = draw.randbytes(size), draw.choice((0, 0, 4, draw.randrange(16)))
        differing = [name for name, same in _compared(device, place, content, misalignment, draw) if not same]
        yield [f"case {number} of seed {seed}: {name}, {size} bytes, {misalignment} past an aligned address" for name in differing]


def _compared(device: Device, place: Place, content: bytes, misalignment: int, draw: random.Random) -> Iterator[tuple[str, bool]]:
    cpu, size = CpuDevice(), len(content)
    buffer = place(content, misalignment)

    def same_bytes(given: Any, expected: Any) -> bool:
        return device.to_host(given) == bytes(cpu.view(expected))

    starts = [0, *(draw.randint(0, size) for _ in range(4))]
    lengths = [size, *(draw.randint(0, size - start) for start in starts[1:])]
    yield "crc64_ranges", device.crc64_ranges(buffer, starts, lengths) == cpu.crc64_ranges(content, starts, lengths)
    parts = [buffer[start : start + length] for start, length in zip(starts, lengths, strict=True)]
    yield "crc64_of", device.crc64_of(parts) == cpu.crc64_ranges(content, starts, lengths)
    dtype = draw.choice([name for name in FORMATS if not name.startswith("complex")])
    numbers = size // FORMATS[dtype].width * FORMATS[dtype].width
    for histogram in (False, True):
        given = device.health(buffer[:numbers], dtype, histogram=histogram)
        yield f"health of {dtype}", given == cpu.health(content[:numbers], dtype, histogram=histogram)
    width = draw.choice(WIDTHS)
    whole = size // width * width
    planes = device.split_planes(buffer[:whole], width)
    yield f"split_planes of {width}", same_bytes(planes, cpu.split_planes(content[:whole], width))
    yield f"join_planes of {width}", same_bytes(device.join_planes(planes, width), content[:whole])
    base = draw.randbytes(whole)
    codes = device.delta(buffer[:whole], place(base, misalignment), width)
    yield f"delta of {width}", same_bytes(codes, cpu.delta(content[:whole], base, width))
    back = device.apply_delta(codes, place(base, 0), width)
    yield f"apply_delta of {width}", same_bytes(back, content[:whole])
    if size:
        places: Sequence[int] = flips.draw_flips(8 * size, min(8 * size, 1000), draw.getrandbits(64)).tolist()
        changed = bytearray(content)
        cpu.flip(changed, places)
        device.flip(buffer, places)
        yield "flip", same_bytes(buffer, changed)
