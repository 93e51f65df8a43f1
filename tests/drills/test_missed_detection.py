"""The measurement as a whole: right checks pass it, broken ones do not, and without controls that show misses it says nothing."""

import itertools
from math import comb

import pytest

from seawall.drills.flip_patterns import BORDER, LONG, ONE, PATTERNS, SHORT, THREE, TWO
from seawall.drills.linear_check import CRC16, CRC32C, CRC64, LinearCheck
from seawall.drills.miss_theory import BOUND, EXACT, Expected, crc_misses, partial_misses, tag_misses
from seawall.drills.missed_detection import LEAF, PARTIAL, TAG, Measured, MissReport, measure
from seawall.drills.recomputed_check import SealedRecords
from seawall.errors import UsageError

CHUNK = 16 << 10


@pytest.fixture(scope="module")
def report() -> MissReport:
    return measure(trials=400_000, recomputed=300, chunk_bytes=CHUNK, record_bytes=512, sample=10, seed=5)


def rows(report: MissReport, check: str) -> dict[str, Measured]:
    return {row.pattern: row for row in report.rows if row.check == check}


def test_nothing_contradicts_theory_and_nothing_that_counts_is_missed(report: MissReport) -> None:
    assert report.problems == []
    assert (report.compared, report.disagreements) == (10 * 4 * len(PATTERNS), 0)
    for check in (CRC32C.name, CRC64.name, LEAF, TAG):
        assert {row.missed for row in rows(report, check).values()} == {0}


def test_the_control_of_16_bits_misses_what_it_must(report: MissReport) -> None:
    control = rows(report, CRC16.name)
    assert control[TWO.name].missed > 0 and control[SHORT.name].missed > 0 and control[LONG.name].missed > 0
    assert control[ONE.name].missed == control[THREE.name].missed == control[BORDER.name].missed == 0
    assert all(row.low <= row.expected.rate <= row.high for row in control.values())


def test_a_check_of_87_3_percent_of_the_bytes_misses_12_7_percent_of_single_flips(report: MissReport) -> None:
    single = rows(report, PARTIAL)[ONE.name]
    assert single.every_position and single.trials == CHUNK * 8
    assert single.missed / single.trials == pytest.approx(0.127, abs=1e-4)
    assert rows(report, CRC64.name)[ONE.name].missed == 0


def test_the_same_seed_gives_the_same_counts() -> None:
    numbers = {"trials": 50_000, "recomputed": 20, "chunk_bytes": CHUNK, "record_bytes": 64, "sample": 2}
    first, again, other = (measure(seed=seed, **numbers).rows for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_too_few_trials_prove_nothing() -> None:
    few = measure(trials=1000, recomputed=1, chunk_bytes=4096, record_bytes=64, sample=1)
    assert [problem for problem in few.problems if "too few trials" in problem and CRC16.name in problem]


def test_a_check_that_misses_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CRC-64 loses a word at the end of each chunk, as code with a wrong length would."""
    whole = LinearCheck.__post_init__

    def short(self: LinearCheck) -> None:
        whole(self)
        if self.crc is CRC64 and self.covered_bytes == self.chunk_bytes:
            self.table[-64:] = 0

    monkeypatch.setattr(LinearCheck, "__post_init__", short)
    problems = measure(trials=400_000, recomputed=1, chunk_bytes=4096, record_bytes=64, sample=200).problems
    assert any(problem.startswith(f"{CRC64.name}, 1 flip: 64 of 32768 missed") for problem in problems)
    assert any("disagree" in problem for problem in problems)


def test_a_control_that_misses_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinearCheck, "missed", lambda self, flips: 0)
    problems = measure(trials=400_000, recomputed=1, chunk_bytes=4096, record_bytes=64, sample=1).problems
    assert any(f"the control {CRC16.name} missed nothing" in problem for problem in problems)


def test_leaf_and_tag_are_computed_anew_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no bit flipped, everything is missed: the counters count."""
    records = SealedRecords(64, 1)
    [flips] = TWO.blocks(1, records.record_bits, 25)
    assert records.missed(flips) == (0, 0)
    monkeypatch.setattr("seawall.drills.recomputed_check.flip", lambda data, positions: None)
    assert records.missed(flips) == (25, 25)


@pytest.mark.parametrize("numbers", [{"trials": 0}, {"recomputed": 0}, {"seed": -1}, {"chunk_bytes": 100}, {"record_bytes": 1}])
def test_numbers_that_cannot_be_meant_are_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        measure(**numbers)


def test_theory_of_two_flips_is_the_count_of_pairs() -> None:
    bits = 2 * CRC16.order + 100
    apart = (bits - CRC16.order) + (bits - 2 * CRC16.order)
    assert crc_misses(CRC16, TWO, bits) == Expected(apart / comb(bits, 2), EXACT)
    assert crc_misses(CRC16, TWO, CRC16.order).rate == 0
    assert crc_misses(CRC64, TWO, 1 << 40).rate == 0


def test_theory_of_bursts_is_the_share_that_the_polynomial_divides() -> None:
    """By trying all bursts of a length with a CRC of 16 bits, which is small enough: 17 bits is the first that can be missed."""
    check = LinearCheck(CRC16, 4096, 4096)
    table = check.table.tolist()
    for length, expected in ((16, 0), (17, 1), (18, 1), (20, 4)):
        missed = 0
        for inner in itertools.product((0, 1), repeat=length - 2):
            syndrome = table[0] ^ table[length - 1]
            for place, flipped in enumerate(inner, start=1):
                syndrome ^= table[place] if flipped else 0
            missed += syndrome == 0
        assert missed == expected


def test_theory_of_a_partial_check_is_the_share_of_what_it_does_not_read() -> None:
    assert partial_misses(ONE, 1000, 900).rate == pytest.approx(0.1)
    assert partial_misses(TWO, 1000, 900).rate == pytest.approx(comb(100, 2) / comb(1000, 2))
    assert partial_misses(BORDER, 1000, 900).rate == 0


def test_a_bound_is_kept_from_below_only() -> None:
    loose = Measured("c", "p", 100, 0, 0.0, 0.05, Expected(0.5, BOUND))
    assert loose.agrees
    assert not Measured("c", "p", 100, 90, 0.8, 0.95, Expected(0.5, BOUND)).agrees
    assert not Measured("c", "p", 100, 1, 0.0, 0.05, Expected(0.0, EXACT)).agrees
    assert tag_misses(4113).rate == pytest.approx(259 * 2**-128)
