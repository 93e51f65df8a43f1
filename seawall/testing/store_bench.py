"""Two connections to a store under test, a folder of their own in it, and the clean-up."""

import contextlib
import random
import secrets
from collections.abc import Callable

from seawall.errors import NoSuchObjectError, StoreError, StoreRefusedError
from seawall.kernels.crc64 import crc64
from seawall.stores.base import Store

_VERSIONS = 20
"""No check writes more versions of one key than this. Sixteen racers may, where a server lets several of them finish."""


class StoreBench:
    """What each check works with. ``one`` and ``two`` are equal connections; keys come from ``key``."""

    def __init__(self, make_store: Callable[[], Store], objects: int) -> None:
        self.one = make_store()
        self.two = make_store()
        self.objects = objects
        self.folder = f"seawall-validate-{secrets.token_hex(6)}/"

    def key(self, name: str) -> str:
        """A key inside the folder of this run."""
        return self.folder + name

    def visible(self, key: str) -> bool:
        """Whether the second connection sees an object."""
        try:
            self.two.head(key)
        except NoSuchObjectError:
            return False
        return True

    def remove(self, key: str) -> None:
        """Delete the current version, so that a versioned bucket is not left with a marker."""
        self.one.delete(key, self.one.head(key).version if self.one.capabilities.versions else None)

    def clean(self) -> list[str]:
        """Remove everything of this run; returns what could not be removed, with the reason."""
        kept: dict[str, str] = {}
        try:
            for leftover in list(self.one.leftovers(self.folder)):
                with contextlib.suppress(StoreError):
                    self.one.abort_leftover(leftover)
            # A deleted version brings the one before it to light: so many rounds, and what is still there then does not go.
            for _ in range(_VERSIONS):
                fresh = [found.key for found in self.one.list(self.folder) if found.key not in kept]
                if not fresh:
                    break
                for key in fresh:
                    try:
                        self.remove(key)
                    except NoSuchObjectError:
                        continue
                    except StoreRefusedError as error:
                        kept[key] = error.why or error.what
            for found in self.one.list(self.folder):
                kept.setdefault(found.key, "it is still listed after it was deleted")
        except StoreError as error:
            kept[self.folder] = str(error)
        return [f"{key} ({why})" for key, why in kept.items()]

    def close(self) -> None:
        """Close both connections."""
        self.one.close()
        self.two.close()


def body(size: int, seed: int = 0) -> bytes:
    """Bytes without repetitions, the same for the same arguments."""
    return random.Random(seed).randbytes(size)


def crc(data: bytes) -> int:
    """CRC-64/NVME."""
    return crc64(data)
