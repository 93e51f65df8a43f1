"""Sync: plan, seal every batch, commit, fill the other places, mirror the log. What Airflow maps over tasks, in one process."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from seawall.clock import Clock
from seawall.errors import StoreError
from seawall.log.mirror import mirror_log
from seawall.log.read import LogView
from seawall.protect.assignment import Assignment, Progress
from seawall.protect.checkpoint_source import CheckpointSource
from seawall.protect.commit import admitted_writers, commit
from seawall.protect.fill import fill, has_copy
from seawall.protect.place import Place
from seawall.protect.planning import Unchanged, plan_sync
from seawall.protect.seal_batch import BatchOutcome, seal_batch
from seawall.stores.base import Store
from seawall.vault.batch import Batch
from seawall.vault.codecs import Codec
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.identity import sealing_folder
from seawall.vault.recipients import Recipient, Unwrapper
from seawall.vault.sealing import read_sealing
from seawall.vault.signing import SigningKey

SWEEP_AFTER = timedelta(hours=1)
"""Uploads of a finished sealing that began longer ago are dead: a live one would have to be another worker's, still sending
after all of it is there."""


@dataclass(frozen=True)
class SyncKeys:
    """What a writer's host holds."""

    writer: SigningKey
    recipients: Sequence[Recipient]
    unwrappers: Sequence[Unwrapper]


@dataclass
class Synced:
    """What a sync did."""

    view: LogView
    status: str
    """``committed`` or ``unchanged``."""
    step: int
    sealing: str
    files: int
    plaintext_bytes: int
    adopted: int = 0
    copies: list[str] = field(default_factory=list)
    """Names of the places that hold a whole copy now."""
    missing: dict[str, str] = field(default_factory=dict)
    """Place → why it has no whole copy yet; the next sync tries again."""
    quarantine: str = ""


def sync(
    source: CheckpointSource,
    run: str,
    view: LogView,
    *,
    places: Sequence[Place],
    coordination: Store,
    keys: SyncKeys,
    clock: Clock,
    codec: Codec = Codec.NONE,
    batch_bytes: int = 64 << 30,
    transfers: int = 16,
    mirrors_behind: Collection[str] | None = None,
    progress: Progress = lambda nbytes, files: None,
    on_phase: Callable[[str, int, int], None] = lambda phase, nbytes, files: None,
) -> Synced:
    """Take a checkpoint to all ``places``, the first of which must take it whole before it is committed.

    A place that fails after that is named in ``missing`` and filled by the next run. ``on_phase`` hears a name, the
    bytes and the files that are to come. Unchanged checkpoints cost a constant number of requests; ``mirrors_behind``
    (names, from the freshness report) then saves looking at the mirrors that are known to be up to date.
    """
    planned = plan_sync(
        source,
        run,
        view,
        place=places[0],
        recipients=keys.recipients,
        unwrappers=keys.unwrappers,
        signing_key=keys.writer,
        codec=codec,
        batch_bytes=batch_bytes,
    )
    total = sum(file.size for file in source.files)
    if isinstance(planned, Unchanged):
        synced = Synced(view, "unchanged", planned.step, planned.sealing.hex(), len(source.files), total, copies=[places[0].name])
        batches: Sequence[Batch] = ()
        behind: set[str] = set()
        missing = [place for place in places[1:] if not _reachable_copy(place, run, planned.sealing, synced)]
    else:
        on_phase("seal", total, len(source.files))
        synced, outcomes = _seal_and_commit(planned, source, view, places, coordination, keys, clock, transfers, progress)
        batches = [outcome.batch for outcome in outcomes]
        behind = {name for outcome in outcomes for name in outcome.behind}
        missing = list(places[1:])
    for place in missing:
        on_phase(f"copy to {place.name}", 0, 0)
        sent = {} if place.name in behind else _sent_in_flight(batches, place)
        _fill(synced, run, places[0], place, keys.writer, sent, transfers)
    if missing if isinstance(planned, Unchanged) else planned.resumed:
        # An earlier run was stopped on the way, and may have left uploads in any place.
        for place in places:
            if place.name in synced.copies:
                _sweep(place, sealing_folder(run, bytes.fromhex(synced.sealing)), clock)
    for place in places:
        up_to_date = synced.view.seq == view.seq and mirrors_behind is not None and place.name not in mirrors_behind
        if place.store.url != coordination.url and not up_to_date:
            _mirror(synced, coordination, place)
    return synced


def _seal_and_commit(
    assignment: Assignment,
    source: CheckpointSource,
    view: LogView,
    places: Sequence[Place],
    coordination: Store,
    keys: SyncKeys,
    clock: Clock,
    transfers: int,
    progress: Progress,
) -> tuple[Synced, list[BatchOutcome]]:
    outcomes = []
    resolve = admitted_writers(view.state)
    for number in range(assignment.plan.batches):
        outcomes.append(
            seal_batch(
                assignment,
                number,
                source=source.root,
                places=places,
                signing_key=keys.writer,
                resolve=resolve,
                transfers=transfers,
                progress=progress,
            )
        )
    quarantine = source.quarantine
    committed = commit(
        assignment,
        view,
        place=places[0],
        coordination=coordination,
        signing_key=keys.writer,
        clock=clock,
        notes=source.notes(),
        quarantine=quarantine,
        outcomes=outcomes,
    )
    manifest = committed.manifest
    synced = Synced(
        committed.view,
        "committed",
        manifest.step,
        manifest.sealing.hex(),
        manifest.files,
        manifest.plaintext_bytes,
        adopted=sum(outcome.adopted for outcome in outcomes),
        copies=[places[0].name],
        quarantine=quarantine,
    )
    return synced, outcomes


def _sweep(place: Place, folder: str, clock: Clock) -> None:
    """Remove what killed uploads of a sealing left in a place that has all of it by now."""
    try:
        for leftover in list(place.store.leftovers(folder)):
            if clock.now() - leftover.began > SWEEP_AFTER:
                place.store.abort_leftover(leftover)
    except StoreError:
        # A writer without the right to abort leaves them to `seawall store sweep`; they cost room and nothing else.
        return


def _sent_in_flight(batches: Sequence[Batch], place: Place) -> dict[str, str | None]:
    """Objects that sealing sent to the place already, with their version ids."""
    sent: dict[str, str | None] = {}
    for batch in batches:
        versions = batch.versions.get(place.id, {})
        sent.update({file.row.name: versions.get(file.row.name) for file in batch.files})
        sent[object_name(ObjectKind.BATCH, batch.number)] = None
    return sent


def _reachable_copy(place: Place, run: str, sealing: bytes, synced: Synced) -> bool:
    try:
        there = has_copy(place, run, sealing)
    except StoreError as error:
        synced.missing[place.name] = str(error)
        return True
    if there:
        synced.copies.append(place.name)
    return there


def _fill(synced: Synced, run: str, first: Place, place: Place, key: SigningKey, sent: dict[str, str | None], transfers: int) -> None:
    state = synced.view.state
    record = state.commit_of(synced.sealing)
    try:
        opened = read_sealing(first.store, run, bytes.fromhex(synced.sealing), record.manifest, state.writer_of(record))
        fill(opened, place, signing_key=key, resolve=state.resolver("writer"), sent=sent, transfers=transfers)
    except StoreError as error:
        synced.missing[place.name] = str(error)
    else:
        synced.copies.append(place.name)


def _mirror(synced: Synced, coordination: Store, place: Place) -> None:
    try:
        mirror_log(coordination, synced.view, place.store)
    except StoreError as error:
        synced.missing.setdefault(place.name, f"its mirror of the log is behind: {error}")
