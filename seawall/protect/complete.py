"""What comes after a sealing's batches: the commit, the other places' copies, and the mirrors of the log.

A sync does it in the process that sealed. :func:`complete` does it on any host that can read the first place, which is how
the last task of a mapped sync works. Each step finds what an earlier try did, so it may run twice, at once, or after a kill.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from seawall.clock import Clock
from seawall.errors import StoreError
from seawall.log.mirror import mirror_log
from seawall.log.read import LogView
from seawall.protect.assignment import load_assignment
from seawall.protect.commit import admitted_writers, commit
from seawall.protect.fill import fill, has_copy
from seawall.protect.place import Place
from seawall.stores.base import Store
from seawall.vault.identity import sealing_folder
from seawall.vault.manifest import Manifest
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


def complete(
    run: str,
    sealing: bytes,
    view: LogView,
    *,
    places: Sequence[Place],
    coordination: Store,
    keys: SyncKeys,
    clock: Clock,
    notes: dict[str, str] | None = None,
    transfers: int = 16,
    mirrors_behind: Collection[str] | None = None,
) -> Synced:
    """Commit a planned sealing whose batches are all in ``places[0]``, unless it is committed, and bring it to the other places.

    The batches are read back from the first place, so whoever sealed them may be another host. Raises what
    :func:`~seawall.protect.commit.commit` raises; a further place that fails is named in ``missing``.
    """
    synced = _committed(run, sealing, view, places[0], coordination, keys, clock, notes or {})
    lacking = [place for place in places[1:] if not found_copy(synced, run, place)]
    for place in lacking:
        fill_place(synced, run, places[0], place, keys.writer, {}, transfers)
    if lacking or synced.status == "committed":
        sweep(synced, run, places, clock)
    mirror_to(synced, view, coordination, places, mirrors_behind)
    return synced


def _committed(
    run: str, sealing: bytes, view: LogView, place: Place, coordination: Store, keys: SyncKeys, clock: Clock, notes: dict[str, str]
) -> Synced:
    record = view.state.commits.get(sealing.hex())
    if record is not None:
        opened = read_sealing(place.store, run, sealing, record.manifest, view.state.writer_of(record))
        return _synced(view, "unchanged", opened.manifest, place)
    assignment = load_assignment(place.store, run, sealing, keys.unwrappers, admitted_writers(view.state))
    done = commit(assignment, view, place=place, coordination=coordination, signing_key=keys.writer, clock=clock, notes=notes)
    return _synced(done.view, "committed", done.manifest, place)


def _synced(view: LogView, status: str, manifest: Manifest, place: Place) -> Synced:
    sealing = manifest.sealing.hex()
    return Synced(view, status, manifest.step, sealing, manifest.files, manifest.plaintext_bytes, copies=[place.name])


def found_copy(synced: Synced, run: str, place: Place) -> bool:
    """Whether nothing is to be done about this place: it has a whole copy, does not answer, or its copy was deleted by plan; ``synced``
    says which of the first two."""
    if synced.view.state.is_deleted(synced.sealing, place.id):
        return True
    try:
        there = has_copy(place, run, bytes.fromhex(synced.sealing))
    except StoreError as error:
        synced.missing[place.name] = str(error)
        return True
    if there:
        synced.copies.append(place.name)
    return there


def fill_place(
    synced: Synced, run: str, first: Place, place: Place, key: SigningKey, sent: Mapping[str, str | None], transfers: int
) -> None:
    """Give a place what it lacks of the committed sealing; ``synced`` says whether it has a whole copy then."""
    state = synced.view.state
    record = state.commit_of(synced.sealing)
    try:
        opened = read_sealing(first.store, run, bytes.fromhex(synced.sealing), record.manifest, state.writer_of(record))
        fill(
            opened,
            place,
            signing_key=key,
            resolve=state.resolver("writer"),
            rewrappers=state.resolver("operator"),
            sent=sent,
            transfers=transfers,
        )
    except StoreError as error:
        synced.missing[place.name] = str(error)
    else:
        synced.copies.append(place.name)


def sweep(synced: Synced, run: str, places: Sequence[Place], clock: Clock) -> None:
    """Remove what killed uploads of the sealing left in the places that have all of it by now."""
    folder = sealing_folder(run, bytes.fromhex(synced.sealing))
    for place in places:
        if place.name not in synced.copies:
            continue
        try:
            for leftover in list(place.store.leftovers(folder)):
                if clock.now() - leftover.began > SWEEP_AFTER:
                    place.store.abort_leftover(leftover)
        except StoreError:
            # A writer without the right to abort leaves them to `seawall store sweep`; they cost room and nothing else.
            continue


def mirror_to(synced: Synced, before: LogView, coordination: Store, places: Sequence[Place], behind: Collection[str] | None) -> None:
    """Bring the places' mirrors up to the log. ``behind`` (names) saves looking at the others when the log is still as ``before``."""
    for place in places:
        up_to_date = synced.view.seq == before.seq and behind is not None and place.name not in behind
        if place.store.url == coordination.url or up_to_date:
            continue
        try:
            mirror_log(coordination, synced.view, place.store)
        except StoreError as error:
            synced.missing.setdefault(place.name, f"its mirror of the log is behind: {error}")
