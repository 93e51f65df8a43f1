"""What this host can use: configuration, stores, keys, local state. Everything is opened when it is first asked for."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from seawall.cli.config import Configuration, find_config, load_config
from seawall.clock import Clock, SystemClock
from seawall.errors import ConfigurationError, KeyMissingError, StoreError, UsageError
from seawall.log.floor import FreshnessReport
from seawall.log.identity import identify
from seawall.log.opening import open_log, remember
from seawall.log.read import LogView
from seawall.protect.configuration import RunSettings
from seawall.protect.place import Place
from seawall.stores.base import Capabilities, Store
from seawall.stores.configuration import CoordinationSettings, StoreSettings
from seawall.stores.locate import open_store
from seawall.vault.configuration import KeyringSettings, KeySettings
from seawall.vault.signing import PublicKey, SigningKey
from seawall.verify.levels import Level

if TYPE_CHECKING:
    from seawall.alerts.dingtalk import DingTalk
    from seawall.alerts.send import Receivers
    from seawall.stores.s3_signing import AwsKeys
    from seawall.vault.recipients import Recipient, Unwrapper


class Site:
    """One host's view of everything that seawall.toml names."""

    def __init__(self, path: Path, clock: Clock | None = None, recovery_key: Path | None = None, *, create_stores: bool = False) -> None:
        """``create_stores`` makes the folders of file stores. Only `init` does: a folder that is missing later is a disk not mounted."""
        self.path = path
        self.folder = path.parent
        self.clock: Clock = clock or SystemClock()
        self._recovery_key = recovery_key
        self._create_stores = create_stores
        self._places: dict[str, Place] = {}
        self._stores: dict[str, Store] = {}

    @cached_property
    def config(self) -> Configuration:
        return load_config(self.path)

    @cached_property
    def state(self) -> Path:
        """Folder of this host's caches."""
        return self.resolve(self.config.state)

    @cached_property
    def trust_root(self) -> PublicKey:
        return PublicKey.from_text(self.config.trust_root)

    def resolve(self, path: str) -> Path:
        """A path of the configuration: relative ones begin at the configuration's folder."""
        try:
            return self.folder / Path(path).expanduser()
        except RuntimeError as error:
            raise ConfigurationError("a path begins with a home that nobody has", where=path, why=str(error), do="write it out") from None

    def run(self, name: str) -> RunSettings:
        """The settings of a run; :class:`UsageError` when the configuration has none."""
        try:
            return self.config.runs[name]
        except KeyError:
            known = ", ".join(sorted(self.config.runs)) or "none"
            raise UsageError("the configuration has no such run", where=name, why=f"runs here: {known}", do=f"add [runs.{name}]") from None

    def store(self, name: str) -> Store:
        """A configured store, by name. Nothing is sent."""
        if name not in self._stores:
            if name not in self.config.stores:
                known = ", ".join(sorted(self.config.stores))
                raise UsageError("the configuration has no such store", where=name, why=f"stores here: {known}")
            settings = self.config.stores[name]
            store = open_store(
                settings.url,
                create=self._create_stores,
                endpoint=settings.endpoint,
                region=settings.region,
                profile=settings.profile,
                keys=self._keys(settings),
                transfers=self.config.transfer.transfers,
                bandwidth_bits_per_second=self._bandwidth(),
                capabilities=self._known_capabilities(settings.url, settings.endpoint),
                clock=self.clock,
            )
            self._stores[name] = self._locking(store, settings)
        return self._stores[name]

    def _locking(self, store: Store, settings: StoreSettings) -> Store:
        """``store``, and around it the locks that the configuration asks for."""
        if settings.lock_days is None:
            return store
        from seawall.stores.lock import LockStore

        return LockStore(store, timedelta(hours=settings.upload_lock_hours), timedelta(days=settings.lock_days), self.clock)

    def _bandwidth(self) -> int | None:
        """Bits per second that this process may move to or from a store. A command is the only worker."""
        return self.config.transfer.bandwidth_bits_per_second

    def _keys(self, settings: StoreSettings) -> "Callable[[], AwsKeys] | None":
        """Where a store's credentials come from. None means the usual AWS settings; operators ask Airflow's connection."""
        return None

    def place(self, name: str) -> Place:
        """A configured store with its id. One request, the first time."""
        if name not in self._places:
            store = self.store(name)
            settings = self.config.stores[name]
            lock = None if settings.lock_days is None else timedelta(days=settings.lock_days)
            self._places[name] = Place(name, identify(store), store, lock, timedelta(minutes=settings.retrieval_minutes))
        return self._places[name]

    @property
    def coordination(self) -> Place:
        return self.place(self.config.coordination.store)

    def places(self, run: str) -> list[Place]:
        """The places that a sync of the run fills, the first of which must take a checkpoint whole."""
        return [self.place(name) for name in self.run(run).synced]

    def answering_places(self, run: str) -> tuple[list[Place], dict[str, str]]:
        """The places that a sync fills, the first of which must answer; and of the others that do not, why. A later sync fills those."""
        first, *others = self.run(run).synced
        places, absent = [self.place(first)], {}
        for name in others:
            try:
                places.append(self.place(name))
            except StoreError as error:
                absent[name] = str(error)
        return places, absent

    def source_folder(self, run: str) -> Path:
        """Where the run trains now and writes its checkpoints; :class:`UsageError` when the configuration does not tell."""
        settings = self.run(run)
        if settings.training_zone:
            return self.resolve(settings.paths[settings.training_zone])
        raise UsageError(
            "the run's folder is not clear", why=f"{len(settings.paths)} paths and no primary_zone", do="set primary_zone, or use --path"
        )

    def mirrors(self, run: str) -> dict[str, Store]:
        """The other stores of a run, which mirror its log."""
        return {name: self.store(name) for name in self.run(run).copies if name != self.config.coordination.store}

    def view(self, run: str) -> tuple[LogView, FreshnessReport]:
        """The run's log from the coordination store, compared with local memory and the mirrors."""
        place = self.coordination
        return open_log(place.store, run, self.trust_root, self.state, self.mirrors(run), store_id=place.id)

    def remember(self, view: LogView) -> None:
        """Keep a view that this command extended, so that the next one need not read it again."""
        remember(self.state, view)

    def signing_key(self, role: str) -> SigningKey:
        """This host's key of a role; :class:`KeyMissingError` when it may not or does not have it."""
        path: str | None = getattr(self.config.keys.signing, role)
        if path is None:
            raise KeyMissingError(
                f"this host has no {role} key", where=str(self.path), do=f"run this where [keys.signing] has {role}, or add it here"
            )
        return SigningKey.load(self.resolve(path), role)

    def has_signing_key(self, role: str) -> bool:
        return getattr(self.config.keys.signing, role) is not None

    def recipients(self) -> "Sequence[Recipient]":
        """Who can open what this host seals: the keyring and the offline recovery key."""
        from seawall.vault.keyring import Keyring
        from seawall.vault.recipients import RecoveryPublicKey, read_key_file

        recipients: list[Recipient] = []
        if self.config.keys.keyring is not None:
            recipients.append(Keyring.load(self.resolve(self.config.keys.keyring.path)).current)
        if self.config.keys.recovery is not None:
            path = self.resolve(self.config.keys.recovery.public)
            try:
                recipients.append(RecoveryPublicKey.from_text(read_key_file(path)))
            except OSError as error:
                raise KeyMissingError("the recovery key's public half is not there", where=str(path), why=error.strerror or "") from error
        if not recipients:
            raise ConfigurationError(
                "nobody could open what is sealed here", where=str(self.path), do="add [keys.keyring] or [keys.recovery]"
            )
        return recipients

    def unwrappers(self) -> "Sequence[Unwrapper]":
        """The secret keys that this host holds. May be empty; then only public levels can be verified."""
        from seawall.vault.keyring import Keyring
        from seawall.vault.recipients import RecoveryKey, read_key_file

        found: list[Unwrapper] = []
        if self._recovery_key is not None:
            try:
                found.append(RecoveryKey.from_text(read_key_file(self._recovery_key)))
            except OSError as error:
                raise KeyMissingError("the recovery key is not there", where=str(self._recovery_key), why=error.strerror or "") from error
        if self.config.keys.keyring is not None:
            path = self.resolve(self.config.keys.keyring.path)
            if path.exists() or not found:
                found.extend(reversed(Keyring.load(path).keys))
        return found

    def level_to_check(self, text: str | None, on_problem: Callable[[str], None] | None = None) -> Level:
        """The level that was asked for, or the highest that this host can check; :class:`UsageError` for what no check gives."""
        if not text:
            return self.highest_level(on_problem)
        try:
            level = Level.parse(text)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if level > Level.L4:
            raise UsageError("L5 is proved by resuming training from a copy", where=text, do="verify up to L4 here")
        return level

    def highest_level(self, on_problem: Callable[[str], None] | None = None) -> Level:
        """The highest level that this host can verify to: without a key that opens sealings, the public ones.

        ``on_problem`` hears of a keyring that is here and refused. A recovery key that was named must be usable: :class:`KeyMissingError`.
        """
        try:
            return Level.L4 if self.unwrappers() else Level.L2
        except KeyMissingError as error:
            if self._recovery_key is not None:
                raise
            if on_problem is not None and self.config.keys.keyring is not None and self.resolve(self.config.keys.keyring.path).exists():
                on_problem(f"nothing above L2 is checked: {error}")
            return Level.L2

    def dingtalk(self) -> "DingTalk | None":
        """The chat robot that this host may use, or None. Operators ask Airflow's connection first."""
        from seawall.alerts.configuration import dingtalk_of_host

        return dingtalk_of_host(self.config.alerts, self.folder)

    def receivers(self) -> "Receivers":
        """Whom this host tells."""
        from seawall.alerts.configuration import alertmanagers
        from seawall.alerts.send import Receivers

        return Receivers(alertmanagers(self.config.alerts), self.dingtalk())

    @property
    def scratch(self) -> Path | None:
        """Folder with room for a checkpoint, for L4; None for the system's temporary one."""
        scratch = self.config.verify.scratch
        return self.resolve(scratch) if scratch else None

    def close(self) -> None:
        """Remember what the stores turned out to be able to do, and give back connections."""
        for name, store in self._stores.items():
            settings = self.config.stores[name]
            self._remember_capabilities(settings.url, settings.endpoint, store)
            store.close()

    def _capability_file(self, url: str, endpoint: str | None) -> Path:
        return self.state / "stores" / (sha256(f"{url} {endpoint}".encode()).hexdigest()[:32] + ".json")

    def _known_capabilities(self, url: str, endpoint: str | None) -> Capabilities | None:
        """What an earlier command found out. Probing costs requests, and a server does not change from one sync to the next."""
        try:
            facts = json.loads(self._capability_file(url, endpoint).read_bytes())
            return Capabilities(**{**facts, "reasons": tuple(facts["reasons"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _remember_capabilities(self, url: str, endpoint: str | None, store: Store) -> None:
        path = self._capability_file(url, endpoint)
        if not url.startswith("s3:") or path.exists():
            return
        known = getattr(store, "known_capabilities", None)
        if known is not None:
            # A state folder that cannot be written costs a probe each time, and nothing else.
            with suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh = path.with_suffix(".new")
                fresh.write_text(json.dumps(asdict(known)))
                fresh.replace(path)


def found_site(config: Path | None, recovery_key: Path | None = None) -> Site:
    """The site of the configuration that was named, or is found."""
    return Site(find_config(config), recovery_key=recovery_key)


class LoneStore(Site):
    """A site made of one store, a trust root and a key: what is left when everything else is lost."""

    def view(self, run: str) -> tuple[LogView, FreshnessReport]:
        """The run's log from the one store there is, which may be a mirror."""
        return open_log(self.coordination.store, run, self.trust_root, None, {}, mirror=True)

    def close(self) -> None:
        """Nothing is remembered."""
        for store in self._stores.values():
            store.close()


def alone(run: str, trust_root: str, url: str | None, endpoint: str | None, keyring: Path | None, recovery_key: Path | None) -> LoneStore:
    """Build a :class:`LoneStore`; :class:`UsageError` when url or key are not given."""
    if url is None or (keyring is None and recovery_key is None):
        raise UsageError("a lost site needs a store and a key", do="give --store URL, and --keyring or --recovery-key")
    site = LoneStore(Path.cwd() / "none", recovery_key=recovery_key)
    try:
        settings = StoreSettings(url=url, endpoint=endpoint)
    except ValueError as error:
        raise UsageError("--store is no URL of a store", where=url, why=str(error).splitlines()[-1]) from None
    site.__dict__["config"] = Configuration(
        trust_root=trust_root,
        stores={"store": settings},
        coordination=CoordinationSettings(store="store"),
        runs={run: RunSettings(copies=("store",))},
        keys=KeySettings(keyring=KeyringSettings(path=str(keyring.absolute())) if keyring else None),
    )
    return site
