"""One random case of each operation, on any device, against its oracle. The tests run many; the planted faults must fail here."""

import random
from collections.abc import Callable

import numpy

from seawall.kernels import flips
from seawall.kernels.device import Device
from seawall.kernels.number_formats import FORMATS
from tests.kernels import oracles

Place = Callable[[bytes], numpy.ndarray]
"""Puts bytes into memory of the device, at an address of its choice."""
Check = Callable[[Device, Place, random.Random], None]

SIZES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 255, 256, 257)


def some_bytes(draw: random.Random, most: int = 3000) -> bytes:
    size = draw.choice(SIZES) if draw.random() < 0.3 else draw.randrange(most)
    return draw.randbytes(size)


def crc64(device: Device, place: Place, draw: random.Random, most_bytes: int = 5000, most_ranges: int = 6) -> None:
    content = some_bytes(draw, most_bytes)
    ranges = [(0, len(content))]
    for _ in range(draw.randrange(most_ranges)):
        start = draw.randint(0, len(content))
        ranges.append((start, draw.randint(0, len(content) - start)))
    draw.shuffle(ranges)
    given = device.crc64_ranges(place(content), [start for start, _ in ranges], [length for _, length in ranges])
    assert given == [oracles.crc64(content[start : start + length]) for start, length in ranges], (len(content), ranges)


def crc64_of(device: Device, place: Place, draw: random.Random) -> None:
    """Several buffers, each somewhere else."""
    contents = [some_bytes(draw) for _ in range(draw.randrange(7))]
    assert device.crc64_of([place(content) for content in contents]) == [oracles.crc64(content) for content in contents]


def crc64_long(device: Device, place: Place, draw: random.Random) -> None:
    """Long pieces: a fold feeds nothing back before its ninth step."""
    crc64(device, place, draw, 40_000, 2)


def some_numbers(dtype: str, draw: random.Random) -> bytes:
    """Half of them on a border between two kinds of numbers."""
    form = FORMATS[dtype]
    border = [0, 1, form.largest - 1, form.largest, form.largest + 1, form.infinity, (1 << form.mantissa_bits) - 1, 1 << form.mantissa_bits]
    count = draw.choice(SIZES) if draw.random() < 0.3 else draw.randrange(800)
    top = (1 << 8 * form.width) - 1
    patterns = (draw.choice(border) | draw.choice((0, form.sign)) if draw.random() < 0.5 else draw.randint(0, top) for _ in range(count))
    return b"".join((pattern & top).to_bytes(form.width, "little") for pattern in patterns)


def health(device: Device, place: Place, draw: random.Random) -> None:
    dtype = draw.choice(list(oracles.FIELDS))
    content, histogram = some_numbers(dtype, draw), draw.random() < 0.5
    given = device.health(place(content), dtype, histogram=histogram)
    assert given == oracles.health(content, dtype, histogram=histogram), (dtype, len(content))


def planes(device: Device, place: Place, draw: random.Random) -> None:
    width = draw.choice((1, 2, 4, 8))
    content = some_bytes(draw)
    content = content[: len(content) // width * width]
    split = device.split_planes(place(content), width)
    assert device.to_host(split) == oracles.planes(content, width), (width, len(content))
    assert device.to_host(device.join_planes(place(device.to_host(split)), width)) == content, (width, len(content))


def delta(device: Device, place: Place, draw: random.Random) -> None:
    width = draw.choice((1, 2, 4, 8))
    new = some_bytes(draw)
    new = new[: len(new) // width * width]
    base = bytes(byte ^ draw.choice((0, 0, 1, 255)) for byte in new)
    codes = device.delta(place(new), place(base), width)
    assert device.to_host(codes) == oracles.delta(new, base, width), (width, len(new))
    assert device.to_host(device.apply_delta(place(device.to_host(codes)), place(base), width)) == new, (width, len(new))


def flip(device: Device, place: Place, draw: random.Random) -> None:
    content = some_bytes(draw) or b"\0"
    nbits, seed = 8 * len(content), draw.getrandbits(64)
    positions = draw.choice(
        (
            lambda: flips.draw_flips(nbits, min(nbits, draw.randrange(600)), seed),
            lambda: flips.draw_burst(nbits, draw.randint(1, min(nbits, 200)), seed),
            lambda: draw.sample(range(nbits), min(nbits, 3)),
        )
    )()
    buffer = place(content)
    device.flip(buffer, positions)
    places = [int(position) for position in positions]
    assert device.to_host(buffer) == oracles.flipped(content, places), (len(content), places[:8])


CHECKS: dict[str, Check] = {
    "crc64": crc64, "crc64_of": crc64_of, "crc64_fold": crc64_long, "health": health, "planes": planes, "delta": delta, "flips": flip,
}  # fmt: skip
