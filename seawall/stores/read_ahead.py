"""Reading spans of an object ahead of whoever uses them, in order, with a bound on what is in flight."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from seawall.errors import CorruptError
from seawall.stores.base import Store
from seawall.stores.part_buffers import PartBuffers

READ_AHEAD = 2
"""Spans of one object in flight, two records each. Several objects are read at once, so that all transfers are busy."""


def read_ahead(
    store: Store, key: str, spans: Sequence[tuple[int, int]], pool: ThreadPoolExecutor, buffers: PartBuffers
) -> Iterator[memoryview]:
    """The bytes of each (start, length) in order. A buffer is lent until the next one is asked for.

    Raises :class:`CorruptError` when the object ends inside a span.
    """
    waiting: deque[tuple[Future[int], memoryview, int]] = deque()
    asked = 0
    try:
        for number in range(len(spans)):
            while asked < len(spans) and asked < number + READ_AHEAD:
                start, length = spans[asked]
                # Who holds buffers must not wait for more: all readers would wait for each other.
                buffer = buffers.take_now(length) if waiting else buffers.take(length)
                if buffer is None:
                    break
                waiting.append((pool.submit(store.read_into, key, start, buffer), buffer, length))
                asked += 1
            future, buffer, length = waiting[0]
            count = future.result()
            if count != length:
                raise CorruptError("the object is shorter than it should be", where=f"{store.url}/{key}", why=f"part {number} is cut")
            yield buffer
            waiting.popleft()
            buffers.give(buffer)
    finally:
        for future, buffer, _ in waiting:
            # The buffer is written to until the read ends.
            future.exception()
            buffers.give(buffer)
