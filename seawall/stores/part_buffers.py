"""Part buffers under one bound, so that memory does not depend on the size of files."""

import contextlib
import mmap
import threading
from collections import defaultdict

_POOLED_FROM_BYTES = 1 << 20


def fresh_buffer(nbytes: int) -> memoryview:
    """Memory for ``nbytes``, of any content. From a mebibyte on it is a mapping with huge pages, where the kernel has them.

    A ``bytearray`` of 8 MiB is zeroed first and costs 2,048 page faults; this costs four.
    """
    return memoryview(_mapping(nbytes) if nbytes >= _POOLED_FROM_BYTES else bytearray(nbytes))


def _mapping(nbytes: int) -> mmap.mmap:
    # Private, because shared anonymous memory (the default here) gets no huge pages.
    mapping = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # A kernel without huge pages refuses the hint.
    with contextlib.suppress(OSError):
        mapping.madvise(mmap.MADV_HUGEPAGE)
    return mapping


class PartBuffers:
    """Lends buffers, at most ``limit_bytes`` at a time; waits when they are all lent.

    Large buffers are mappings and used again: a fresh ``bytes`` of 8 MiB costs its page faults each time (1.2 to 1.8 times
    the cost of encrypting into it).
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._lent = 0
        self._free: defaultdict[int, list[mmap.mmap]] = defaultdict(list)
        self._owners: dict[int, tuple[int, mmap.mmap | None]] = {}
        self._changed = threading.Condition()

    def take(self, nbytes: int) -> memoryview:
        """A buffer of ``nbytes``. One larger than the limit is lent when nothing else is."""
        with self._changed:
            while self._lent and self._lent + nbytes > self._limit:
                self._changed.wait()
            return self._lend(nbytes)

    def take_now(self, nbytes: int) -> memoryview | None:
        """A buffer if there is room at once. Who holds buffers already must not wait for more, or all would wait for each other."""
        with self._changed:
            return None if self._lent and self._lent + nbytes > self._limit else self._lend(nbytes)

    def _lend(self, nbytes: int) -> memoryview:
        self._lent += nbytes
        mapping = None
        if nbytes >= _POOLED_FROM_BYTES:
            mapping = self._free[nbytes].pop() if self._free[nbytes] else _mapping(nbytes)
        view = memoryview(mapping if mapping is not None else bytearray(nbytes))
        self._owners[id(view)] = (nbytes, mapping)
        return view

    def give(self, view: memoryview) -> None:
        """Take a buffer back; the very view that :meth:`take` lent."""
        with self._changed:
            nbytes, mapping = self._owners.pop(id(view))
            self._lent -= nbytes
            if mapping is not None:
                self._free[nbytes].append(mapping)
            self._changed.notify_all()
