"""The base of stores that add behaviour to another store. A wrapper overrides ``around``, or the few methods that it is about."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from seawall.stores.base import Buffer, Capabilities, Leftover, Store, Stored, Upload

Result = TypeVar("Result")


class Wrapper:
    """Hands every call on to ``inner``, through ``around``."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.url = inner.url

    def around(self, method: str, key: str, action: Callable[[], Result]) -> Result:
        """Run one call. ``method`` is its name in :class:`Store`, or ``part``, ``finish`` or ``abort`` of an upload.

        ``key`` is the key or prefix, or empty.
        """
        return action()

    @property
    def capabilities(self) -> Capabilities:
        return self.around("capabilities", "", lambda: self.inner.capabilities)

    @property
    def known_capabilities(self) -> Capabilities | None:
        """Those of the wrapped store as far as it knows them without asking; None where it does not say."""
        known: Capabilities | None = getattr(self.inner, "known_capabilities", None)
        return known

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        return self.around("put", key, lambda: self.inner.put(key, data, crc64, lock_until=lock_until))

    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        return WrappedUpload(self, key, self.around("begin", key, lambda: self.inner.begin(key, lock_until=lock_until)))

    def extend_lock(self, key: str, until: datetime, version: str | None = None) -> None:
        self.around("extend_lock", key, lambda: self.inner.extend_lock(key, until, version))

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        return self.around("get", key, lambda: self.inner.get(key, start, length, version))

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        return self.around("read_into", key, lambda: self.inner.read_into(key, start, buffer, version))

    def head(self, key: str, version: str | None = None) -> Stored:
        return self.around("head", key, lambda: self.inner.head(key, version))

    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        return self.around("list", prefix, lambda: self.inner.list(prefix, after))

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self.around("list_folders", prefix, lambda: self.inner.list_folders(prefix))

    def replace(self, key: str, data: Buffer | Sequence[Buffer], damaged_version: str | None, crc64: int | None = None) -> Stored:
        return self.around("replace", key, lambda: self.inner.replace(key, data, damaged_version, crc64))

    def delete(self, key: str, version: str | None = None) -> None:
        self.around("delete", key, lambda: self.inner.delete(key, version))

    def server_time(self) -> datetime | None:
        return self.around("server_time", "", lambda: self.inner.server_time())

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        return self.around("leftovers", prefix, lambda: self.inner.leftovers(prefix))

    def abort_leftover(self, leftover: Leftover) -> None:
        self.around("abort_leftover", leftover.key, lambda: self.inner.abort_leftover(leftover))

    def warm(self, keys: Sequence[str]) -> None:
        self.around("warm", "", lambda: self.inner.warm(keys))

    def wait_warm(self, keys: Sequence[str], timeout_seconds: float) -> None:
        self.around("wait_warm", "", lambda: self.inner.wait_warm(keys, timeout_seconds))

    def close(self) -> None:
        self.inner.close()


class WrappedUpload:
    """An upload whose calls go through the wrapper too."""

    def __init__(self, wrapper: Wrapper, key: str, inner: Upload) -> None:
        self.wrapper = wrapper
        self.key = key
        self.inner = inner

    def part(self, number: int, start: int, data: Buffer, crc64: int) -> None:
        self.wrapper.around("part", self.key, lambda: self.inner.part(number, start, data, crc64))

    def finish(self, crc64: int, size: int) -> Stored:
        return self.wrapper.around("finish", self.key, lambda: self.inner.finish(crc64, size))

    def abort(self) -> None:
        self.wrapper.around("abort", self.key, lambda: self.inner.abort())
