"""Byte planes and integer differences, on the CPU: what makes the bytes of neighbouring numbers alike, so that they compress.

*Planes*: the bytes of one rank of all elements together. Signs and exponents of weights lie in few values, mantissas are noise, and
apart each is coded at its own entropy.

*Delta*: ``d = new − base`` in integers of the element's width, modulo 2^bits; then zigzag, ``(d << 1) XOR (d >> bits − 1)`` with
an arithmetic shift, which gives 0, −1, 1, −2, … the codes 0, 1, 2, 3, … (Protocol Buffers, "Encoding: Signed Integers"). Any two
bit patterns give one code and back, NaN included: nothing is computed in floating point.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from seawall.kernels.byte_views import Buffer, byte_view
from seawall.kernels.errors import KernelArgumentError, SplitElementError

if TYPE_CHECKING:
    import numpy

    Bytes = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]

WIDTHS = (1, 2, 4, 8)
"""Bytes of an element."""

_BLOCK_BYTES = 1 << 17
"""At a time: a few blocks stay in the second-level cache, and NumPy's temporaries below the size at which malloc maps fresh pages."""


def elements_in(nbytes: int, width: int) -> int:
    """How many whole elements a buffer holds. Refuses other widths, and a buffer that ends inside an element."""
    if width not in WIDTHS:
        raise KernelArgumentError(f"elements of {width} bytes", do=f"the widths are {', '.join(map(str, WIDTHS))}")
    if nbytes % width:
        raise SplitElementError(f"{nbytes} bytes end {nbytes % width} bytes into an element of {width}", do="cut buffers between elements")
    return nbytes // width


def pair_of(nbytes_a: int, nbytes_b: int, width: int) -> int:
    """How many elements each of two buffers holds; refuses a pair of different sizes."""
    if nbytes_a != nbytes_b:
        raise KernelArgumentError(f"the buffers differ in size: {nbytes_a} and {nbytes_b} bytes")
    return elements_in(nbytes_a, width)


def _blocks(count: int, width: int) -> Iterator[slice]:
    step = _BLOCK_BYTES // width
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def split_planes(buffer: Buffer, width: int) -> "Bytes":
    """Plane after plane, the least significant byte's first for little-endian elements."""
    import numpy

    view = byte_view(buffer)
    count = elements_in(len(view), width)
    planes = numpy.empty((width, count), numpy.uint8)
    unsigned = numpy.dtype(f"<u{width}")
    elements = numpy.frombuffer(view, unsigned)
    for part in _blocks(count, width):
        for rank in range(width):
            # A shift that keeps the lowest byte: half again as fast as a copy with a stride.
            numpy.right_shift(elements[part], unsigned.type(8 * rank), out=planes[rank, part], casting="unsafe")
    return planes.reshape(-1)


def join_planes(planes: Buffer, width: int) -> "Bytes":
    """The inverse of ``split_planes``."""
    import numpy

    view = byte_view(planes)
    count = elements_in(len(view), width)
    source = numpy.frombuffer(view, numpy.uint8).reshape(width, count)
    elements = numpy.empty((count, width), numpy.uint8)
    for part in _blocks(count, width):
        for rank in range(width):
            elements[part, rank] = source[rank, part]
    return elements.reshape(-1)


def delta(new: Buffer, base: Buffer, width: int) -> "Bytes":
    """Zigzag codes of ``new − base``, little-endian in the width of the elements."""
    import numpy

    new, base = byte_view(new), byte_view(base)
    count = pair_of(len(new), len(base), width)
    signed = numpy.dtype(f"<i{width}")
    after, before = numpy.frombuffer(new, signed), numpy.frombuffer(base, signed)
    codes = numpy.empty(count, signed)
    for part in _blocks(count, width):
        change = after[part] - before[part]
        numpy.bitwise_xor(change << signed.type(1), change >> signed.type(8 * width - 1), out=codes[part])
    return codes.view(numpy.uint8)


def apply_delta(codes: Buffer, base: Buffer, width: int) -> "Bytes":
    """``new`` from the codes and ``base``."""
    import numpy

    codes, base = byte_view(codes), byte_view(base)
    count = pair_of(len(codes), len(base), width)
    unsigned = numpy.dtype(f"<u{width}")
    coded, before = numpy.frombuffer(codes, unsigned), numpy.frombuffer(base, unsigned)
    after = numpy.empty(count, unsigned)
    one = unsigned.type(1)
    for part in _blocks(count, width):
        change = (coded[part] >> one) ^ (unsigned.type(0) - (coded[part] & one))
        numpy.add(before[part], change, out=after[part])
    return after.view(numpy.uint8)
