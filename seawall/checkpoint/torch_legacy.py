"""The stream that torch.save wrote before version 1.6 (``_legacy_save`` of torch/serialization.py).

Five pickles (magic number, protocol 1001, machine, object, storage keys), then for each key an int64 count of elements and the bytes.
"""

import struct

from seawall.checkpoint import values
from seawall.checkpoint.content import Content
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.pickles.machine import read_pickle
from seawall.checkpoint.pickles.nodes import Name, Persistent, children, lookup
from seawall.checkpoint.pickles.stack import Pickle
from seawall.checkpoint.reading import Readable, read_exactly
from seawall.checkpoint.torch_objects import judge, noting, place, views_of
from seawall.checkpoint.views import Storage, View, storage_of
from seawall.errors import CorruptError, HostileError

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
MAGIC_BYTES = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The magic number as every torch pickled it."""
HEAD = 1 << 20
"""Bytes read at first; enough for the pickles of most files."""
MAX_HEAD = 64 << 20
"""Bytes read when the pickles are larger than that, or damaged: the storages behind them may be terabytes."""


def read_torch_legacy(source: Readable, file: str, base: int = 0, deep: bool = False) -> Content:
    """The structure of one old stream."""
    content = Content("torch-legacy")
    with noting(content):
        _read_stream(content, source, file, base, deep)
    return content


def _read_stream(content: Content, source: Readable, file: str, base: int, deep: bool) -> None:
    pickles, problem = _pickles(source)
    # All five: a loader runs each of them before it looks at what it has got.
    for pickle in pickles:
        judge(content, pickle)
    if problem is not None:
        raise problem
    if pickles[0].top != MAGIC or len(pickles) < 5:
        raise CorruptError("the stream does not begin with torch's magic number", where=file)
    if pickles[1].top != PROTOCOL:
        raise CorruptError("the stream is of another protocol than 1001", where=file)
    content.top = pickles[3].top
    if lookup(pickles[2].top, "little_endian") is False:
        content.add(Verdict.WARN, "the file was written on a big-endian machine")
    keys = pickles[4].top
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise CorruptError("the list of storages is damaged", where=file)
    views = views_of(content, pickles[3], file)
    if content.usable:
        _place_storages(content, source, file, base, pickles, keys, views, deep)


def _pickles(source: Readable) -> tuple[list[Pickle], CorruptError | HostileError | None]:
    """The five pickles at the head, or those before the first that cannot be read, and why it cannot. What is larger than the
    first look is read whole, up to a bound."""
    length = min(HEAD, source.size)
    while True:
        data = source.read(0, length)
        found: list[Pickle] = []
        at = 0
        try:
            for position in range(5):
                pickle = read_pickle(data, at, source.name)
                if position == 0 and pickle.top != MAGIC:
                    return [pickle], None
                found.append(pickle)
                at = pickle.end
            return found, None
        except (CorruptError, HostileError) as error:
            if length >= source.size or length >= MAX_HEAD:
                return found, error
        length = min(length * 16, source.size, MAX_HEAD)


def _storages(pickle: Pickle, file: str) -> dict[str, Storage]:
    """Every storage that the object refers to, also those of no tensor (views may be nested in anything)."""
    found: dict[str, Storage] = {}
    seen: set[int] = set()
    stack = [pickle.top]
    while stack:
        node = stack.pop()
        if id(node) in seen or isinstance(node, Name | str | bytes | int | float | None):
            continue
        seen.add(id(node))
        if isinstance(node, Persistent):
            storage = storage_of(node, file)
            if storage is not None:
                known = found.get(storage.key)
                if known is None or storage.elements > known.elements:
                    found[storage.key] = storage
        stack.extend(children(node))
    return found


def _place_storages(
    content: Content, source: Readable, file: str, base: int, pickles: list[Pickle], keys: list[str], views: list[View], deep: bool
) -> None:
    storages = _storages(pickles[3], file)
    starts: dict[str, int] = {}
    at = pickles[4].end
    for key in keys:
        storage = storages.get(key)
        if storage is None:
            raise CorruptError(f"storage {key[:40]} is listed and nothing uses it", where=file)
        (elements,) = struct.unpack("<q", read_exactly(source, at, 8, f"storage {key[:40]}"))
        if elements < 0 or elements != storage.elements:
            raise CorruptError(f"storage {key[:40]} has {elements} elements, its tensors expect {storage.elements}", where=file)
        starts[key] = at + 8
        at += 8 + storage.nbytes
        if at > source.size:
            raise CorruptError(f"storage {key[:40]} is cut: it ends at byte {at}, the file at {source.size}", where=file)
    if at < source.size:
        _trailing(content, source, at)
    for view in views:
        if view.storage is None:
            place(content, view, file, None, view.reach * view.width, "")
        elif view.storage.key not in starts:
            content.add(Verdict.CORRUPT, f"storage {view.storage.key[:40]} of tensor {view.name} is not in the file", view.name)
        else:
            start = starts[view.storage.key]
            place(content, view, file, base + start, view.storage.nbytes, f"storage {view.storage.key[:40]}")
            if deep:
                begin, length = (
                    (start + view.offset * view.width, view.elements * view.width) if view.contiguous else (start, view.storage.nbytes)
                )
                text = values.look(source, begin, length, view.dtype)
                if text:
                    content.add(Verdict.WARN, f"tensor {view.name} has {text}", view.name)


def _trailing(content: Content, source: Readable, at: int) -> None:
    """torch.save may be called several times on one open file; what follows is then another whole stream, of which only pickles
    are judged."""
    if source.read(at, len(MAGIC_BYTES)) == MAGIC_BYTES:
        content.add(Verdict.WARN, "several objects were saved into this file one after another; only the first is listed")
        data = source.read(at, min(source.size - at, HEAD))
        position = 0
        for _ in range(5):
            try:
                pickle = read_pickle(data, position, source.name)
            except CorruptError:
                return
            judge(content, pickle)
            position = pickle.end
    else:
        content.add(Verdict.WARN, f"{source.size - at} bytes follow the last storage, and nothing refers to them")
