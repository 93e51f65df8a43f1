"""The safetensors container: 8 bytes of header length, a JSON header, the tensors' bytes without gaps.

Rules are those of the format's README and of safetensors 0.8: offsets must cover the rest of the file exactly, in order, once.
"""

from seawall.checkpoint import values
from seawall.checkpoint.content import Content, whole
from seawall.checkpoint.dtypes import BITS, SAFETENSORS
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.reading import Readable, read_exactly
from seawall.checkpoint.strict_json import parse_object
from seawall.errors import CorruptError, HostileError

LIBRARY_LIMIT = 100_000_000
"""Longest header that the library reads; real files of 1.3 million tensors exceed it (safetensors issue 668)."""
READ_LIMIT = 160_000_000
"""Longest header that is parsed here."""
MAX_DIMENSIONS = 64
MAX_DTYPE = 64
"""Characters of a dtype; the longest known has twelve."""


def read_safetensors(source: Readable, file: str, base: int = 0, deep: bool = False) -> Content:
    """The structure of one safetensors file."""
    content = Content("safetensors")
    length = int.from_bytes(read_exactly(source, 0, 8, "the header length"), "little")
    room = source.size - 8
    if length > room:
        if length > LIBRARY_LIMIT:
            raise HostileError(
                f"the header claims {length} bytes", where=file, why=f"the file has {source.size}, no reader accepts that much"
            )
        raise CorruptError(f"the header is cut: it has {length} bytes, the file {source.size}", where=file)
    if length > LIBRARY_LIMIT:
        content.add(Verdict.WARN, f"the header of {length} bytes is longer than the safetensors library reads (100 MB)")
        if length > READ_LIMIT:
            return content
    header = parse_object(read_exactly(source, 8, length, "the header"), file, "the header")
    content.metadata = _metadata(content, header.pop("__metadata__", None))
    data = 8 + length
    spans: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        dtype, shape, begin, end = _entry(name, entry, file)
        if end > room - length:
            content.add(Verdict.CORRUPT, f"tensor {name} ends at byte {data + end}, the file at {source.size}: the file is cut", name)
        spans.append((begin, end, name))
        content.tensors.append(whole(name, dtype, shape, file, base + data + begin, end - begin))
    _cover(content, sorted(spans), room - length)
    if deep and content.usable:
        for tensor in content.tensors:
            piece = tensor.pieces[0]
            text = values.look(source, (piece.start or 0) - base, piece.nbytes, tensor.dtype)
            if text:
                content.add(Verdict.WARN, f"tensor {tensor.name} has {text}", tensor.name)
    return content


def _metadata(content: Content, found: object) -> dict[str, str]:
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        content.add(Verdict.CORRUPT, "__metadata__ must map text to text, and the library refuses the file")
        return {}
    return found


def _entry(name: str, entry: object, file: str) -> tuple[str, tuple[int, ...], int, int]:
    if not isinstance(entry, dict):
        raise CorruptError(f"tensor {name} is not described", where=file)
    code, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(shape, list) or not all(_is_count(length) for length in shape) or len(shape) > MAX_DIMENSIONS:
        raise CorruptError(f"tensor {name} has no valid shape", where=file)
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_count(offset) for offset in offsets) or offsets[1] < offsets[0]:
        raise CorruptError(f"tensor {name} has no valid data_offsets", where=file)
    if not isinstance(code, str) or not code.isascii() or not 0 < len(code) <= MAX_DTYPE:
        raise CorruptError(f"tensor {name} has no dtype", where=file)
    dtype = SAFETENSORS.get(code)
    begin, end = offsets
    if dtype is None:
        # A newer library may know it; the offsets can still be checked against each other.
        return code.lower(), tuple(shape), begin, end
    bits = BITS[dtype]
    for length in shape:
        bits *= length
        if bits > 1 << 70:
            raise CorruptError(f"tensor {name} has more elements than can be counted", where=file)
    if bits % 8 or bits // 8 != end - begin:
        raise CorruptError(f"tensor {name} has {end - begin} bytes, its shape and dtype {code} need {bits / 8:g}", where=file)
    return dtype, tuple(shape), begin, end


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _cover(content: Content, spans: list[tuple[int, int, str]], room: int) -> None:
    reached = 0
    for begin, end, name in spans:
        if begin < reached:
            content.add(
                Verdict.CORRUPT, f"tensor {name} claims bytes of another tensor (from {begin}, the one before ends at {reached})", name
            )
        elif begin > reached:
            content.add(
                Verdict.CORRUPT, f"{begin - reached} bytes before tensor {name} belong to no tensor, and the library refuses the file", name
            )
        reached = max(reached, end)
    if reached < room:
        content.add(Verdict.CORRUPT, f"{room - reached} bytes follow the last tensor, and the library refuses the file")


def looks_like_safetensors(head: bytes) -> bool:
    """Whether a file's first bytes look like a safetensors header: a length, then a brace."""
    return len(head) >= 9 and head[8:9] == b"{" and (int.from_bytes(head[:8], "little") < 1 << 40 or head[9:10] in (b'"', b"}", b" "))
