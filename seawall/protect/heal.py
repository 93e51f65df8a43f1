"""Heal: make a damaged copy whole again from what the copies together hold, without any key that opens it.

Only what is damaged is fetched from other copies; the leaf digests that the signed tail names tell right bytes from wrong ones. A damaged
object is assembled whole, verified as a stranger's, and put in the place of the damaged one if that is still what is there (DESIGN law
2). Nothing is overwritten unless all that is damaged can be made right. A heal that was killed leaves each object as it was or whole; the
next one goes on, and ends with a new receipt. What a healed copy is worth is for a verifier to prove.
"""

import mmap
import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from seawall.clock import Clock
from seawall.errors import (
    ConfigurationError,
    KeyMissingError,
    NoSuchCopyError,
    NoSuchObjectError,
    ObjectExistsError,
    StoreAmbiguousError,
    StoreError,
    StoreRefusedError,
    StoreUnavailableError,
)
from seawall.log.entries import operation_id
from seawall.log.read import LogView
from seawall.log.state import CommitRecord
from seawall.protect.acts import Act, finish, reserve, reserved
from seawall.protect.assembly import Assembly, Sources, check_assembled
from seawall.protect.assignment import Progress
from seawall.protect.fill import create_object
from seawall.protect.heal_receipt import kept_versions, next_receipt, read_receipts
from seawall.protect.heal_survey import HealError as HealError
from seawall.protect.heal_survey import HurtDocument, HurtObject, Survey, look_at, survey
from seawall.protect.place import Place
from seawall.stores.base import Store, Stored
from seawall.stores.part_buffers import fresh_buffer
from seawall.vault.open import DamagedRecordError
from seawall.vault.receipt import Receipt
from seawall.vault.seal import PART_BYTES
from seawall.vault.sealing import Sealing
from seawall.vault.signing import SigningKey
from seawall.verify.receipts import receipt_signers

IN_MEMORY_BYTES = 64 << 20
"""Larger objects are assembled in a temporary file, so that a task needs less memory than its largest object."""
KEPT_BYTES = 64 << 20
"""Of the records that were fetched while it was found out whether all is there; what is above is fetched a second time."""


@dataclass(frozen=True)
class Repair:
    """One object that was made right, or would be."""

    object: str
    created: bool
    """It was missing; else a damaged one was replaced."""
    records: tuple[int, ...]
    """Records that were damaged; empty for a missing object, a damaged frame, and documents."""
    sources: tuple[str, ...]
    """Places that right bytes came from."""


@dataclass
class Healed:
    """What was done about one copy."""

    store: str
    """The place's name."""
    step: int
    sealing: str
    repairs: list[Repair] = field(default_factory=list)
    receipt: Receipt | None = None
    """The new one; None when there was nothing to do, and for a dry run."""
    unmendable: dict[str, str] = field(default_factory=dict)
    """Name → why. Nothing of what was committed."""
    fetched_bytes: dict[str, int] = field(default_factory=dict)
    """Place → bytes that were read there, other than in the copy itself."""
    silent: dict[str, str] = field(default_factory=dict)
    """Other places that did not answer, and why; what they hold was not needed."""


def heal(
    view: LogView,
    commit: CommitRecord,
    target: Place,
    others: Sequence[Place],
    *,
    coordination: Store,
    writer: SigningKey | None,
    clock: Clock,
    only: Collection[str] = (),
    scratch: Path | None = None,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
) -> Healed:
    """Make the copy of ``commit`` in ``target`` whole from ``others`` and itself. Without ``writer`` it says what would be done.

    ``only`` names the objects that a verifier found damaged; without it every stored byte is looked at. Raises :class:`HealError` when the
    copies together do not hold all of it, and then nothing was overwritten; :class:`StoreUnavailableError` when one that does not answer
    may hold it; :class:`NoSuchCopyError` for a copy that was deleted by plan.
    """
    state = view.state
    if state.is_deleted(commit.sealing, target.id):
        raise NoSuchCopyError("this copy was deleted by plan", where=f"{view.run} step {commit.step} in {target.name}")
    if writer is not None and state.resolver("writer")(writer.key_id) is None:
        raise KeyMissingError("this writer key does not count", where=writer.key_id, why="the trust list in force does not list it")
    signers = receipt_signers(state)
    receipts = read_receipts(target, view.run, commit, signers)
    sources = Sources([target, *kept_versions(target, view.run, commit, receipts), *others])
    found = survey(state, commit, target, sources, only=only, transfers=transfers, progress=progress)
    healing = _Healing(found, target, sources, scratch, transfers)
    known = healing.find_missing()
    done = Healed(target.name, commit.step, commit.sealing, healing.planned(), unmendable=found.unmendable)

    def act(sequence: int) -> Act:
        # The receipt that a heal will write is the id of the heal: one that was cut before it is the same one when it is done again.
        op = operation_id("heal", view.run, commit.sealing, target.id, str(sequence))
        return Act("heal", op, commit.sealing, (target.id,), _reason(done.repairs))

    this = act(receipts.highest + 1)
    cut = reserved(coordination, view, this.op)
    if writer is not None and (not found.whole or receipts.newest is None or cut):
        reserve(coordination, view, this, writer, clock)
        versions = healing.mend(known)
        done.repairs = healing.planned()
        # What the one that was cut has written is in no receipt, and nobody remembers it: then every version is asked for.
        basis = replace(receipts, newest=None) if cut else receipts
        done.receipt = next_receipt(target, found.sealing, basis, versions, writer, signers, transfers)
        finish(coordination, view, this, f"receipt {done.receipt.sequence}", writer, clock)
    elif writer is not None and reserved(coordination, view, act(receipts.highest).op):
        # The receipt is there, so it was done; only the note of it may be missing.
        finish(coordination, view, act(receipts.highest), f"receipt {receipts.highest}", writer, clock)
    done.fetched_bytes = {name: count for name, count in sources.bytes_read.items() if name != target.name}
    done.silent = {name: str(error) for name, error in sources.problems.items()}
    return done


def _reason(repairs: Sequence[Repair]) -> str:
    names = [repair.object for repair in repairs]
    if not names:
        return "the copy has no receipt that counts"
    return f"{len(names)} objects: {', '.join(names[:16])}" + (", …" if len(names) > 16 else "")


class _Healing:
    """The work on one copy, once it is known what is wrong with it."""

    def __init__(self, found: Survey, target: Place, sources: Sources, scratch: Path | None, transfers: int) -> None:
        self._found = found
        self._sealing: Sealing = found.sealing
        self._target = target
        self._sources = sources
        self._others = sources.without(target)
        self._scratch = scratch
        self._transfers = transfers
        self._from: dict[str, set[str]] = {}

    @property
    def _where(self) -> str:
        return f"{self._target.store.url}/{self._sealing.folder}"

    def find_missing(self) -> dict[str, dict[int, bytes]]:
        """Find every damaged record in another copy, before anything is written; keeps those that fit into memory.

        Raises :class:`HealError` with all that no copy has.
        """
        known: dict[str, dict[int, bytes]] = {}
        nowhere: dict[str, tuple[int, ...]] = {}
        kept = 0
        for hurt in self._found.objects:
            name = hurt.row.name
            if hurt.found is None:
                nowhere[name] = ()
                continue
            self._from[name] = {place for place in hurt.found.places if place != self._target.name}
            of_object: dict[int, bytes] = {}
            for number in hurt.records:
                record = self._find_record(hurt, number)
                if record is None:
                    nowhere[name] = (*nowhere.get(name, ()), number)
                elif kept + len(record) <= KEPT_BYTES:
                    of_object[number] = bytes(record)
                    kept += len(record)
            known[name] = of_object
        self._refuse(nowhere)
        return known

    def _find_record(self, hurt: HurtObject, number: int) -> memoryview | None:
        assert hurt.found is not None
        frame = hurt.found.frame
        record = fresh_buffer(frame.leaves[number].length)
        for place in self._others.asked(self._others.places):
            if self._others.read_into(place, self._sealing.key_of(hurt.row), frame.offsets[number], record):
                if frame.check_record(number, record):
                    self._from[hurt.row.name].add(place.name)
                    return record
        return None

    def _refuse(self, nowhere: dict[str, tuple[int, ...]]) -> None:
        if not nowhere:
            return
        if self._sources.problems:
            # Unknown is not lost: whoever does not answer may have it.
            silent = "; ".join(f"{name}: {error}" for name, error in sorted(self._sources.problems.items()))
            raise StoreUnavailableError(
                "the copy cannot be healed from the stores that answer", where=self._where, why=silent, do="run it again when they do"
            )
        raise HealError(self._where, nowhere)

    def planned(self) -> list[Repair]:
        """What there is to do, in the order in which it is done."""
        objects = [
            Repair(hurt.row.name, hurt.missing, hurt.records, tuple(sorted(self._from.get(hurt.row.name, ())))) for hurt in self._ordered()
        ]
        keys = [document for document in self._found.documents if document.name.startswith("keys-")]
        others = [document for document in self._found.documents if document not in keys]
        return [*map(_document_repair, keys), *objects, *map(_document_repair, others)]

    def _ordered(self) -> list[HurtObject]:
        """Missing ones first: creating them overwrites nothing, and tells whether all of them can be had."""
        return sorted(self._found.objects, key=lambda hurt: not hurt.missing)

    def mend(self, known: dict[str, dict[int, bytes]]) -> dict[str, str]:
        """Write what is missing, then replace what is damaged. Returns the versions of the sealed objects that were written."""
        versions: dict[str, str] = {}
        missing = [hurt for hurt in self._found.objects if hurt.missing]
        damaged = [hurt for hurt in self._found.objects if not hurt.missing]
        keys = [document for document in self._found.documents if document.name.startswith("keys-")]
        for document in keys:
            self._mend_document(document)

        def one(hurt: HurtObject) -> None:
            stored = self._create(hurt) if hurt.missing else self._replace(hurt, known[hurt.row.name])
            if stored.version is not None:
                versions[hurt.row.name] = stored.version

        for hurts, workers in ((missing, self._transfers), (damaged, min(2, self._transfers))):
            with ThreadPoolExecutor(workers, "heal") as pool:
                list(pool.map(one, hurts))
        for document in self._found.documents:
            if document not in keys:
                self._mend_document(document)
        return versions

    def _mend_document(self, document: HurtDocument) -> None:
        key = self._sealing.folder + document.name
        try:
            if document.version is None:
                self._target.store.put(key, document.right)
            else:
                self._target.store.replace(key, document.right, document.version)
        except (ObjectExistsError, StoreRefusedError, StoreAmbiguousError) as error:
            # Another heal may have come first; its bytes are these. Where nothing is there, the refusal is what has to be told.
            try:
                there = self._target.store.get(key)
            except NoSuchObjectError:
                raise error from None
            if there != document.right:
                raise

    def _create(self, hurt: HurtObject) -> Stored:
        assert hurt.found is not None
        key = self._sealing.key_of(hurt.row)
        assembly = Assembly(hurt.found.frame, key, self._others)
        try:
            return create_object(assembly, self._target, key, hurt.row)
        except DamagedRecordError as error:
            raise HealError(self._where, {hurt.row.name: error.records}) from error
        except (ObjectExistsError, StoreAmbiguousError) as error:
            return self._already_right(hurt, error)
        finally:
            self._from[hurt.row.name].update(assembly.origins.values())

    def _replace(self, hurt: HurtObject, known: dict[int, bytes]) -> Stored:
        assert hurt.found is not None
        key, row = self._sealing.key_of(hurt.row), hurt.row
        assembly = Assembly(hurt.found.frame, key, self._sources, known=known, skip={self._target.name: hurt.records})
        with _room(row.length, self._scratch) as view:
            for group in assembly.groups(PART_BYTES):
                assembly.write(group, view[group.start : group.start + group.nbytes])
            check_assembled(self._sealing, row, view, f"the assembled {row.name}")
            try:
                return self._target.store.replace(key, view, hurt.version, row.crc64)
            except (StoreRefusedError, StoreAmbiguousError) as error:
                return self._already_right(hurt, error)

    def _already_right(self, hurt: HurtObject, error: StoreError) -> Stored:
        """What is there, if another heal made it right meanwhile or an answer was lost; else ``error`` goes on."""
        if look_at(self._target, self._sealing, hurt.row, self._sources) is not None:
            raise error
        return self._target.store.head(self._sealing.key_of(hurt.row))


def _document_repair(document: HurtDocument) -> Repair:
    return Repair(document.name, document.version is None, (), (document.source,))


@contextmanager
def _room(nbytes: int, scratch: Path | None) -> Iterator[memoryview]:
    """Memory for a whole object: real for a small one, a temporary file's for a large one."""
    if nbytes <= IN_MEMORY_BYTES:
        yield fresh_buffer(nbytes)
        return
    with ExitStack() as opened:
        try:
            file = opened.enter_context(tempfile.TemporaryFile(prefix="seawall-heal-", dir=scratch))
            # Reserved at once: a mapping of a file that finds no room later ends the process by a signal.
            os.posix_fallocate(file.fileno(), 0, nbytes)
        except OSError as error:
            raise ConfigurationError(
                "there is no room to assemble an object in",
                where=str(scratch or tempfile.gettempdir()),
                why=f"{nbytes} bytes are needed: {error.strerror}",
                do="name a folder with room under [verify] scratch",
            ) from error
        mapping = mmap.mmap(file.fileno(), nbytes)
        view = memoryview(mapping)
        try:
            yield view
        finally:
            view.release()
            # A slice that an error on its way up still holds keeps the mapping alive for a moment longer.
            with suppress(BufferError):
                mapping.close()
