"""Sync: plan, seal every batch, commit, fill the other places, mirror the log. What Airflow maps over tasks, in one process."""

from collections.abc import Callable, Collection, Sequence

from seawall.clock import Clock
from seawall.log.read import LogView
from seawall.protect.assignment import Assignment, Progress
from seawall.protect.checkpoint_source import CheckpointSource
from seawall.protect.commit import admitted_writers, commit
from seawall.protect.complete import Synced as Synced
from seawall.protect.complete import SyncKeys as SyncKeys
from seawall.protect.complete import fill_place, found_copy, mirror_to, sweep
from seawall.protect.place import Place
from seawall.protect.planning import Unchanged, plan_sync
from seawall.protect.seal_batch import BatchOutcome, seal_batch
from seawall.stores.base import Store
from seawall.vault.batch import Batch
from seawall.vault.codecs import Codec
from seawall.vault.header import ObjectKind, object_name


def sync(
    source: CheckpointSource,
    run: str,
    view: LogView,
    *,
    places: Sequence[Place],
    coordination: Store,
    keys: SyncKeys,
    clock: Clock,
    codec: Codec = Codec.FAST,
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
        missing = [place for place in places[1:] if not found_copy(synced, run, place)]
    else:
        on_phase("seal", total, len(source.files))
        synced, outcomes = _seal_and_commit(planned, source, view, places, coordination, keys, clock, transfers, progress)
        batches = [outcome.batch for outcome in outcomes]
        behind = {name for outcome in outcomes for name in outcome.behind}
        missing = list(places[1:])
    for place in missing:
        on_phase(f"copy to {place.name}", 0, 0)
        sent = {} if place.name in behind else _sent_in_flight(batches, place)
        fill_place(synced, run, places[0], place, keys.writer, sent, transfers)
    if missing if isinstance(planned, Unchanged) else planned.resumed:
        sweep(synced, run, places, clock)
    mirror_to(synced, view, coordination, places, mirrors_behind)
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


def _sent_in_flight(batches: Sequence[Batch], place: Place) -> dict[str, str | None]:
    """Objects that sealing sent to the place already, with their version ids."""
    sent: dict[str, str | None] = {}
    for batch in batches:
        versions = batch.versions.get(place.id, {})
        sent.update({file.row.name: versions.get(file.row.name) for file in batch.files})
        sent[object_name(ObjectKind.BATCH, batch.number)] = None
    return sent
