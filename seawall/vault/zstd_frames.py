"""Zstandard frames (RFC 8878) as records hold them: with content size and checksum, bounded before they inflate, their end checked."""

import threading
from enum import Enum
from typing import TYPE_CHECKING, Any

from seawall.errors import CorruptError

if TYPE_CHECKING:
    import zstandard

MAX_WINDOW_BYTES = 1 << 27
"""Bound on the window that a frame may ask for; twice the largest chunk."""


class Search(Enum):
    """How hard a frame is made. A reader sees no difference."""

    QUICK = "level 1"
    ENTROPY = "Huffman codes of single bytes, hardly any search"
    PATIENT = "level 9"


_thread = threading.local()


def pack_frame(chunk: Any, search: Search = Search.QUICK) -> bytes:
    """One frame of a contiguous buffer, with content size and checksum.

    A ``ZstdCompressor`` shared by two threads crashes the interpreter, hence those of each thread.
    """
    compressors: dict[Search, zstandard.ZstdCompressor] | None = getattr(_thread, "compressors", None)
    if compressors is None:
        compressors = _thread.compressors = {}
    if search not in compressors:
        compressors[search] = _compressor(search)
    return compressors[search].compress(chunk)


def _compressor(search: Search) -> "zstandard.ZstdCompressor":
    import zstandard

    if search is not Search.ENTROPY:
        level = 1 if search is Search.QUICK else 9
        return zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)
    # Exponents are many short repeats by chance, which cost zstd's search its time and gain less than their Huffman codes. The smallest
    # table and the longest least match find next to none of them; target_length 0 keeps the codes, which negative levels give up.
    parameters = zstandard.ZstdCompressionParameters(
        strategy=zstandard.STRATEGY_FAST, window_log=17, hash_log=6, chain_log=6, search_log=1, min_match=7, target_length=0,
        write_checksum=True, write_content_size=True,
    )  # fmt: skip
    return zstandard.ZstdCompressor(compression_params=parameters)


def unpack_frame(payload: memoryview, limit: int) -> bytes:
    """What the one frame in ``payload`` holds, at most ``limit`` bytes. Raises :class:`CorruptError` for anything else.

    A frame that declares more than ``limit`` is refused before a byte is inflated. The one-shot interface of python-zstandard
    inflates into a buffer of the declared size, which the frame must fill, and the frame must end the payload. Through its streaming
    interfaces a cut frame reads as success, and a frame that declares little may inflate to thousands of chunks before its end shows it.
    """
    import zstandard

    try:
        frame = zstandard.get_frame_parameters(payload)
        # What is longer than its content is stored without a codec; of a frame of size 0 the interface below would not look at the rest.
        if not frame.has_checksum or not len(payload) < frame.content_size <= limit:
            raise CorruptError("a record's zstd frame declares no checksum or an impossible size")
        if frame.window_size > MAX_WINDOW_BYTES or frame.dict_id:
            raise CorruptError("a record's zstd frame asks for a dictionary or a larger window than writers use")
        content: bytes = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompress(
            payload, read_across_frames=False, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise CorruptError("a record's zstd frame is cut, damaged or has bytes after its end", why=str(error)) from error
    if len(content) != frame.content_size:
        raise CorruptError("a record's zstd frame is cut")
    return content
