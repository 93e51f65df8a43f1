"""A whole site in one folder for tests: root and role keys, a keyring, two stores with ids, an open run."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seawall.clock import Clock, SystemClock
from seawall.log.floor import FreshnessReport
from seawall.log.identity import identify
from seawall.log.opening import open_log, remember
from seawall.log.read import LogView
from seawall.log.verbs import open_run
from seawall.protect.checkpoint_source import CheckpointSource, read_source
from seawall.protect.place import Place
from seawall.protect.sync import Synced, SyncKeys, sync
from seawall.stores.base import Store
from seawall.stores.file import FileStore
from seawall.vault.codecs import Codec
from seawall.vault.inventory import Inventory
from seawall.vault.keyring import Keyring
from seawall.vault.recipients import RecoveryKey
from seawall.vault.sealing import Sealing, read_inventory, read_sealing, unlock
from seawall.vault.signing import ROLES, ROOT, SigningKey
from seawall.vault.trust import first_list, sign_list

RUN = "gpt"


@dataclass
class LittleSite:
    """Keys and stores. Stores may be replaced by wrapped ones at any time."""

    stores: dict[str, Store]
    coordination: str = "c"
    clock: Clock = field(default_factory=SystemClock)
    root: SigningKey = field(default_factory=lambda: SigningKey.generate(ROOT))
    keys: dict[str, SigningKey] = field(default_factory=lambda: {role: SigningKey.generate(role) for role in ROLES})
    keyring: Keyring = field(default_factory=Keyring.generate)
    recovery: RecoveryKey = field(default_factory=RecoveryKey.generate)
    state: Path | None = None
    _places: dict[str, Place] = field(default_factory=dict)

    def open(self, run: str = RUN) -> LogView:
        """Give every store an id and begin the run."""
        for store in self.stores.values():
            identify(store, create=True)
        trust = sign_list(first_list(list(self.keys.values()), self.clock), self.root)
        writers = [self.keys["writer"].key_id]
        return open_run(self.stores[self.coordination], run, self.root.public, trust, self.keys["coordinator"], writers, self.clock)

    def view(self, run: str = RUN) -> LogView:
        return self.fresh_view(run)[0]

    def fresh_view(self, run: str = RUN) -> tuple[LogView, FreshnessReport]:
        """As every command opens the log: against the local state and the other stores."""
        mirrors = {name: store for name, store in self.stores.items() if name != self.coordination}
        place = self.place(self.coordination)
        return open_log(place.store, run, self.root.public, self.state, mirrors, store_id=place.id)

    def place(self, name: str) -> Place:
        store = self.stores[name]
        if name not in self._places or self._places[name].store is not store:
            self._places[name] = Place(name, identify(store), store)
        return self._places[name]

    def sync_keys(self) -> SyncKeys:
        return SyncKeys(self.keys["writer"], [self.keyring.current, self.recovery.public], self.keyring.keys)

    def sync(
        self,
        source: CheckpointSource | Path,
        places: Sequence[str] = ("a", "c"),
        run: str = RUN,
        codec: Codec = Codec.NONE,
        batch_bytes: int = 64 << 30,
        transfers: int = 4,
    ) -> Synced:
        """Take a checkpoint to the named stores."""
        view, report = self.fresh_view(run)
        done = sync(
            source if isinstance(source, CheckpointSource) else read_source(str(source)),
            run,
            view,
            places=[self.place(name) for name in places],
            coordination=self.stores[self.coordination],
            keys=self.sync_keys(),
            clock=self.clock,
            codec=codec,
            batch_bytes=batch_bytes,
            transfers=transfers,
            mirrors_behind=report.behind,
        )
        if self.state:
            remember(self.state, done.view)
        return done

    def opened(self, store: str, sealing: str, run: str = RUN) -> tuple[Sealing, Inventory, bytes]:
        """A committed copy, its inventory and its data key."""
        state = self.view(run).state
        commit = state.commit_of(sealing)
        found = read_sealing(self.stores[store], run, bytes.fromhex(sealing), commit.manifest, state.writer_of(commit))
        data_key = unlock(found, self.keyring.keys, state.resolver("operator"))
        return found, read_inventory(found, data_key), data_key


def file_site(folder: Path, names: Sequence[str] = ("a", "c"), coordination: str = "c") -> LittleSite:
    """A site over file stores below ``folder``, with its run open."""
    site = LittleSite({name: FileStore(f"file://{folder}/{name}", create=True) for name in names}, coordination)
    site.open()
    return site


def write_checkpoint(folder: Path, step: int = 100, epoch: int | None = None, files: dict[str, bytes] | None = None) -> Path:
    """An opaque checkpoint: some files and a commit mark that is written last."""
    folder.mkdir(parents=True)
    for name, content in (files if files is not None else {"weights.raw": os.urandom(3000), "empty": b""}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    mark = {"step": step} | ({} if epoch is None else {"epoch": epoch})
    (folder / "_COMMITTED").write_text(json.dumps(mark))
    return folder


def tree(folder: Path) -> dict[bytes, tuple[str, int, bytes]]:
    """Everything below a folder: kind, mode and content (or target), by name as the file system has it."""
    found: dict[bytes, tuple[str, int, bytes]] = {}
    root = os.fsencode(folder)
    for at, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(at, name)
            relative = os.path.relpath(path, root)
            facts = os.lstat(path)
            if os.path.islink(path):
                found[relative] = ("link", 0, os.readlink(path))
            elif os.path.isdir(path):
                found[relative] = ("folder", 0 if os.listdir(path) else facts.st_mode & 0o777, b"")
            else:
                with open(path, "rb") as file:
                    found[relative] = ("file", facts.st_mode & 0o777, file.read())
    return found
