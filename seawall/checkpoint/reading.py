"""Bounded reads of bytes that nobody has vouched for: open files, parts of them, and bytes in memory."""

import os
from typing import Protocol

from seawall.errors import CorruptError

BLOCK = 4 << 20
"""Bytes read at a time when a whole record is streamed."""


class Readable(Protocol):
    """Something with a size and random access. Nothing here moves a shared position."""

    size: int
    name: str
    """For messages: the file's name relative to what is inspected."""

    def read(self, at: int, length: int) -> bytes:
        """Bytes ``at`` to ``at + length``; fewer only at the end."""
        ...


class OpenFile:
    """A regular file behind a descriptor; closed by whoever opened it."""

    def __init__(self, descriptor: int, size: int, name: str) -> None:
        self.descriptor = descriptor
        self.size = size
        self.name = name

    def read(self, at: int, length: int) -> bytes:
        if at < 0 or length <= 0 or at >= self.size:
            return b""
        length = min(length, self.size - at)
        parts = []
        while length > 0:
            try:
                part = os.pread(self.descriptor, length, at)
            except OSError as error:
                raise CorruptError(f"bytes from {at} on cannot be read", where=self.name, why=error.strerror or "") from error
            if not part:
                break
            parts.append(part)
            at += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class InMemory:
    """Bytes that are already here, for containers inside containers."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.size = len(data)
        self.name = name

    def read(self, at: int, length: int) -> bytes:
        return self.data[at : at + length] if at >= 0 and length > 0 else b""


class Part:
    """A range of another readable, seen as one of its own: a chunk of a ``.distcp`` file, say."""

    def __init__(self, whole: Readable, start: int, length: int) -> None:
        self.whole = whole
        self.start = start
        self.size = max(0, min(length, whole.size - start))
        self.name = whole.name

    def read(self, at: int, length: int) -> bytes:
        if at < 0 or length <= 0 or at >= self.size:
            return b""
        return self.whole.read(self.start + at, min(length, self.size - at))


def read_exactly(source: Readable, at: int, length: int, what: str) -> bytes:
    """``length`` bytes, or :class:`CorruptError` saying that ``what`` is cut."""
    data = source.read(at, length)
    if len(data) != length:
        raise CorruptError(f"{what} is cut: {length} bytes from {at} on, the file has {source.size}", where=source.name)
    return data
