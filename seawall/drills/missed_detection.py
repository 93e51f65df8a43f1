"""How many errors the checks miss, measured beside theory, with controls that must miss some.

A measurement that finds no misses proves something only if it would have found them. So two controls run with the same errors: a CRC of
16 bits, and a CRC-64 that reads 87.3 % of each chunk. Both must miss what theory says they miss.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from seawall.drills.binomial import clopper_pearson
from seawall.drills.flip_patterns import ONE, PATTERNS, Pattern
from seawall.drills.linear_check import CRC16, CRC32C, CRC64, LinearCheck
from seawall.drills.miss_theory import BOUND, EXACT, Expected, crc_misses, digest_misses, partial_misses, tag_misses
from seawall.drills.recomputed_check import SealedRecords
from seawall.errors import UsageError

CONFIDENCE = 0.9999
"""Of each interval: with about forty of them a run that is right seldom says that it is wrong."""
PARTIAL_PERCENT = 87.3
PARTIAL = f"{CRC64.name} of the first {PARTIAL_PERCENT} %"
LEAF, TAG = "SHA-256 leaf", "AES-GCM tag"
CONTROLS = (CRC16.name, PARTIAL)
_ENOUGH = 5.0
"""Misses that a control must be expected to have, or it is too early to say whether it has them."""
MIN_CHUNK_BYTES, MAX_CHUNK_BYTES = 1 << 12, 8 << 20
"""The largest is the format's chunk; its tables take 1.5 GiB."""
MIN_RECORD_BYTES = 64


@dataclass(frozen=True, slots=True)
class Measured:
    """One check under one kind of error."""

    check: str
    pattern: str
    trials: int
    missed: int
    low: float
    high: float
    """Clopper-Pearson interval of the rate at :data:`CONFIDENCE`."""
    expected: Expected
    every_position: bool = False
    """The trials were all there are, not a sample."""

    @property
    def agrees(self) -> bool:
        """Whether the count is what theory allows."""
        if self.expected.rate == 0 and self.expected.basis == EXACT:
            return self.missed == 0
        if self.every_position and self.expected.basis == EXACT:
            return self.missed == round(self.expected.rate * self.trials)
        return self.low <= self.expected.rate and (self.expected.basis == BOUND or self.expected.rate <= self.high)


@dataclass
class MissReport:
    """All of them, and what they are worth together."""

    seed: int
    chunk_bytes: int
    record_bytes: int
    rows: list[Measured] = field(default_factory=list)
    compared: int = 0
    """Errors for which a CRC's table was compared with the checksum of really flipped bytes."""
    disagreements: int = 0

    @property
    def recomputed(self) -> tuple[str, ...]:
        """The checks that were made of records; the others were made of chunks."""
        return (LEAF, TAG)

    @property
    def problems(self) -> list[str]:
        """Why this measurement is not to be believed, or a check is broken; empty when all is as it must be."""
        found = [
            f"{row.check}, {row.pattern}: {row.missed} of {row.trials} missed, {row.expected.basis} {row.expected.rate:.3g} by theory"
            for row in self.rows
            if not row.agrees
        ]
        if self.disagreements:
            found.append(f"a CRC's table and the CRC of the flipped bytes disagree in {self.disagreements} of {self.compared} cases")
        for control in CONTROLS:
            rows = [row for row in self.rows if row.check == control]
            if sum(row.expected.rate * row.trials for row in rows) < _ENOUGH:
                found.append(f"too few trials: the control {control} is not expected to miss {_ENOUGH:g} of them, so it controls nothing")
            elif not any(row.missed for row in rows):
                found.append(f"the control {control} missed nothing, so a check that misses would not be noticed here")
        return found


def measure(
    *,
    trials: int = 1_000_000,
    recomputed: int = 50_000,
    chunk_bytes: int = 1 << 20,
    record_bytes: int = 4096,
    sample: int = 64,
    seed: int = 0,
) -> MissReport:
    """Put errors of every kind into chunks and count what each check misses.

    ``trials`` errors of each kind for the CRCs, over ``chunk_bytes``; single flips are tried at every position instead. ``recomputed``
    errors of each kind for digest and tag, which are made again each time, of records with ``record_bytes`` of plaintext. ``sample``
    errors of each kind are also put into real bytes for each CRC. Takes 24 bytes of memory for each bit of a chunk.
    """
    if trials < 1 or recomputed < 1 or sample < 1 or seed < 0:
        raise UsageError("numbers of trials are at least 1, and a seed is at least 0")
    if not MIN_CHUNK_BYTES <= chunk_bytes <= MAX_CHUNK_BYTES:
        raise UsageError(f"a chunk has {MIN_CHUNK_BYTES} to {MAX_CHUNK_BYTES} bytes", where=str(chunk_bytes))
    if not MIN_RECORD_BYTES <= record_bytes <= MAX_CHUNK_BYTES:
        raise UsageError(f"a record has {MIN_RECORD_BYTES} to {MAX_CHUNK_BYTES} bytes", where=str(record_bytes))
    report = MissReport(seed, chunk_bytes, record_bytes)
    covered = round(chunk_bytes * PARTIAL_PERCENT / 100)
    content = bytearray(random.Random(seed).randbytes(chunk_bytes))
    checks = [(crc.name, LinearCheck(crc, chunk_bytes, chunk_bytes)) for crc in (CRC16, CRC32C, CRC64)]
    checks.append((PARTIAL, LinearCheck(CRC64, chunk_bytes, covered)))
    for pattern in PATTERNS:
        _measure_linear(report, checks, pattern, trials, sample, content)
    records = SealedRecords(record_bytes, seed)
    for pattern in PATTERNS:
        _measure_recomputed(report, records, pattern, recomputed)
    report.rows.sort(key=lambda row: _ORDER.index(row.check))
    return report


_ORDER = (CRC16.name, PARTIAL, CRC32C.name, CRC64.name, LEAF, TAG)


def _measure_linear(
    report: MissReport, checks: Sequence[tuple[str, LinearCheck]], pattern: Pattern, trials: int, sample: int, content: bytearray
) -> None:
    chunk_bits = report.chunk_bytes * 8
    missed = {name: 0 for name, _ in checks}
    for number, flips in enumerate(pattern.blocks(report.seed, chunk_bits, trials)):
        for name, check in checks:
            missed[name] += check.missed(flips)
            if number == 0:
                report.compared += min(sample, flips.trials)
                report.disagreements += check.disagreements(flips, sample, content)
    for name, check in checks:
        every = pattern is ONE
        expected = (
            crc_misses(check.crc, pattern, chunk_bits)
            if check.covered_bytes == check.chunk_bytes
            else partial_misses(pattern, chunk_bits, check.covered_bytes * 8)
        )
        count, of = (check.missed_of_all_single_flips(), chunk_bits) if every else (missed[name], trials)
        _note(report, name, pattern, of, count, expected, every)


def _measure_recomputed(report: MissReport, records: SealedRecords, pattern: Pattern, trials: int) -> None:
    by_leaf = by_tag = 0
    for flips in pattern.blocks(report.seed, records.record_bits, trials):
        leaf, tag = records.missed(flips)
        by_leaf, by_tag = by_leaf + leaf, by_tag + tag
    _note(report, LEAF, pattern, trials, by_leaf, digest_misses(256))
    _note(report, TAG, pattern, trials, by_tag, tag_misses(report.record_bytes + 1))


def _note(report: MissReport, check: str, pattern: Pattern, trials: int, missed: int, expected: Expected, every: bool = False) -> None:
    low, high = clopper_pearson(missed, trials, CONFIDENCE)
    report.rows.append(Measured(check, pattern.name, trials, missed, low, high, expected, every))
