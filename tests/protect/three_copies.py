"""A checkpoint with whole copies in three stores in memory, for a test to damage and heal."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seawall.log.state import CommitRecord
from seawall.protect.heal import Healed, heal
from seawall.protect.heal_receipt import Receipts, read_receipts
from seawall.stores.base import Store
from seawall.testing.memory import MemoryStore
from seawall.vault.header import HEADER_BYTES
from seawall.vault.identity import sealing_folder
from seawall.verify.check import check_copy
from seawall.verify.levels import Level
from seawall.verify.receipts import receipt_signers
from tests.protect.little_site import RUN, LittleSite, write_checkpoint

MIB = 1 << 20
RECORD_BYTES = 8 * MIB + 1 + 16
"""A stored record of a whole chunk: codec byte and authentication tag more."""
# Files by name: _COMMITTED, empty, large, small.
EMPTY, LARGE, SMALL = "file-1.sea", "file-2.sea", "file-3.sea"
Change = Callable[[bytes], bytes | None]


@dataclass
class Copies:
    """A checkpoint with whole copies in ``a``, ``b`` and ``c``; ``c`` is the coordination store."""

    site: LittleSite
    commit: CommitRecord
    source: Path

    @property
    def folder(self) -> str:
        return sealing_folder(RUN, bytes.fromhex(self.commit.sealing))

    def memory(self, name: str) -> MemoryStore:
        store = self.site.stores[name]
        assert isinstance(store, MemoryStore)
        return store

    def change(self, name: str, object_name: str, change: Change) -> None:
        """Play a store that lost or altered an object."""
        store, key = self.memory(name), self.folder + object_name
        changed = change(store.objects[key])
        if changed is None:
            del store.objects[key]
        else:
            store._set(key, changed)

    def heal(self, name: str = "a", others: Sequence[str] = ("b", "c"), **options: Any) -> Healed:
        places = [self.site.place(other) for other in others]
        wanted: dict[str, Any] = {"writer": self.site.keys["writer"], **options}
        return heal(
            self.site.view(),
            self.commit,
            self.site.place(name),
            places,
            coordination=self.site.stores["c"],
            clock=self.site.clock,
            transfers=4,
            **wanted,
        )

    def damaged(self, name: str) -> set[str]:
        """What a verifier without any secret key finds wrong."""
        state = self.site.view().state
        writers, operators = state.writer_of(self.commit), state.resolver("operator")
        sealing = bytes.fromhex(self.commit.sealing)
        findings = check_copy(self.site.stores[name], RUN, sealing, self.commit.manifest, writers, operators, Level.L2)
        return {damage.object for finding in findings for damage in finding.damages}

    def stored(self, name: str) -> dict[str, bytes]:
        """The sealing's objects in a store, but its receipts."""
        return {
            key.removeprefix(self.folder): raw
            for key, raw in self.memory(name).objects.items()
            if key.startswith(self.folder) and "receipt-" not in key
        }

    def receipts(self, name: str) -> Receipts:
        return read_receipts(self.site.place(name), RUN, self.commit, receipt_signers(self.site.view().state))


def new_copies(folder: Path) -> Copies:
    site = LittleSite({name: MemoryStore(name) for name in "abc"})
    site.open()
    files = {"small": os.urandom(3000), "empty": b"", "large": os.urandom(17 * MIB)}
    source = write_checkpoint(folder / "ck", files=files)
    done = site.sync(source, places=("a", "b", "c"))
    return Copies(site, site.view().state.commit_of(done.sealing), source)


def fresh(sealed_once: Copies) -> Copies:
    """The same, in stores of their own that may be damaged."""
    stores: dict[str, Store] = {}
    for name in "abc":
        fresh, old = MemoryStore(name), sealed_once.memory(name)
        fresh.objects, fresh._arrived, fresh._changes = dict(old.objects), dict(old._arrived), old._changes
        stores[name] = fresh
    old_site = sealed_once.site
    site = LittleSite(stores, root=old_site.root, keys=old_site.keys, keyring=old_site.keyring, recovery=old_site.recovery)
    return Copies(site, sealed_once.commit, sealed_once.source)


def flip(at: int) -> Change:
    """One bit at byte ``at``, from the end if negative."""

    def change(raw: bytes) -> bytes:
        altered = bytearray(raw)
        altered[at] ^= 0x10
        return bytes(altered)

    return change


def gone(raw: bytes) -> None:
    """The object is not there any more."""


def in_record(number: int) -> Change:
    """A flip inside a record of the large file."""
    return flip(HEADER_BYTES + number * RECORD_BYTES + 5)


@pytest.fixture(scope="module")
def sealed_once(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return new_copies(tmp_path_factory.mktemp("copies"))


@pytest.fixture
def copies(sealed_once: Copies) -> Copies:
    return fresh(sealed_once)
