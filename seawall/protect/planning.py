"""Planning a sync: which sealing a checkpoint on disk is, whether it is committed already, and the plan it will follow.

``keys-1.json`` and ``plan.sea`` are created if absent, in this order; who comes second uses the winner's, so that two
that plan at once seal the same thing.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from seawall.errors import CorruptError, EpochClosedError, FreshnessError, NoSuchCopyError, ObjectExistsError, StoreRefusedError, UsageError
from seawall.log.read import LogView
from seawall.protect.assignment import Assignment, load_assignment
from seawall.protect.checkpoint_source import CheckpointSource
from seawall.protect.commit import admitted_writers
from seawall.protect.place import Place
from seawall.vault.codecs import Codec
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.identity import sealing_folder, sealing_id
from seawall.vault.objects import row_of
from seawall.vault.plan import Folder, Link, Plan, PlannedFile, Pointer, decode_plan
from seawall.vault.recipients import DATA_KEY_BYTES, Recipient, Unwrapper
from seawall.vault.seal import seal_bytes
from seawall.vault.sealing import read_inventory, read_sealing
from seawall.vault.signing import SigningKey
from seawall.vault.wraps import keys_name, parse_wraps, wrap_for

MAX_ATTEMPTS = 64
"""How often one checkpoint may change under one commit mark. More means that somebody rewrites saved checkpoints."""
MAX_BATCH_FILES = 5000


@dataclass(frozen=True)
class Unchanged:
    """The checkpoint is committed already, as this sealing."""

    sealing: bytes
    step: int


def refuse_weak(place: Place) -> None:
    """:class:`StoreRefusedError` for a store without create-if-absent: two writers there would overwrite each other's sealing."""
    can = place.store.capabilities
    if not can.conditional_put:
        raise StoreRefusedError(
            "this store can only hold further copies",
            where=f"{place.name}: {place.store.url}",
            why="; ".join(can.reasons) or "it has no create-if-absent",
            do="name a store that has it first in the run's copies (`seawall store validate` tells)",
        )


def written_epoch(source: CheckpointSource, view: LogView) -> int:
    """The epoch of the checkpoint: what its mark says, else the one in force.

    Raises :class:`EpochClosedError` for a mark of a closed epoch: a primary that was fenced off wrote it, on storage that it still reaches.
    """
    epoch = source.inspection.epoch
    if epoch is None:
        return view.epoch
    if epoch < view.epoch:
        raise EpochClosedError(
            "the checkpoint was written under a closed epoch",
            where=source.root,
            why=f"its commit mark says epoch {epoch}, the run is in epoch {view.epoch}",
            do="stop the old primary; what it saved after the failover is no recovery point",
        )
    if epoch > view.epoch:
        raise FreshnessError(
            "the checkpoint is from an epoch that the log does not have",
            where=source.root,
            why=f"its commit mark says epoch {epoch}, the log ends in epoch {view.epoch}",
            do="compare the coordination store with the mirrors: it may have been put back to an older state",
        )
    return epoch


def plan_sync(
    source: CheckpointSource,
    run: str,
    view: LogView,
    *,
    place: Place,
    recipients: Sequence[Recipient],
    unwrappers: Sequence[Unwrapper],
    signing_key: SigningKey,
    codec: Codec,
    batch_bytes: int,
) -> Assignment | Unchanged:
    """Find or make the plan of a checkpoint. A few requests, whatever its size.

    Raises :class:`UsageError` when the checkpoint has no step, :class:`KeyMissingError` when a plan of it is sealed for other keys.
    """
    step = source.inspection.step
    if step is None:
        raise UsageError("the checkpoint's step is not known", where=source.root, do="name it with --step")
    epoch = written_epoch(source, view)
    resolve = admitted_writers(view.state)
    older = range(epoch - 1, 0, -1) if source.inspection.epoch is None else ()
    for candidate in older:
        # A mark without an epoch may have been committed under an earlier one; then it is not sealed again.
        found = _committed(source, run, view, candidate, step, place, unwrappers)
        if found is not None:
            return Unchanged(found, step)
    for attempt in range(MAX_ATTEMPTS):
        sealing = sealing_id(run, epoch, step, source.mark_digest, attempt)
        if sealing.hex() in view.state.commits:
            _refuse_deleted(view, sealing, step, place)
            if _same_source(source, view, run, sealing, place, unwrappers):
                return Unchanged(sealing, step)
            continue
        if sealing.hex() in view.state.tombstones:
            # Given up unfinished: the log takes no commit of it any more, so this is a new attempt.
            continue
        # Asked only when something will be written: an unchanged checkpoint costs a constant, small number of requests.
        refuse_weak(place)
        try:
            assignment = load_assignment(place.store, run, sealing, unwrappers, resolve)
        except NoSuchCopyError:
            assignment = _make(
                source, run, sealing, epoch, step, attempt, place, recipients, unwrappers, signing_key, view, codec, batch_bytes
            )
        if source.fits(assignment.plan):
            return assignment
    raise CorruptError("the checkpoint was changed too often after it was saved", where=source.root, why=f"{MAX_ATTEMPTS} times")


def _committed(
    source: CheckpointSource, run: str, view: LogView, epoch: int, step: int, place: Place, unwrappers: Sequence[Unwrapper]
) -> bytes | None:
    for attempt in range(MAX_ATTEMPTS):
        sealing = sealing_id(run, epoch, step, source.mark_digest, attempt)
        if sealing.hex() not in view.state.commits:
            return None
        _refuse_deleted(view, sealing, step, place)
        if _same_source(source, view, run, sealing, place, unwrappers):
            return sealing
    return None


def _refuse_deleted(view: LogView, sealing: bytes, step: int, place: Place) -> None:
    if view.state.is_deleted(sealing.hex(), place.id):
        raise NoSuchCopyError(
            "the checkpoint's copies were deleted by plan",
            where=f"{view.run} step {step}",
            why=f"the log has a tombstone of sealing {sealing.hex()} in {place.name}",
            do="what retention deleted is not taken again; save it under another step if it is wanted after all",
        )


def _same_source(source: CheckpointSource, view: LogView, run: str, sealing: bytes, place: Place, unwrappers: Sequence[Unwrapper]) -> bool:
    """Whether a committed sealing is of these very files. The plan tells; files are read only when their times differ (a restored copy)."""
    commit = view.state.commits[sealing.hex()]
    try:
        assignment = load_assignment(place.store, run, sealing, unwrappers, view.state.writer_of(commit))
    except NoSuchCopyError as error:
        raise NoSuchCopyError(
            "the store that takes checkpoints first has lost this one",
            where=error.where,
            why=f"the log has its commit (step {commit.step}), the store has no plan of it",
            do=f"`seawall heal {run} --step {commit.step}` brings it back from the other copies",
        ) from error
    if source.matches(assignment.plan):
        return True
    if not source.same_names(assignment.plan):
        return False
    opened = read_sealing(place.store, run, sealing, commit.manifest, view.state.writer_of(commit))
    return source.same_content(read_inventory(opened, assignment.data_key))


def _make(
    source: CheckpointSource,
    run: str,
    sealing: bytes,
    epoch: int,
    step: int,
    attempt: int,
    place: Place,
    recipients: Sequence[Recipient],
    unwrappers: Sequence[Unwrapper],
    signing_key: SigningKey,
    view: LogView,
    codec: Codec,
    batch_bytes: int,
) -> Assignment:
    resolve = admitted_writers(view.state)
    folder = sealing_folder(run, sealing)
    data_key = os.urandom(DATA_KEY_BYTES)
    raw_keys = wrap_for(recipients, data_key, run, sealing).sign(signing_key)
    try:
        place.store.put(folder + keys_name(1), raw_keys)
    except ObjectExistsError:
        raw_keys = place.store.get(folder + keys_name(1))
        data_key = parse_wraps(raw_keys, run, sealing, 1, resolve, folder + keys_name(1)).unwrap(unwrappers)
    plan = _plan(source, run, sealing, epoch, step, attempt, codec, batch_bytes)
    name = object_name(ObjectKind.PLAN, 0)
    plaintext = plan.encode()
    # What readers refuse must not be written, still less committed: it would be a copy that nobody can restore.
    decode_plan(plaintext, f"the plan of {source.root}")
    raw_plan, sealed = seal_bytes(
        plaintext, sealing=sealing, kind=ObjectKind.PLAN, number=0, name=b"", data_key=data_key, signing_key=signing_key
    )
    try:
        place.store.put(folder + name, raw_plan, sealed.crc64)
    except ObjectExistsError:
        return load_assignment(place.store, run, sealing, unwrappers, resolve)
    return Assignment(plan, data_key, sha256(raw_keys).digest(), False, row_of(sealed))


def _plan(source: CheckpointSource, run: str, sealing: bytes, epoch: int, step: int, attempt: int, codec: Codec, batch_bytes: int) -> Plan:
    files, batch, in_batch, nbytes = [], 0, 0, 0
    for file in source.files:
        if in_batch and (nbytes + file.size > batch_bytes or in_batch >= MAX_BATCH_FILES):
            batch, in_batch, nbytes = batch + 1, 0, 0
        files.append(PlannedFile(file.name, file.size, file.mode, file.identity, batch))
        in_batch, nbytes = in_batch + 1, nbytes + file.size
    inspection = source.inspection
    return Plan(
        run=run,
        sealing=sealing,
        step=step,
        epoch=epoch,
        attempt=attempt,
        mark_digest=source.mark_digest,
        layout=inspection.layout,
        world_size=inspection.world_size,
        commit_mark=source.commit_mark,
        codec=codec,
        saved_at=source.saved_at,
        files=tuple(files),
        folders=tuple(Folder(name, mode) for name, mode in source.folders),
        links=tuple(Link(name, target) for name, target in source.links),
        pointer=None if source.pointer is None else Pointer(*source.pointer),
        tensors=source.tensors(),
        batches=batch + 1 if files else 0,
    )
