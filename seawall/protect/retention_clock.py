"""Whose clock decides about deletion (DESIGN law 8): the coordination store's, or another store's, and never one that went back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from seawall.clock import Clock, parse_utc
from seawall.errors import FreshnessError, StoreError, StoreRefusedError
from seawall.log.state import RunState
from seawall.protect.place import Place

JITTER = timedelta(minutes=3)
"""How far two stores' clocks may differ: what `seawall store validate` accepts. Within it the clock counts as standing still."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment and who said so."""

    now: datetime
    clock: str
    """Name of the store, or ``this host``."""


def has_clock(place: Place, local_clock: bool) -> bool:
    """Whether what this store says about time may decide anything."""
    return local_clock or place.store.capabilities.server_time


def decisive_moment(coordination: Place, places: Sequence[Place], state: RunState, clock: Clock, *, local_clock: bool) -> Moment:
    """Now, by the first store that has a clock; not before what the log has seen.

    ``StoreRefusedError`` where no store has one and this host's may not stand in; ``FreshnessError`` for a clock that went back.
    """
    found = _asked([coordination, *(place for place in places if place.id != coordination.id)])
    if found is None:
        if not local_clock:
            raise StoreRefusedError(
                "nobody can say what time it is",
                where=state.run,
                why="no store of the run has a clock of its own, and this host's decides about no deletion",
                do="keep a copy in a store with a clock, or set local_clock under [retention] if this host's clock is trusted",
            )
        found = Moment(clock.now(), "this host")
    seen = state.store_time
    if seen is not None and found.now < parse_utc(seen):
        if parse_utc(seen) - found.now > JITTER:
            raise FreshnessError(
                "the store's clock went back",
                where=f"{state.run}, clock of {found.clock}",
                why=f"it is {found.now:%Y-%m-%dT%H:%M:%SZ}; the log has seen {seen}",
                do="find out which of the two is wrong; nothing is deleted until the clock has passed that moment",
            )
        return Moment(parse_utc(seen), found.clock)
    return found


def _asked(places: Sequence[Place]) -> Moment | None:
    for place in places:
        try:
            if not place.store.capabilities.server_time:
                continue
            moment = place.store.server_time()
        except StoreError:
            # Another store may answer. A store that is silent is found silent where its copies are looked at.
            continue
        if moment is not None:
            return Moment(moment, place.name)
    return None
