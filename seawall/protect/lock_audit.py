"""The locks of copies that are kept: looked at, and extended before they run out.

They were set when the copy was committed or filled (:mod:`seawall.protect.lock_copy`). A copy that nobody keeps any more is not
extended, so its lock runs out and a plan can delete it.
"""

from dataclasses import dataclass
from datetime import datetime

from seawall.errors import NoSuchObjectError, StoreError
from seawall.protect.lock_copy import lock_copy
from seawall.protect.place import Place
from seawall.protect.retention_facts import RunFacts
from seawall.protect.retention_gather import Desk, gather
from seawall.protect.retention_plan import RetentionDecision, decide
from seawall.vault import manifest as manifests
from seawall.vault.identity import sealing_folder

OK, SHORT, EXTENDED, FAILED = "ok", "short", "extended", "failed"


@dataclass(frozen=True, slots=True)
class CopyLock:
    """The lock that a kept copy should have, and the one that it has."""

    sealing: str
    step: int
    store: str
    """Id."""
    had_until: datetime | None
    """None when it had no lock."""
    wanted_until: datetime
    """At least half of the store's ``lock_days`` from now, so that a missed day or two leave no gap."""
    outcome: str
    """``ok``, ``short`` (looked at only), ``extended`` or ``failed``."""
    why: str = ""


def audit_locks(desk: Desk, *, extend: bool, transfers: int = 16) -> list[CopyLock]:
    """Look at the locks of every copy that retention keeps, in stores that are asked to lock; with ``extend`` make them long enough.

    One request a copy that is locked long enough: its manifest stands for it, because they are extended together. Whether every single
    object is locked is looked at by the verifier's check of L1.
    """
    gathered = gather(desk)
    return [
        found
        for sealing, step, place in _kept(desk, gathered.facts, decide(gathered.facts, desk.settings))
        if (found := _one(desk, sealing, step, place, gathered.facts.now, extend, transfers)) is not None
    ]


def _kept(desk: Desk, facts: RunFacts, decision: RetentionDecision) -> list[tuple[str, int, Place]]:
    points = {point.sealing: point for point in facts.points}
    found = []
    for kept in decision.keep:
        places = [desk.place_of(copy.store) for copy in points[kept.sealing].copies]
        found += [(kept.sealing, kept.step, place) for place in places if place is not None and place.lock is not None]
    return found


def _one(desk: Desk, sealing: str, step: int, place: Place, now: datetime, extend: bool, transfers: int) -> CopyLock | None:
    assert place.lock is not None, "only stores that lock are asked"
    folder = sealing_folder(desk.run, bytes.fromhex(sealing))
    wanted = now + place.lock / 2
    try:
        had = place.store.head(folder + manifests.NAME).locked_until
    except NoSuchObjectError:
        # Not committed, or damaged: others say so.
        return None
    except StoreError as error:
        return CopyLock(sealing, step, place.id, None, wanted, FAILED, str(error))
    if had is not None and had >= wanted:
        return CopyLock(sealing, step, place.id, had, wanted, OK)
    if not extend:
        return CopyLock(sealing, step, place.id, had, wanted, SHORT)
    try:
        lock_copy(place, folder, now + place.lock, transfers)
    except StoreError as error:
        return CopyLock(sealing, step, place.id, had, wanted, FAILED, str(error))
    return CopyLock(sealing, step, place.id, had, wanted, EXTENDED)
