"""What is wrong with one copy, down to the record, and where right bytes of it are. Only reads; needs public keys alone."""

import re
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeVar

from seawall.errors import CorruptError, NoSuchObjectError, StoreError, TrustError
from seawall.log.state import CommitRecord, RunState
from seawall.protect.assembly import FoundFrame, Sources, check_assembled, find_frame
from seawall.protect.assignment import Progress
from seawall.protect.place import Place
from seawall.stores.part_buffers import fresh_buffer
from seawall.vault import manifest as manifests
from seawall.vault import objects
from seawall.vault.identity import sealing_folder
from seawall.vault.objects import Row
from seawall.vault.open import Frame, Resolve
from seawall.vault.sealing import MAX_KEYS_VERSIONS, WHOLE_BYTES, Sealing, checked_manifest, checked_table, counts_as_wraps
from seawall.vault.signing import PublicKey
from seawall.vault.wraps import MAX_BYTES as MAX_KEYS_BYTES
from seawall.vault.wraps import keys_name

_KEYS_VERSION = re.compile(r"keys-([1-9][0-9]{0,8})\.json\Z", re.ASCII)
_T = TypeVar("_T")


class HealError(CorruptError):
    """The copies together no longer hold what was sealed. ``missing`` names it: object → records (none: its frame, or a document)."""

    def __init__(self, where: str, missing: dict[str, tuple[int, ...]]) -> None:
        named = [f"{name} record {', '.join(map(str, records[:8]))}" if records else name for name, records in sorted(missing.items())]
        super().__init__(
            "no copy that was read holds what is missing here",
            where=where,
            why="; ".join(named[:8]) + (f"; and {len(named) - 8} more" if len(named) > 8 else ""),
            do="nothing was overwritten: look for another copy (a tape, a store that was taken out) before anything is changed",
        )
        self.missing = missing


@dataclass(frozen=True)
class HurtDocument:
    """A public document that is missing or another one, and the right bytes."""

    name: str
    right: bytes
    source: str
    """Name of the place that has them."""
    version: str | None
    """Version of what is there; None when nothing is."""


@dataclass(frozen=True)
class HurtObject:
    """A sealed object that is missing or damaged."""

    row: Row
    version: str | None
    """Version of what is there; None when nothing is."""
    found: FoundFrame | None
    """Its frame, from any copies; None when they do not have all of it."""
    records: tuple[int, ...]
    """Those that this copy does not have right; empty for a missing object, which has none."""

    @property
    def missing(self) -> bool:
        return self.version is None


@dataclass
class Survey:
    """What was found."""

    sealing: Sealing
    """The sealing, as read from ``target``; its documents may come from other copies."""
    documents: list[HurtDocument] = field(default_factory=list)
    objects: list[HurtObject] = field(default_factory=list)
    unmendable: dict[str, str] = field(default_factory=dict)
    """What is wrong beside the committed content, and has no right form anywhere: name → why."""

    @property
    def whole(self) -> bool:
        return not self.documents and not self.objects


def survey(
    state: RunState,
    commit: CommitRecord,
    target: Place,
    sources: Sources,
    *,
    only: Collection[str] = (),
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
) -> Survey:
    """Look at every byte of the copy of ``commit`` in ``target``; with ``only``, at the documents and the objects of these names.

    ``sources.places`` are the target and then the other copies. Raises :class:`HealError` when no copy has the manifest, the objects
    table or the committed keys, and the :class:`StoreError` of a target that does not answer.
    """
    documents = _Documents(state, commit, target, sources)
    found = documents.survey()
    rows = [row for row in found.sealing.table.rows if not only or row.name in only]

    def one(row: Row) -> HurtObject | None:
        hurt = look_at(target, found.sealing, row, sources)
        progress(row.length, 1)
        return hurt

    with ThreadPoolExecutor(min(4, transfers), "survey") as pool:
        found.objects = [hurt for hurt in pool.map(one, rows) if hurt is not None]
    if target.name in sources.problems:
        # A target that is silent is not damaged.
        raise sources.problems[target.name]
    return found


def look_at(target: Place, sealing: Sealing, row: Row, sources: Sources) -> HurtObject | None:
    """What is wrong with one object of the copy in ``target``; None when nothing is."""
    key = sealing.key_of(row)
    try:
        # Before the bytes: what is replaced later must be what was judged here.
        stored = target.store.head(key)
    except NoSuchObjectError:
        return HurtObject(row, None, find_frame(sources, sealing, row), ())
    as_sealed = stored.size == row.length and stored.crc64 in (None, row.crc64)
    own = Sources([target])
    if as_sealed and row.length <= WHOLE_BYTES:
        raw = own.read(target, key, 0, row.length)
        if raw is not None and _is_right(sealing, row, raw, target):
            return None
    found: FoundFrame | None
    try:
        found = FoundFrame(sealing.frame_of(row), (target.name,))
    except (CorruptError, TrustError, NoSuchObjectError):
        as_sealed = False
        found = find_frame(sources, sealing, row)
    bad = _bad_records(found.frame, own, target, key) if found is not None else ()
    if own.problems:
        sources.failed(target, own.problems[target.name])
    return None if as_sealed and not bad else HurtObject(row, stored.version, found, bad)


def _is_right(sealing: Sealing, row: Row, raw: bytes, target: Place) -> bool:
    try:
        check_assembled(sealing, row, memoryview(raw), f"{target.store.url}/{sealing.key_of(row)}")
    except (CorruptError, TrustError):
        return False
    return True


def _bad_records(frame: Frame, own: Sources, target: Place, key: str) -> tuple[int, ...]:
    buffer = fresh_buffer(max(leaf.length for leaf in frame.leaves))
    bad = []
    for number, leaf in enumerate(frame.leaves):
        record = buffer[: leaf.length]
        if not own.read_into(target, key, frame.offsets[number], record) or not frame.check_record(number, record):
            bad.append(number)
    return tuple(bad)


class _Documents:
    """Manifest, objects table and wrapped keys of a copy beside those of the other copies."""

    def __init__(self, state: RunState, commit: CommitRecord, target: Place, sources: Sources) -> None:
        self._state = state
        self._commit = commit
        self._target = target
        self._sources = sources
        self._sealing = bytes.fromhex(commit.sealing)
        self._folder = sealing_folder(state.run, self._sealing)
        self._writers = state.writer_of(commit)
        self._hurt: list[HurtDocument] = []

    def survey(self) -> Survey:
        run, commit, writers, where = self._state.run, self._commit, self._writers, f"{self._target.store.url}/{self._folder}"

        def manifest_in(raw: bytes) -> manifests.Manifest:
            return checked_manifest(raw, run, self._sealing, commit.manifest, writers, where)

        manifest = self._right(manifests.NAME, manifests.MAX_BYTES, manifest_in)
        table = self._right(objects.NAME, objects.MAX_BYTES, lambda raw: checked_table(raw, manifest, where))
        self._right(keys_name(1), MAX_KEYS_BYTES, lambda raw: _same_digest(raw, manifest.keys_digest, where))
        sealing = Sealing(self._target.store, manifest, commit.manifest, table, writers)
        unmendable = self._later_keys(sealing)
        # As a sync writes them: keys first, and the manifest, without which there is no copy, last.
        order = {objects.NAME: 1, manifests.NAME: 2}
        self._hurt.sort(key=lambda hurt: (order.get(hurt.name, 0), hurt.name))
        return Survey(sealing, self._hurt, [], unmendable)

    def _right(self, name: str, bound: int, check: Callable[[bytes], _T]) -> _T:
        """What ``check`` makes of the document of the first copy that has the right one; the target's is noted when it is not."""
        version, there = self._there(name, bound)
        if there is not None:
            try:
                return check(there)
            except (CorruptError, TrustError):
                pass
        for place in self._sources.asked(self._others):
            raw = self._get(place, name, bound)
            if raw is None:
                continue
            try:
                found = check(raw)
            except (CorruptError, TrustError):
                continue
            self._hurt.append(HurtDocument(name, raw, place.name, version))
            return found
        for error in self._sources.problems.values():
            raise error
        raise HealError(f"{self._target.store.url}/{self._folder}", {name: ()})

    @property
    def _others(self) -> Sequence[Place]:
        return [place for place in self._sources.places if place is not self._target]

    def _there(self, name: str, bound: int) -> tuple[str | None, bytes | None]:
        """Version and bytes of the target's document."""
        try:
            version = self._target.store.head(self._folder + name).version
            return version, self._target.store.get(self._folder + name, 0, bound + 1)
        except NoSuchObjectError:
            return None, None

    def _get(self, place: Place, name: str, bound: int) -> bytes | None:
        try:
            return place.store.get(self._folder + name, 0, bound + 1)
        except NoSuchObjectError:
            return None
        except StoreError as error:
            self._sources.failed(place, error)
            return None

    def _later_keys(self, sealing: Sealing) -> dict[str, str]:
        """Versions that operators added: those that the target lacks, and those that do not count there."""
        either = _either(self._writers, self._state.resolver("operator"))
        unmendable = {}
        own = self._versions(self._target)
        elsewhere = {number for place in self._sources.asked(self._others) for number in self._versions(place)}
        for number in sorted({*own, *elsewhere} - {1})[:MAX_KEYS_VERSIONS]:
            name = keys_name(number)
            version, there = self._there(name, MAX_KEYS_BYTES)
            if there is not None and counts_as_wraps(sealing.manifest, there, number, either):
                continue
            for place in self._sources.asked(self._others):
                raw = self._get(place, name, MAX_KEYS_BYTES)
                if raw is not None and counts_as_wraps(sealing.manifest, raw, number, either):
                    self._hurt.append(HurtDocument(name, raw, place.name, version))
                    break
            else:
                if there is not None:
                    unmendable[name] = "it is damaged or signed by nobody who counts, and no copy has it right; readers pass it over"
        return unmendable

    def _versions(self, place: Place) -> set[int]:
        try:
            names = [found.key.removeprefix(self._folder) for found in place.store.list(self._folder + "keys-")]
        except StoreError as error:
            if place is self._target:
                raise
            self._sources.failed(place, error)
            return set()
        return {int(match[1]) for match in map(_KEYS_VERSION.match, names) if match}


def _either(writers: Resolve, operators: Resolve) -> Resolve:
    def either(key_id: str) -> PublicKey | None:
        return writers(key_id) or operators(key_id)

    return either


def _same_digest(raw: bytes, digest: bytes, where: str) -> bytes:
    if sha256(raw).digest() != digest:
        raise CorruptError("the wrapped keys are not those that were committed", where=where)
    return raw
