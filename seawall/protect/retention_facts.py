"""What retention is decided from: frozen facts about a run, as true as their sources, and nothing else."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from seawall.verify.levels import Level


class Kind(StrEnum):
    """What a sealing is to the log."""

    CHECKPOINT = "checkpoint"
    ORPHAN = "orphan"
    """Committed under a closed epoch."""
    UNFINISHED = "unfinished"
    """Begun and never committed."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a store is, as configured. Two stores with one medium and one fault domain can be lost by one event."""

    id: str
    name: str
    medium: str
    fault_domain: str
    zone: str = ""

    @property
    def independence(self) -> tuple[str, str]:
        """What has to differ for two copies to count as two."""
        return (self.medium, self.fault_domain)


@dataclass(frozen=True, slots=True)
class Copy:
    """One sealing in one store. A copy with a tombstone is none."""

    store: str
    """Id."""
    level: Level | None = None
    """What is proved about it now; None for never, lapsed, or failed since."""
    lapses_at: datetime | None = None
    failure: str = ""
    """The proof that failed and still stands; empty when none does."""
    answers: bool = True
    """Whether its store answered just now. What does not answer counts for nothing, and nothing in it is deleted."""
    locked_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One sealing with the copies that the log does not say are deleted."""

    sealing: str
    step: int
    kind: Kind
    order: int
    """Number of its commit entry; of two of one step the later one is the newer."""
    copies: tuple[Copy, ...]
    stored_at: datetime | None
    """The store's time in its first receipt; None where nobody's clock but a writer's says."""
    manifest: str = ""
    nbytes: int = 0
    """Stored bytes of one copy, as far as known."""
    quarantine: tuple[str, ...] = ()
    written_off: bool = False
    loss: float | None = None
    base: str = ""
    """Sealing that it is a difference to; empty for a whole one."""
    keys: bool | None = None
    """Whether a live key opens it; None when nobody knows."""
    archived: bool = False
    """Whether it has a label of the archive."""
    resumed: bool = False
    """Training was resumed from it once (L5), and nothing has failed since."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run at one moment of the store's clock."""

    run: str
    now: datetime
    sites: tuple[Site, ...]
    points: tuple[Point, ...]
    begun_at: datetime | None
    """Store's time of the first commit ever, deleted or not: tells a young run from one that lost its old checkpoints."""
    holds: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """What should be known and is not: proofs that are missing, freshness unproved, a clock that went back."""
