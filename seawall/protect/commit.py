"""Commit: objects table, manifest and receipt from the batches, then the entry in the log that makes the checkpoint exist.

Every step creates an object or finds the one that an earlier try or another worker made, so a commit may run twice, at
once, or again after a kill.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from seawall.clock import Clock, utc_text
from seawall.errors import CorruptError, NoSuchObjectError, ObjectExistsError
from seawall.log import verbs
from seawall.log.bodies import Commit
from seawall.log.read import LogView
from seawall.log.state import RunState
from seawall.protect.assignment import MAX_SEALED_DOCUMENT_BYTES, Assignment
from seawall.protect.lock_copy import lock_copy
from seawall.protect.place import Place
from seawall.protect.seal_batch import BatchOutcome, read_batch
from seawall.stores.base import Store
from seawall.vault import manifest as manifests
from seawall.vault import objects
from seawall.vault.batch import Batch
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.identity import sealing_folder
from seawall.vault.inventory import Inventory, InventoryFile, decode_inventory
from seawall.vault.manifest import Manifest, parse_manifest
from seawall.vault.objects import ObjectsTable, Row, row_of_frame
from seawall.vault.open import Resolve, open_bytes
from seawall.vault.piece_sums import check_taken, spans_of, taken_sums
from seawall.vault.receipt import Receipt, parse_receipt, receipt_name
from seawall.vault.seal import seal_bytes
from seawall.vault.signing import SigningKey
from seawall.vault.tensors import TensorPiece, TensorRecord


@dataclass(frozen=True)
class Committed:
    """A checkpoint that the log has."""

    view: LogView
    manifest: Manifest
    table: ObjectsTable
    receipt: Receipt


def admitted_writers(state: RunState) -> Resolve:
    """Key id to public key, for the writers that may write now: listed, unrevoked, admitted to the epoch in force."""
    record = state.epoch_record()
    writers = record.writers if record else ()
    resolve = state.resolver("writer")
    return lambda key_id: resolve(key_id) if key_id in writers else None


def commit(
    assignment: Assignment,
    view: LogView,
    *,
    place: Place,
    coordination: Store,
    signing_key: SigningKey,
    clock: Clock,
    notes: dict[str, str] | None = None,
    quarantine: str = "",
    outcomes: Sequence[BatchOutcome] | None = None,
) -> Committed:
    """Commit a sealing whose batches are all in ``place``.

    ``outcomes`` saves reading back the batches that this process sealed itself. ``quarantine`` commits the checkpoint as no recovery point,
    with that reason. Raises :class:`NoSuchObjectError` for a batch that is missing, :class:`EpochClosedError` when the epoch that the
    checkpoint was written in is closed by now.
    """
    plan = assignment.plan
    resolve = admitted_writers(view.state)
    batches, batch_rows = _batches(assignment, place, resolve, outcomes)
    files = {file.number: file for batch in batches for file in batch.files}
    inventory = _inventory(assignment, batches, notes or {})
    inventory_row = _put_inventory(assignment, inventory, place, signing_key, resolve)
    rows = (*(files[number].row for number in range(len(plan.files))), *batch_rows, inventory_row, assignment.plan_row)
    table = ObjectsTable(plan.sealing, rows)
    raw_table = _put_same(place, assignment.folder + objects.NAME, table.encode())
    manifest = Manifest(
        run=plan.run,
        sealing=plan.sealing,
        epoch=plan.epoch,
        committer_epoch=view.epoch,
        step=plan.step,
        saved_at=plan.saved_at,
        files=len(plan.files),
        plaintext_bytes=sum(file.size for file in plan.files),
        stored_bytes=sum(row.length for row in rows),
        objects_digest=sha256(raw_table).digest(),
        keys_digest=assignment.keys_digest,
        inventory_digest=inventory_row.trailer_digest,
        root=table.root,
    )
    key = assignment.folder + manifests.NAME
    raw_manifest = _put_or_get(place.store, key, manifest.sign(signing_key))
    found = parse_manifest(raw_manifest, resolve, key)
    if (found.objects_digest, found.keys_digest, found.sealing) != (manifest.objects_digest, manifest.keys_digest, manifest.sealing):
        raise CorruptError("another manifest of this sealing is there already", where=key, why="it names other objects")
    versions = {name: version for batch in batches for name, version in batch.versions.get(place.id, {}).items()}
    receipt, raw_receipt = put_receipt(plan.run, plan.sealing, sha256(raw_manifest).hexdigest(), place, signing_key, resolve, versions)
    view = _append(assignment, view, raw_manifest, receipt, raw_receipt, place, coordination, signing_key, clock, quarantine)
    return Committed(view, found, table, receipt)


def _batches(
    assignment: Assignment, place: Place, resolve: Resolve, outcomes: Sequence[BatchOutcome] | None
) -> tuple[list[Batch], list[Row]]:
    known = {outcome.batch.number: (outcome.batch, outcome.row) for outcome in outcomes or ()}
    batches, rows = [], []
    for number in range(assignment.plan.batches):
        if number in known:
            batch, row = known[number]
        else:
            key = assignment.folder + object_name(ObjectKind.BATCH, number)
            try:
                raw = place.store.get(key, 0, MAX_SEALED_DOCUMENT_BYTES + 1)
            except NoSuchObjectError as error:
                raise NoSuchObjectError("a batch of the sealing is not there yet", where=key, do="seal it, then commit again") from error
            batch, row = read_batch(raw, assignment, number, resolve)
        batches.append(batch)
        rows.append(row)
    return batches, rows


def _inventory(assignment: Assignment, batches: Sequence[Batch], notes: dict[str, str]) -> Inventory:
    plan = assignment.plan
    sealed = {file.number: file for batch in batches for file in batch.files}
    crcs: dict[tuple[int, int, int], int] = {}
    taken = taken_sums(plan.tensors, len(plan.files))
    for number, spans in enumerate(spans_of(plan.tensors, [file.size for file in plan.files])):
        # Sealing compared them already; another worker's version of it, or an earlier run's, may not have.
        check_taken(plan.files[number].name, spans, sealed[number].piece_crcs, taken[number])
        for (start, nbytes), crc in zip(spans, sealed[number].piece_crcs, strict=True):
            crcs[number, start, nbytes] = crc

    def with_crc(piece: TensorPiece) -> TensorPiece:
        crc = None if piece.start is None else crcs.get((piece.file, piece.start, piece.nbytes))
        return TensorPiece(piece.file, piece.nbytes, piece.start, piece.offsets, piece.shape, crc)

    return Inventory(
        run=plan.run,
        sealing=plan.sealing,
        step=plan.step,
        layout=plan.layout,
        world_size=plan.world_size,
        commit_mark=plan.commit_mark,
        files=tuple(
            InventoryFile(file.name, file.size, file.mode, file.identity, sealed[number].plaintext_digest)
            for number, file in enumerate(plan.files)
        ),
        folders=plan.folders,
        links=plan.links,
        pointer=plan.pointer,
        tensors=tuple(TensorRecord(t.name, t.dtype, t.shape, tuple(with_crc(p) for p in t.pieces)) for t in plan.tensors),
        notes=notes,
    )


def _put_inventory(assignment: Assignment, inventory: Inventory, place: Place, signing_key: SigningKey, resolve: Resolve) -> Row:
    name = object_name(ObjectKind.INVENTORY, 0)
    key = assignment.folder + name
    raw, sealed = seal_bytes(
        inventory.encode(),
        sealing=assignment.plan.sealing,
        kind=ObjectKind.INVENTORY,
        number=0,
        name=b"",
        data_key=assignment.data_key,
        signing_key=signing_key,
    )
    try:
        place.store.put(key, raw, sealed.crc64)
        return objects.row_of(sealed)
    except ObjectExistsError:
        plaintext, opener = open_bytes(place.store.get(key, 0, MAX_SEALED_DOCUMENT_BYTES + 1), assignment.data_key, resolve, key)
        found = decode_inventory(plaintext, key)
        if (found.files, found.tensors) != (inventory.files, inventory.tensors):
            raise CorruptError("another inventory of this sealing is there already", where=key, why="it lists other files") from None
        return row_of_frame(opener.frame, name)


def _put_or_get(store: Store, key: str, raw: bytes, lock_until: datetime | None = None) -> bytes:
    """Create ``key``, or the bytes that are there already."""
    try:
        store.put(key, raw, lock_until=lock_until)
        return raw
    except ObjectExistsError:
        return store.get(key)


def _put_same(place: Place, key: str, raw: bytes) -> bytes:
    if _put_or_get(place.store, key, raw) != raw:
        raise CorruptError("another objects table of this sealing is there already", where=f"{place.store.url}/{key}")
    return raw


def put_receipt(
    run: str, sealing: bytes, manifest_digest: str, place: Place, key: SigningKey, resolve: Resolve, versions: dict[str, str]
) -> tuple[Receipt, bytes]:
    """Lock the copy where that is asked for, and sign what the store says of it, once: a receipt of the same manifest that is there
    already is kept."""
    folder = sealing_folder(run, sealing)
    server_time = place.store.server_time()
    at = None if server_time is None else utc_text(server_time)
    until = None if place.lock is None or server_time is None else server_time + place.lock
    if until is not None:
        lock_copy(place, folder, until)
    locked = None if until is None else utc_text(until)
    receipt = Receipt(run, sealing, manifest_digest, place.id, 1, at, locked, versions)
    raw = _put_or_get(place.store, folder + receipt_name(place.id, 1), receipt.sign(key), until)
    found = parse_receipt(raw, resolve, folder + receipt_name(place.id, 1))
    found.check_place(run, sealing, manifest_digest, place.id, 1, folder + receipt_name(place.id, 1))
    return found, raw


def _append(
    assignment: Assignment,
    view: LogView,
    raw_manifest: bytes,
    receipt: Receipt,
    raw_receipt: bytes,
    place: Place,
    coordination: Store,
    signing_key: SigningKey,
    clock: Clock,
    quarantine: str,
) -> LogView:
    plan = assignment.plan
    body = Commit(
        sealing=plan.sealing.hex(),
        step=plan.step,
        written=plan.epoch,
        manifest=sha256(raw_manifest).hexdigest(),
        keys=assignment.keys_digest.hex(),
        store=place.id,
        receipt=sha256(raw_receipt).hexdigest(),
        stored_at=receipt.server_time,
        quarantine=quarantine,
    )
    return verbs.commit(coordination, view, body, signing_key, view.epoch, clock)
