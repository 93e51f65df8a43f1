"""Codecs of a record. The first byte of each record's plaintext says which one packed the rest."""

import threading
from enum import IntEnum

from seawall.errors import CorruptError


class Codec(IntEnum):
    """Numbers are part of the format."""

    NONE = 0
    ZSTD = 1
    PLANES = 2
    """Reserved: byte planes, each stored or zstd."""


_thread = threading.local()


def zstd_pack(chunk: memoryview) -> bytes:
    """One zstd frame (RFC 8878) with content size and checksum.

    A ``ZstdCompressor`` shared by two threads crashes the interpreter, hence one a thread.
    """
    import zstandard

    compressor: zstandard.ZstdCompressor | None = getattr(_thread, "compressor", None)
    if compressor is None:
        compressor = _thread.compressor = zstandard.ZstdCompressor(level=1, write_checksum=True, write_content_size=True)
    return compressor.compress(chunk)


def unpack(codec: int, payload: memoryview, limit: int) -> bytes | memoryview:
    """The chunk back, at most ``limit`` bytes. Raises :class:`CorruptError` for anything else.

    A cut zstd frame reads as success through most interfaces of python-zstandard, so the end of the frame is asked
    for; a frame that declares more than ``limit`` is refused before a byte is inflated.
    """
    if codec == Codec.NONE:
        if len(payload) > limit:
            raise CorruptError("a record holds more than its chunk size")
        return payload
    if codec != Codec.ZSTD:
        raise CorruptError("a record uses a codec that this reader does not know", why=f"codec {codec}")
    import zstandard

    try:
        frame = zstandard.get_frame_parameters(payload)
        if not frame.has_checksum or frame.content_size > limit or frame.content_size == zstandard.CONTENTSIZE_UNKNOWN:
            raise CorruptError("a record's zstd frame declares no checksum or an impossible size")
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        chunk = decompressor.decompress(payload)
    except zstandard.ZstdError as error:
        raise CorruptError("a record's zstd frame does not inflate", why=str(error)) from error
    if not decompressor.eof or decompressor.unused_data or len(chunk) != frame.content_size:
        raise CorruptError("a record's zstd frame is cut or has bytes after its end")
    return chunk
