"""Proofs written in a line, for tests of what they are worth."""

import re
from datetime import UTC, datetime, timedelta

from seawall.clock import utc_text
from seawall.log.state import CommitRecord, Mark, RunState, TombstoneRecord
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.proofs import Proof
from tests.log.actors import KEYS, RUN, hexed

DAY_0 = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = AgePolicy({Level.L0: 7, Level.L1: 7, Level.L2: 7, Level.L3: 30, Level.L4: 30, Level.L5: 90})
_EVENT = re.compile(r"(\d+(?:\.\d+)?) ([a-z]) (L\d) (ok|failed)(?: of (\w+))?")


def day(number: float) -> datetime:
    """So many days after the first."""
    return DAY_0 + timedelta(days=number)


def sealing_id(step: int) -> str:
    return hexed(f"sealing {step}", 16)


def manifest_id(step: int, name: str = "") -> str:
    return hexed(f"manifest {step} {name}", 32)


def store_id(name: str) -> str:
    return hexed(f"store {name}", 16)


def proof(at: float, store: str, level: Level, result: str, step: int = 100, manifest: str = "") -> Proof:
    """A proof about the copy of ``step`` in ``store`` on day ``at``."""
    return Proof(sealing_id(step), manifest_id(step, manifest), store_id(store), level, result, "test", utc_text(day(at)))


def proofs_in(text: str, step: int = 100) -> list[Proof]:
    """``3 a L2 ok; 4 b L3 failed``: the day, the store, the level, the result; ``of another`` is about another manifest."""
    found = []
    for event in filter(None, (part.strip() for part in text.split(";"))):
        match = _EVENT.fullmatch(event)
        assert match, event
        found.append(proof(float(match[1]), match[2], Level.parse(match[3]), match[4], step, match[5] or ""))
    return found


def committed(step: int, seq: int = 0, orphan: str = "") -> CommitRecord:
    """The commit of ``step``."""
    return CommitRecord(
        sealing_id(step), step, 1, 1, manifest_id(step), hexed("keys", 32), store_id("a"), hexed("receipt", 32), None,
        seq or step, hexed(f"op {step}", 16), KEYS.writer.key_id, utc_text(DAY_0), orphan,
    )  # fmt: skip


def run_of(*steps: int, quarantined: tuple[int, ...] = (), orphaned: tuple[int, ...] = (), deleted: tuple[str, ...] = ()) -> RunState:
    """A folded log with these checkpoints; ``deleted`` are copies such as ``100 a``."""
    state = RunState(RUN, KEYS.root.public)
    for step in steps:
        record = committed(step, orphan="too late" if step in orphaned else "")
        (state.orphans if step in orphaned else state.commits)[record.sealing] = record
    for step in quarantined:
        state.marks[f"op {step}"] = Mark(f"op {step}", sealing_id(step), "looks odd", 1, KEYS.operator.key_id, utc_text(DAY_0))
        state.quarantined[sealing_id(step)] = (f"op {step}",)
    for copy in deleted:
        of_step, store = copy.split()
        sealing = sealing_id(int(of_step))
        tombstone = TombstoneRecord(sealing, store_id(store), hexed("plan", 32), 1)
        state.tombstones[sealing] = (*state.tombstones.get(sealing, ()), tombstone)
    return state
