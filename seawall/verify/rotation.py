"""Which copies are read back next, so that every stored byte on line is read within a period.

Pure: log, proofs, policy and a moment decide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from seawall.clock import parse_utc
from seawall.log.state import CommitRecord, RunState
from seawall.vault.objects import Row
from seawall.verify.evidence import REQUESTS, STORED_BYTES, count_of
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.proofs import FAILED, OK, Proof

BATCH_BYTES = 64 << 30
"""Bytes that one task reads back: 64 GiB take under half an hour at 300 Mbit/s, which is what a sync's tasks are cut to as well."""
RETRY_AFTER = timedelta(hours=20)
"""A copy that failed is looked at again after that, in case somebody repaired it: once a day, whatever the hour."""


class Due(StrEnum):
    """Why a copy is read. The order is that of urgency."""

    FAILED = "failed"
    """Its last check failed."""
    NEVER = "never"
    """It was never read back."""
    CONTENT = "content"
    """What it decrypts to, or its structure, was never looked at, or that lapses soon."""
    LAPSING = "lapsing"
    """It was read long enough ago."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One copy to read back."""

    commit: CommitRecord
    store: str
    level: Level
    nbytes: int | None
    """Stored bytes; None where nobody knows."""
    requests: int | None
    """How many requests it took the last time."""
    why: Due
    last: datetime | None
    """When it was last looked at to that level."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """The copies to read now, the most urgent first, and what did not fit."""

    readings: tuple[Reading, ...]
    postponed: tuple[Reading, ...]
    """Due, and beyond the budget."""
    overdue: tuple[Reading, ...]
    """Of the postponed those that were not read for a whole period already: the budget is too small."""

    @property
    def nbytes(self) -> int:
        """Bytes of the readings, as far as they are known."""
        return sum(reading.nbytes or 0 for reading in self.readings)


def plan_rotation(
    state: RunState,
    proofs: Sequence[Proof],
    stores: Sequence[str],
    whole: Mapping[tuple[str, str], bool],
    now: datetime,
    ages: AgePolicy,
    *,
    wanted: Level = Level.L2,
    budget_bytes: int | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Rotation:
    """Copies in ``stores`` (ids) that are due at ``now``; at most ``budget_bytes`` of them, but always the most urgent one.

    A copy is due from three quarters of its L2 proof's life on, so that the next rounds come before it lapses. With ``wanted`` above L2
    one copy of each sealing is also due for that level, by the same rule: content is the same in every store. ``whole`` says of copies
    that were never proved whether their receipt is there ((sealing, store) → bool); one that has none is still being filled. ``sizes``
    has stored bytes by sealing, where the proofs do not tell.
    """
    by_sealing: dict[str, list[Proof]] = {}
    for proof in proofs:
        by_sealing.setdefault(proof.sealing, []).append(proof)
    found: list[Reading] = []
    for commit in state.commits.values():
        about = [p for p in by_sealing.get(commit.sealing, ()) if p.manifest == commit.manifest]
        about = sorted((p for p in about if p.result == FAILED or parse_utc(p.at) <= now), key=lambda p: (p.at, p.result == FAILED))
        there = [
            store
            for store in stores
            if not state.is_deleted(commit.sealing, store)
            and (store == commit.store or any(p.store == store for p in about) or whole.get((commit.sealing, store), False))
        ]
        nbytes = _newest_count(about, STORED_BYTES)
        if nbytes is None:
            nbytes = (sizes or {}).get(commit.sealing)
        readings = [
            reading for store in there if (reading := _reading(commit, store, about, nbytes, now, ages, Level.L2, Due.LAPSING)) is not None
        ]
        found += _with_content(commit, there, readings, about, nbytes, now, ages, wanted) if wanted > Level.L2 else readings
    order = list(Due)
    found.sort(
        key=lambda each: (order.index(each.why), each.last or datetime.min.replace(tzinfo=now.tzinfo), -each.commit.step, each.store)
    )
    return _within(found, budget_bytes, now, ages)


def _reading(
    commit: CommitRecord, store: str, about: Sequence[Proof], nbytes: int | None, now: datetime, ages: AgePolicy, level: Level, why: Due
) -> Reading | None:
    own = [proof for proof in about if proof.store == store]
    requests = _newest_count([proof for proof in own if proof.level == Level.L2], REQUESTS)
    if own and own[-1].result == FAILED:
        last = parse_utc(own[-1].at)
        # A moment in the future is a clock that is wrong: it postpones nothing.
        if timedelta(0) <= now - last < RETRY_AFTER:
            return None
        return Reading(commit, store, max(level, own[-1].level), nbytes, requests, Due.FAILED, last)
    good = [proof for proof in own if proof.result == OK and proof.level >= level]
    if not good:
        return Reading(commit, store, level, nbytes, requests, Due.NEVER, None)
    last = parse_utc(good[-1].at)
    if now - last < ages.max_age(level, store) * 3 / 4:
        return None
    return Reading(commit, store, level, nbytes, requests, why, last)


def _with_content(
    commit: CommitRecord,
    there: Sequence[str],
    readings: list[Reading],
    about: Sequence[Proof],
    nbytes: int | None,
    now: datetime,
    ages: AgePolicy,
    wanted: Level,
) -> list[Reading]:
    """One of the copies is read to ``wanted`` when the sealing's content is due: one that is read anyway, else the first."""
    content = [proof for proof in about if proof.result == OK and proof.level >= wanted]
    last = parse_utc(content[-1].at) if content else None
    if not there or (last is not None and now - last < ages.max_age(wanted, there[0]) * 3 / 4):
        return readings
    healthy = [reading for reading in readings if reading.why is not Due.FAILED]
    chosen = healthy[0] if healthy else None
    store = chosen.store if chosen else there[0]
    own = [proof for proof in about if proof.store == store]
    if chosen is None and own and own[-1].result == FAILED:
        return readings
    why = chosen.why if chosen and chosen.why is Due.NEVER else Due.CONTENT
    content_reading = Reading(commit, store, wanted, nbytes, chosen.requests if chosen else None, why, last)
    return [content_reading, *(reading for reading in readings if reading is not chosen)]


def _newest_count(about: Sequence[Proof], name: str) -> int | None:
    return next((count for proof in reversed(about) if (count := count_of(proof.evidence, name)) is not None), None)


def _within(found: Sequence[Reading], budget_bytes: int | None, now: datetime, ages: AgePolicy) -> Rotation:
    """In order of urgency as long as the budget lasts. A later, smaller copy does not overtake: the large ones would never come."""
    taken, spent = 0, 0
    for reading in found:
        spent += reading.nbytes or 0
        if budget_bytes is not None and taken and spent > budget_bytes:
            break
        taken += 1
    postponed = tuple(found[taken:])
    overdue = tuple(each for each in postponed if now - _since(each) > ages.max_age(each.level, each.store))
    return Rotation(tuple(found[:taken]), postponed, overdue)


def _since(reading: Reading) -> datetime:
    """From when on its period counts: one that was never read should have been within a period of its commit."""
    return reading.last or parse_utc(reading.commit.stored_at or reading.commit.at)


@dataclass(frozen=True, slots=True)
class Span:
    """Some objects of a copy, by their place in the objects table: what one task reads."""

    first: int
    count: int
    nbytes: int


def object_spans(rows: Sequence[Row], batch_bytes: int = BATCH_BYTES) -> list[Span]:
    """All rows in order, cut so that none has more than ``batch_bytes``, except where a single object has more."""
    spans: list[Span] = []
    first, nbytes = 0, 0
    for index, row in enumerate(rows):
        if index > first and nbytes + row.length > batch_bytes:
            spans.append(Span(first, index - first, nbytes))
            first, nbytes = index, 0
        nbytes += row.length
    if rows:
        spans.append(Span(first, len(rows) - first, nbytes))
    return spans
