"""Views on the bytes that a caller hands over, so that no store copies them."""

from collections.abc import Iterable, Sequence

from seawall.kernels.crc64 import crc64
from seawall.stores.base import Buffer


def as_views(data: Buffer | Sequence[Buffer]) -> list[memoryview]:
    """The buffers as flat, non-empty views of bytes, in order. They must be C-contiguous."""
    several = [data] if isinstance(data, (bytes, bytearray, memoryview)) else data
    views = (memoryview(buffer).cast("B") for buffer in several)
    return [view for view in views if view.nbytes]


def crc_of(views: Iterable[memoryview]) -> int:
    """CRC-64/NVME of all of them together."""
    crc = 0
    for view in views:
        crc = crc64(view, crc)
    return crc
