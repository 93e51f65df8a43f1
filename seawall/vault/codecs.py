"""Codecs of a record. The first byte of each record's plaintext says which one packed the rest."""

import threading
from enum import IntEnum

from seawall.errors import CorruptError
from seawall.vault.header import UnsupportedFormatError


class Codec(IntEnum):
    """Numbers are part of the format."""

    NONE = 0
    ZSTD = 1
    PLANES = 2
    """Reserved: byte planes, each stored or zstd."""


MAX_WINDOW_BYTES = 1 << 27
"""Bound on the window that a frame may ask for; twice the largest chunk."""

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

    A frame that declares more than ``limit`` is refused before a byte is inflated. The one-shot interface of python-zstandard
    inflates into a buffer of the declared size, which the frame must fill, and the frame must end the record. Through its streaming
    interfaces a cut frame reads as success, and a frame that declares little may inflate to thousands of chunks before its end shows it.
    """
    if codec == Codec.NONE:
        if len(payload) > limit:
            raise CorruptError("a record holds more than its chunk size")
        return payload
    if codec != Codec.ZSTD:
        raise UnsupportedFormatError("a record uses a codec that this reader does not know", why=f"codec {codec}")
    import zstandard

    try:
        frame = zstandard.get_frame_parameters(payload)
        # What is longer than its chunk is stored without a codec; of a frame of size 0 the interface below would not look at the rest.
        if not frame.has_checksum or not len(payload) < frame.content_size <= limit:
            raise CorruptError("a record's zstd frame declares no checksum or an impossible size")
        if frame.window_size > MAX_WINDOW_BYTES or frame.dict_id:
            raise CorruptError("a record's zstd frame asks for a dictionary or a larger window than writers use")
        chunk: bytes = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompress(
            payload, read_across_frames=False, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise CorruptError("a record's zstd frame is cut, damaged or has bytes after its end", why=str(error)) from error
    if len(chunk) != frame.content_size:
        raise CorruptError("a record's zstd frame is cut")
    return chunk
