"""The integrity matrix: rows are copies, columns dimensions, and every cell has a verdict, its evidence, its age and what it calls for.

Pure: the same facts, moment and policy give the same matrix. What nobody knows is *unknown*, and unknown is never ok.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from seawall.verify.levels import Level
from seawall.verify.matrix_facts import StoreFacts


class Dimension(StrEnum):
    """What is judged of a copy. The order is that of the columns."""

    FILE = "file"
    """Every stored byte is what was signed."""
    STRUCTURE = "structure"
    """Tensors are those of save time, and nearly those of the checkpoint before."""
    TIMELINESS = "timeliness"
    """The copy was there soon after the commit."""
    CHAIN = "chain"
    """The signed history that the verdicts rest on is whole."""
    VALUES = "values"
    """The numbers are finite and look like those of the checkpoint before."""
    LOCK = "lock"
    """Nobody can delete the copy before its time."""
    KEY = "key"
    """Somebody can open it."""


class Verdict(StrEnum):
    """The outcome of a cell."""

    OK = "ok"
    SUSPECT = "suspect"
    """The bytes are what was signed and something about them is odd: a person should look before training goes on from them."""
    FAILED = "failed"
    STALE = "stale"
    """It was ok, and the proof has lapsed."""
    UNKNOWN = "unknown"


WORST_FIRST = (Verdict.FAILED, Verdict.SUSPECT, Verdict.UNKNOWN, Verdict.STALE, Verdict.OK)


class Response(StrEnum):
    """What a cell calls for. :mod:`seawall.verify.responses` gathers them; acting is done elsewhere."""

    NONE = "none"
    PROVE = "prove"
    """Read it back and sign what was found."""
    HEAL = "heal"
    """Replace the damaged objects from a good copy, and prove it again."""
    QUARANTINE = "quarantine"
    """The checkpoint is no recovery point until a person lifts it."""
    QUARANTINE_AND_HOLD = "quarantine_and_hold"
    """And nothing of the run is deleted or promoted."""
    CATCH_UP = "catch_up"
    """Sync now: a copy or the newest checkpoint is late."""
    INCIDENT = "incident"
    """No good copy is left. Highest severity; nothing is overwritten."""
    REVIEW = "review"
    """A person has to decide; the machine has no safe action."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One verdict. ``evidence`` is texts for people and programs: counts, moments, names of damaged objects."""

    verdict: Verdict
    why: str
    """One sentence."""
    response: Response = Response.NONE
    evidence: Mapping[str, str] = field(default_factory=dict)
    at: datetime | None = None
    """When what it rests on was true; None when nothing is known."""
    lapses_at: datetime | None = None
    """When it turns stale if nothing is proved again."""

    def age(self, now: datetime) -> timedelta | None:
        """How old its evidence is."""
        return None if self.at is None else now - self.at


@dataclass(frozen=True, slots=True)
class Row:
    """One copy."""

    sealing: str
    step: int
    store: StoreFacts
    level: Level | None
    """What the copy is proved to now."""
    quarantine: tuple[str, ...]
    """Why the checkpoint is quarantined now; empty when it is not."""
    lifted: tuple[str, ...]
    """Reasons of quarantines that a person lifted."""
    cells: Mapping[Dimension, Cell]
    """All dimensions, in their order."""

    @property
    def verdict(self) -> Verdict:
        """The worst of its cells."""
        return worst(cell.verdict for cell in self.cells.values())


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows newest checkpoint first, then in the order of the stores."""

    run: str
    at: datetime
    rows: tuple[Row, ...]
    run_cell: Cell
    """Timeliness of the run as a whole: how far the newest committed checkpoint is behind what training wrote."""
    held: tuple[str, ...] = ()
    """Why the run is on hold; empty when it is not."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all cells that are known to the run; ok for a run without copies and without a word from its source."""
        return worst(row.verdict for row in self.rows)

    def counts(self) -> dict[Verdict, int]:
        """How many cells have each verdict."""
        found = dict.fromkeys(Verdict, 0)
        for row in self.rows:
            for cell in row.cells.values():
                found[cell.verdict] += 1
        return found


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of them; ok when there is none."""
    return min(verdicts, key=WORST_FIRST.index, default=Verdict.OK)
