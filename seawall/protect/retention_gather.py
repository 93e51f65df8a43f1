"""From log, proofs and stores to the facts that retention is decided from. Reads; writes nothing.

A run costs one listing of folder names a store, however many checkpoints it has, and a look at a copy only where that decides something.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from seawall.clock import Clock, parse_utc
from seawall.errors import NoSuchObjectError, StoreError
from seawall.log.entries import entry_key
from seawall.log.floor import Freshness, FreshnessReport
from seawall.log.read import LogView
from seawall.log.state import CommitRecord
from seawall.protect.archive import archived_steps
from seawall.protect.place import Place
from seawall.protect.retention_clock import Moment, decisive_moment, has_clock
from seawall.protect.retention_facts import Copy, Kind, Point, RunFacts, Site
from seawall.protect.retention_plan import decide
from seawall.protect.retention_settings import RetentionSettings
from seawall.vault import manifest as manifests
from seawall.vault.identity import sealing_folder
from seawall.verify import evidence
from seawall.verify.certify import KnownProofs, read_proofs
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.proofs import FAILED, OK, Proof
from seawall.verify.recovery import CopyState, copy_states


@dataclass(frozen=True)
class Desk:
    """What an operator's host needs to look at a run, and to act on it."""

    run: str
    coordination: Place
    places: tuple[Place, ...]
    """Stores of the run's copies that answer."""
    sites: tuple[Site, ...]
    open_view: Callable[[], tuple[LogView, FreshnessReport]]
    settings: RetentionSettings
    ages: AgePolicy
    clock: Clock
    absent: Mapping[str, str] = field(default_factory=dict)
    """Name of a store that does not answer → why."""
    live_keys: frozenset[str] | None = None
    """``kind id`` of the keys that are known to exist; None where this host cannot tell."""
    losses: Callable[[LogView], Mapping[str, float]] = lambda view: {}
    """Sealing → loss, where this host can tell: it is private, and sealed with the checkpoint."""

    def place_of(self, store: str) -> Place | None:
        """The place with this id, if it answers."""
        return next((place for place in self.places if place.id == store), None)


@dataclass(frozen=True)
class Gathered:
    """Facts, and what they were read from."""

    facts: RunFacts
    view: LogView
    moment: Moment
    buried: tuple[tuple[str, str], ...] = ()
    """(Sealing, store) with a tombstone of which something is still stored: a run was cut short."""


def gather(desk: Desk, moment: Moment | None = None) -> Gathered:
    """Everything that :func:`~seawall.protect.retention_plan.decide` asks about, now.

    With ``moment`` nothing is to be deleted on these facts: no store's clock is asked, and no locks beyond what proofs say of them.
    ``FreshnessError`` for a log or a clock that went back, ``StoreRefusedError`` where nobody's clock may decide.
    """
    view, report = desk.open_view()
    state = view.state
    to_delete = moment is None
    if moment is None:
        moment = decisive_moment(desk.coordination, desk.places, state, desk.clock, local_clock=desk.settings.local_clock)
    known = read_proofs(desk.coordination.store, view)
    there = {place.id: set(place.store.list_folders(f"runs/{desk.run}/sealings/")) for place in desk.places}
    by_sealing = _grouped(known)
    archived = archived_steps(desk.coordination.store, desk.run)
    losses = desk.losses(view) if to_delete and desk.settings.keep_best else {}
    points = [
        _committed(desk, view, commit, kind, by_sealing.get(commit.sealing, []), there, moment.now, losses, archived)
        for kind, commits in ((Kind.CHECKPOINT, state.commits), (Kind.ORPHAN, state.orphans))
        for commit in commits.values()
    ]
    points += _unfinished(desk, view, there)
    times = [parse_utc(commit.stored_at) for commit in state.commits.values() if commit.stored_at is not None]
    facts = RunFacts(
        desk.run,
        moment.now,
        desk.sites,
        tuple(point for point in points if point.copies),
        min(times, default=None),
        tuple(state.hold_reasons()),
        _unknown(known, report),
    )
    buried = [
        (sealing, place.id)
        for place in desk.places
        for sealing in sorted(there[place.id])
        if state.is_deleted(sealing, place.id) and not _is_empty(place, desk.run, sealing)
    ]
    return Gathered(with_locks(desk, facts) if to_delete else facts, view, moment, tuple(buried))


def with_locks(desk: Desk, facts: RunFacts) -> RunFacts:
    """``facts`` with the locks of the copies that would go without them. Asked only where the store has locks."""
    locked: dict[tuple[str, str], datetime] = {}
    unbounded = desk.settings.model_copy(update={"max_deletions": 1 << 31})
    for deletion in decide(facts, unbounded).delete:
        place = desk.place_of(deletion.store)
        if place is None or not place.store.capabilities.object_lock:
            continue
        until = _locked_until(place, desk.run, deletion.sealing)
        if until is not None:
            locked[deletion.copy] = until
    if not locked:
        return facts

    def told(point: Point) -> Point:
        copies = [replace(copy, locked_until=locked.get((point.sealing, copy.store), copy.locked_until)) for copy in point.copies]
        return replace(point, copies=tuple(copies))

    return replace(facts, points=tuple(told(point) for point in facts.points))


def _locked_until(place: Place, run: str, sealing: str) -> datetime | None:
    try:
        return place.store.head(sealing_folder(run, bytes.fromhex(sealing)) + manifests.NAME).locked_until
    except NoSuchObjectError:
        return None


def _unknown(known: KnownProofs, report: FreshnessReport) -> tuple[str, ...]:
    found = [f"proofs of verifier {verifier} are missing: {known.unknown[verifier]}" for verifier in known.gaps]
    if report.freshness is not Freshness.PROVED:
        found.append(f"whether the log is fresh: {report.why}")
    return tuple(found)


def _grouped(known: KnownProofs) -> dict[str, list[Proof]]:
    grouped: dict[str, list[Proof]] = {}
    for proof in known.proofs:
        grouped.setdefault(proof.sealing, []).append(proof)
    return grouped


def _committed(
    desk: Desk,
    view: LogView,
    commit: CommitRecord,
    kind: Kind,
    proofs: Sequence[Proof],
    there: Mapping[str, set[str]],
    now: datetime,
    losses: Mapping[str, float],
    archived: frozenset[int],
) -> Point:
    state = view.state
    about = [proof for proof in proofs if proof.manifest == commit.manifest]
    states = copy_states(commit.sealing, about, now, desk.ages)
    copies = []
    for store in sorted({commit.store, *states, *(place for place, names in there.items() if commit.sealing in names)}):
        if not state.is_deleted(commit.sealing, store):
            copy = _copy(desk, commit, store, states.get(store), there)
            copies.append(replace(copy, locked_until=_lock_proved([proof for proof in about if proof.store == store])))
    best = max((copy.level for copy in copies if copy.level is not None), default=None)
    return Point(
        commit.sealing,
        commit.step,
        kind,
        commit.seq,
        tuple(copies),
        _stored_at(desk, view, commit),
        manifest=commit.manifest,
        nbytes=max((evidence.count_of(proof.evidence, evidence.STORED_BYTES) or 0 for proof in about), default=0),
        quarantine=tuple(state.quarantine_reasons(commit.sealing)),
        written_off=commit.sealing in state.written_off,
        loss=losses.get(commit.sealing),
        keys=_keys(about, desk.live_keys, best),
        archived=kind is Kind.CHECKPOINT and commit.step in archived,
        resumed=_resumed(about),
    )


def _copy(desk: Desk, commit: CommitRecord, store: str, state: CopyState | None, there: Mapping[str, set[str]]) -> Copy:
    failure = "" if state is None or state.failure is None else f"{state.failure.level.name} failed at {state.failure.at}"
    place = desk.place_of(store)
    if place is None:
        return Copy(store, None if state is None else state.level, None if state is None else state.lapses_at, failure, answers=False)
    if commit.sealing not in there[store] and not _has_manifest(place, desk.run, commit.sealing):
        # A proof of last week says nothing about objects that are gone.
        return Copy(store, failure=failure or "what was proved is not there any more" if state is not None else "its objects are not there")
    return Copy(store, None if state is None else state.level, None if state is None else state.lapses_at, failure)


def _lock_proved(own: Sequence[Proof]) -> datetime | None:
    """The end of its earliest lock as the newest proof that looked says; None where something of it has no lock."""
    looked = [proof for proof in own if {evidence.LOCKED_UNTIL, evidence.UNLOCKED} & proof.evidence.keys()]
    newest = max(looked, key=lambda proof: proof.at, default=None)
    if newest is None or evidence.count_of(newest.evidence, evidence.UNLOCKED):
        return None
    return evidence.moment_of(newest.evidence, evidence.LOCKED_UNTIL)


def _has_manifest(place: Place, run: str, sealing: str) -> bool:
    """Listings may be behind; a name that is known is asked for directly."""
    try:
        place.store.head(sealing_folder(run, bytes.fromhex(sealing)) + manifests.NAME)
    except NoSuchObjectError:
        return False
    return True


def _stored_at(desk: Desk, view: LogView, commit: CommitRecord) -> datetime | None:
    """By the clock of the first copy's store; where that has none, by the arrival of the commit entry in the coordination store."""
    place = desk.place_of(commit.store)
    if commit.stored_at is not None and (place is None or has_clock(place, desk.settings.local_clock)):
        return parse_utc(commit.stored_at)
    if not has_clock(desk.coordination, desk.settings.local_clock):
        return None
    try:
        return desk.coordination.store.head(entry_key(view.run, commit.seq)).modified
    except StoreError:
        return None


def _keys(about: Sequence[Proof], live: frozenset[str] | None, best: Level | None) -> bool | None:
    """Whether a key that exists opens it. A verifier that decrypted it within the age of that proof is the daily trial of the key."""
    wraps = next((proof.evidence[evidence.WRAPS] for proof in reversed(about) if proof.evidence.get(evidence.WRAPS)), None)
    if live is not None and wraps is not None:
        return bool(live.intersection(wraps.split(", ")))
    return True if best is not None and best >= Level.L3 else None


def _resumed(about: Sequence[Proof]) -> bool:
    results = [proof.result for proof in sorted(about, key=lambda proof: (proof.at, proof.result == FAILED)) if proof.level is Level.L5]
    return bool(results) and results[-1] == OK


def _unfinished(desk: Desk, view: LogView, there: Mapping[str, set[str]]) -> list[Point]:
    """Sealings that somebody began and the log does not have."""
    state = view.state
    copies: dict[str, list[Copy]] = {}
    moments: dict[str, list[datetime | None]] = {}
    for place in desk.places:
        for name in sorted(there[place.id]):
            if name in state.commits or name in state.orphans or state.is_deleted(name, place.id) or not _is_sealing(name):
                continue
            if _is_empty(place, desk.run, name):
                continue
            copies.setdefault(name, []).append(Copy(place.id))
            moments.setdefault(name, []).append(_touched(place, desk.run, name) if has_clock(place, desk.settings.local_clock) else None)
    found = []
    for name, several in copies.items():
        known = [moment for moment in moments[name] if moment is not None]
        last = max(known) if len(known) == len(several) else None
        found.append(Point(name, 0, Kind.UNFINISHED, 0, tuple(several), last))
    return found


def _touched(place: Place, run: str, sealing: str) -> datetime | None:
    """When the store last took something of it: a sync that is at work keeps it young."""
    folder = sealing_folder(run, bytes.fromhex(sealing))
    arrivals = [stored.modified for stored in place.store.list(folder)] + [leftover.began for leftover in place.store.leftovers(folder)]
    return None if None in arrivals else max((moment for moment in arrivals if moment is not None), default=None)


def _is_empty(place: Place, run: str, sealing: str) -> bool:
    """Whether only a name is left of a folder: SeaweedFS goes on listing one for a while after its last object went."""
    folder = sealing_folder(run, bytes.fromhex(sealing))
    return next(iter(place.store.list(folder)), None) is None and next(iter(place.store.leftovers(folder)), None) is None


def _is_sealing(name: str) -> bool:
    return len(name) == 32 and set(name) <= set("0123456789abcdef")
