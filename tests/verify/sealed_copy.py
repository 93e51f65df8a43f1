"""A committed checkpoint whose copy lies in memory, for a test to damage and check."""

import os
from dataclasses import dataclass
from pathlib import Path

from seawall.log.state import CommitRecord, RunState
from seawall.protect.checkpoint_source import CheckpointSource
from seawall.stores.base import Store
from seawall.testing.memory import MemoryStore
from seawall.vault.identity import sealing_folder
from seawall.vault.inventory import Inventory
from seawall.vault.sealing import Sealing, read_inventory, unlock
from seawall.verify.check import FAILED, OK, Finding, Unlocked, check_copy
from seawall.verify.levels import Level
from tests.protect.little_site import RUN, LittleSite, write_checkpoint

MIB = 1 << 20
SMALL = {"twin-a": os.urandom(3000), "twin-b": os.urandom(3000), "empty": b""}
LARGE = {"large": os.urandom(17 * MIB)}
"""Three records, and more than a reader takes in one request."""


@dataclass
class SealedCopy:
    """``store`` holds the copy; ``site`` has its keys."""

    site: LittleSite
    store: MemoryStore
    state: RunState
    commit: CommitRecord

    @property
    def folder(self) -> str:
        """Where its objects are, with a slash at the end."""
        return sealing_folder(RUN, bytes.fromhex(self.commit.sealing))

    def fresh(self) -> "SealedCopy":
        """The same, in a store of its own that may be damaged."""
        store = MemoryStore("copy")
        store.objects = dict(self.store.objects)
        return SealedCopy(self.site, store, self.state, self.commit)

    def open_up(self, sealing: Sealing) -> Unlocked:
        """With the site's keyring."""
        data_key = unlock(sealing, self.site.keyring.keys, self.state.resolver("operator"))
        return Unlocked(data_key, read_inventory(sealing, data_key))

    def check(self, up_to: Level, store: Store | None = None, *, keys: bool = True) -> dict[Level, Finding]:
        """Findings by level."""
        findings = check_copy(
            store or self.store,
            RUN,
            bytes.fromhex(self.commit.sealing),
            self.commit.manifest,
            self.state.writer_of(self.commit),
            self.state.resolver("operator"),
            up_to,
            unlock=self.open_up if keys else None,
            transfers=4,
        )
        return {finding.level: finding for finding in findings}

    def inventory(self) -> Inventory:
        """As it was committed."""
        return self.site.opened("a", self.commit.sealing)[1]


def sealed(source: CheckpointSource | Path) -> SealedCopy:
    """Seal a checkpoint into a store in memory."""
    store = MemoryStore("a")
    site = LittleSite({"a": store, "c": MemoryStore("c")})
    site.open()
    done = site.sync(source, places=("a",))
    state = site.view().state
    return SealedCopy(site, store, state, state.commit_of(done.sealing))


def sealed_files(folder: Path, files: dict[str, bytes]) -> SealedCopy:
    """Seal these files."""
    return sealed(write_checkpoint(folder, files=files))


def failed(findings: dict[Level, Finding]) -> set[Level]:
    """The levels that failed."""
    return {level for level, finding in findings.items() if finding.result == FAILED}


def proved(findings: dict[Level, Finding]) -> set[Level]:
    """The levels that hold."""
    return {level for level, finding in findings.items() if finding.result == OK}
