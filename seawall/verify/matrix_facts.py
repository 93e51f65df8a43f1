"""What the integrity matrix is computed from: frozen facts, each with the moment it was true, or None where nobody knows.

Facts come from the log and the proofs (:mod:`seawall.verify.folded_facts`); whoever asked a store adds what it said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from seawall.log.state import CommitRecord
from seawall.verify.proofs import Proof
from seawall.verify.recovery import CopyState


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """A place for copies, as it is configured."""

    id: str
    name: str
    medium: str = "disk"
    fault_domain: str = ""
    zone: str = ""
    lock_required: bool = False
    """Whether copies here must be locked against deletion; a store that has no locks is not asked for them."""
    archive: bool = False
    """Whether only some checkpoints come here: one of which nothing is known is not missing."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """When a copy was whole in its store."""

    due_from: datetime
    """When the checkpoint was committed: from then on every store should get its copy."""
    whole_at: datetime | None = None
    """The store's time in the newest receipt, or the earliest proof that found it whole; None while no copy was seen."""
    missing: bool | None = None
    """True when the store was asked and has no receipt; None when it was not asked."""


@dataclass(frozen=True, slots=True)
class LockFacts:
    """What the store said about locks on this copy's objects."""

    at: datetime
    locked_until: datetime | None
    """The earliest end among the objects; None when some have no lock."""
    unlocked: int = 0


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """Who can open the sealing."""

    wraps: tuple[str, ...] | None = None
    """``kind id`` of each recipient of the newest wraps; None when nobody looked."""
    at: datetime | None = None
    live: tuple[str, ...] | None = None
    """Those of ``wraps`` whose keys are known to exist; None when nobody knows."""
    opened_at: datetime | None = None
    """When a verifier last opened the sealing with a real key (L3 or more)."""


@dataclass(frozen=True, slots=True)
class StructureFacts:
    """The state dict of a sealing beside the one of the checkpoint before."""

    at: datetime
    keys: int
    missing: int = 0
    new: int = 0
    compared_with: str = ""
    """Sealing id of the checkpoint before; empty when there was none to compare with."""


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """Counts over all floating-point values of a sealing."""

    at: datetime
    floats: int
    nonfinite: int
    zeros: int
    saturated: int

    @property
    def zero_share(self) -> float:
        return self.zeros / self.floats if self.floats else 0.0

    @property
    def saturated_share(self) -> float:
        return self.saturated / self.floats if self.floats else 0.0


@dataclass(frozen=True, slots=True)
class SealingFacts:
    """What is known of a sealing whatever store it lies in."""

    commit: CommitRecord
    quarantine: tuple[str, ...] = ()
    """Why it is no recovery point; empty when no quarantine stands."""
    lifted: tuple[str, ...] = ()
    """Reasons of its quarantines that a person lifted: what one of them was about is accepted."""
    structure: StructureFacts | None = None
    structure_failure: Proof | None = None
    """The L4 proof that says that the sealing differs from its own inventory, while it stands."""
    resume_failure: Proof | None = None
    """The L5 proof that says that training did not go on from it as before, while it stands."""
    structure_unrecorded: bool = False
    """It was sealed as plain files, so that there is no structure to compare."""
    values: ValueFacts | None = None
    values_before: ValueFacts | None = None
    """Of the nearest earlier checkpoint that is not quarantined."""
    keys: KeyFacts = KeyFacts()


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """One sealing in one store. A copy that should be there and is not has facts, too; a deleted one has none."""

    sealing: SealingFacts
    store: StoreFacts
    arrival: Arrival
    state: CopyState | None = None
    """What all its proofs are worth now; None when it was never proved."""
    bytes_state: CopyState | None = None
    """The same without failures of L4 and above, which say nothing against its bytes."""
    read_at: datetime | None = None
    """When a verifier last read all its bytes and found them good, also when that has lapsed."""
    lock: LockFacts | None = None


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest finished checkpoint where training writes."""

    step: int
    saved_at: datetime


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All that the matrix of a run is computed from."""

    run: str
    copies: tuple[CopyFacts, ...] = ()
    fresh: bool | None = None
    """Whether the log was held against other memory (mirrors, the local floor); None when it was not asked."""
    unknown_verifiers: Mapping[str, str] = field(default_factory=dict)
    """Verifiers whose proofs count for nothing now, and why."""
    newest_source: Newest | None = None
    """None when nobody looked where training writes."""
    newest_committed_step: int | None = None
    held: tuple[str, ...] = ()
