"""The integrity matrix: what happened, as proofs and marks in a line, and the cells and calls that follow."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from seawall.clock import utc_text
from seawall.log.state import Mark, RunState
from seawall.verify.cells import MatrixPolicy
from seawall.verify.configuration import MatrixSettings
from seawall.verify.folded_facts import Asked, Received, fold_facts
from seawall.verify.judge import judge
from seawall.verify.levels import Level
from seawall.verify.matrix import Cell, Dimension, Matrix, Response, Verdict
from seawall.verify.matrix_facts import Newest, StoreFacts
from seawall.verify.proofs import OK, Proof
from seawall.verify.responses import responses
from tests.log.actors import KEYS
from tests.verify.judging import DAY_0, POLICY, day, proof, proofs_in, run_of, sealing_id, store_id

STORES = tuple(StoreFacts(store_id(name), name, fault_domain=name) for name in "ab")
FRESH = Asked(fresh=True)
JUDGED_BY = MatrixPolicy(POLICY, MatrixSettings())
MINUTE = 1 / 1440


def matrix_of(
    proofs: list[Proof],
    now: float,
    state: RunState | None = None,
    asked: Asked = FRESH,
    stores: tuple[StoreFacts, ...] = STORES,
    policy: MatrixPolicy = JUDGED_BY,
) -> Matrix:
    state = state or run_of(100)
    return judge(fold_facts(state, proofs, stores, day(now), policy.ages, asked), day(now), policy)


def cell(matrix: Matrix, dimension: Dimension, store: str = "a", step: int = 100) -> Cell:
    (row,) = [row for row in matrix.rows if (row.step, row.store.name) == (step, store)]
    return row.cells[dimension]


def looked_at(at: float, step: int = 100, result: str = OK, **evidence: object) -> Proof:
    """An L4 proof of the copy in a that counted something."""
    return replace(proof(at, "a", Level.L4, result, step), evidence={name: str(value) for name, value in evidence.items()})


FILES = [
    # what happened; now; the file cells of a and b
    ("", 1, "unknown", "unknown"),
    ("1 a L2 ok", 2, "ok prove-nothing", "unknown"),
    ("1 a L0 ok", 2, "unknown prove", "unknown"),
    ("1 a L1 ok", 2, "unknown prove", "unknown"),
    ("1 a L4 ok; 1 b L2 ok", 2, "ok", "ok"),
    ("1 a L2 ok; 1 b L2 ok", 8.5, "stale prove", "stale prove"),
    ("1 a L2 ok; 8 a L0 ok", 8.5, "stale prove", "unknown"),
    ("1 a L2 failed; 1 b L2 ok", 2, "failed heal", "ok"),
    ("1 a L2 failed", 2, "failed heal", "unknown"),
    # A good copy that has lapsed is none that is known to be good.
    ("1 a L2 ok; 9 b L2 failed", 9, "stale prove", "failed heal"),
    ("1 a L2 failed; 1 b L2 failed", 2, "failed incident", "failed incident"),
    ("1 a L2 failed; 2 a L2 ok", 3, "ok", "unknown"),
    ("1 a L0 failed; 1 b L3 ok", 2, "failed heal", "ok"),
    # Content that fails fails with the same bytes everywhere: nothing to heal it from.
    ("1 a L3 failed; 1 b L2 ok", 2, "failed quarantine", "ok"),
    ("1 a L3 ok; 1 b L3 ok; 2 a L3 failed", 3, "failed quarantine", "ok"),
    # The same bytes were opened well since: look again before anything is quarantined.
    ("1 a L3 failed; 2 b L3 ok", 3, "failed prove", "ok"),
    # What fails above L3 says nothing against the bytes, which were read on the way.
    ("1 a L2 ok; 1 a L3 ok; 1 a L4 failed", 2, "ok", "unknown"),
    ("1 a L3 ok; 1 a L4 ok; 2 a L5 failed", 3, "ok", "unknown"),
    # Clocks that ran ahead.
    ("50 a L2 ok", 2, "unknown", "unknown"),
    ("50 a L2 failed", 2, "failed heal", "unknown"),
]


@pytest.mark.parametrize(("happened", "now", "a", "b"), FILES)
def test_files(happened: str, now: float, a: str, b: str) -> None:
    matrix = matrix_of(proofs_in(happened), now)
    for store, expected in (("a", a), ("b", b)):
        verdict, _, response = expected.partition(" ")
        found = cell(matrix, Dimension.FILE, store)
        assert found.verdict == verdict
        if response and response != "prove-nothing":
            assert found.response == response
    assert cell(matrix, Dimension.FILE).age(day(now)) is None or cell(matrix, Dimension.FILE).at is not None


def test_a_proof_of_versions_that_no_receipt_names_is_about_another_copy() -> None:
    """A repair wrote new ones, or somebody overwrote an object and signed for it: nobody has read those back."""
    proofs = [replace(each, versions="11" * 32) for each in proofs_in("1 a L4 ok; 1 b L2 ok")]
    key = (sealing_id(100), store_id("b"))
    for versions, verdict in (("11" * 32, Verdict.OK), ("22" * 32, Verdict.UNKNOWN), ("", Verdict.OK)):
        matrix = matrix_of(proofs, 2, asked=Asked(fresh=True, received={key: Received(True, None, versions)}))
        assert cell(matrix, Dimension.FILE, "b").verdict is verdict
        assert cell(matrix, Dimension.FILE, "a").verdict is Verdict.OK
    broken = [*proofs, replace(proof(1.5, "b", Level.L2, "failed"), versions="11" * 32)]
    matrix = matrix_of(broken, 2, asked=Asked(fresh=True, received={key: Received(True, None, "22" * 32)}))
    assert cell(matrix, Dimension.FILE, "b").verdict is Verdict.FAILED, "a repair alone ends no failure"


def test_a_level_in_the_row_is_the_one_that_retention_counts() -> None:
    matrix = matrix_of(proofs_in("1 a L4 ok; 1 b L2 ok; 2 a L5 failed"), 3)
    assert [(row.store.name, row.level) for row in matrix.rows] == [("a", None), ("b", Level.L4)]


def test_heal_names_the_copies_that_are_good_now() -> None:
    stores = (*STORES, StoreFacts(store_id("c"), "c"))
    matrix = matrix_of(proofs_in("9 a L2 failed; 1 b L2 ok; 9 c L2 ok"), 9, stores=stores)
    (call,) = [call for call in responses(matrix) if call.response is Response.HEAL]
    assert (call.stores, call.sources) == ((store_id("a"),), (store_id("c"),))
    assert call.dimension is Dimension.FILE and call.reason.startswith("file: ")


def test_an_incident_comes_first_and_names_no_source() -> None:
    calls = responses(matrix_of(proofs_in("1 a L2 failed; 1 b L2 failed"), 2))
    assert calls[0].response is Response.INCIDENT and calls[0].stores == (store_id("a"), store_id("b"))
    assert not calls[0].sources


STRUCTURES = [
    # keys, missing, new; verdict: 0.1 % of the keys of both, not of the smaller one
    (1000, 0, 0, "ok"),
    (1000, 0, 1, "ok"),
    (999, 1, 0, "ok"),
    (1000, 1, 1, "suspect"),
    (998, 2, 0, "suspect"),
    (0, 1000, 0, "suspect"),
    (0, 0, 0, "ok"),
    (3, 0, 1, "suspect"),
]


@pytest.mark.parametrize(("keys", "missing", "new", "verdict"), STRUCTURES)
def test_structure_beside_the_checkpoint_before(keys: int, missing: int, new: int, verdict: str) -> None:
    seen = looked_at(1, keys=keys, keys_missing=missing, keys_new=new, compared_with=sealing_id(50))
    found = cell(matrix_of([seen], 2), Dimension.STRUCTURE)
    assert found.verdict == verdict
    assert found.response is (Response.QUARANTINE_AND_HOLD if verdict == "suspect" else Response.NONE)


def test_structure_that_differs_from_its_own_inventory_has_no_threshold() -> None:
    found = cell(matrix_of(proofs_in("1 a L3 ok; 1 a L4 failed"), 2), Dimension.STRUCTURE)
    assert (found.verdict, found.response) == (Verdict.FAILED, Response.QUARANTINE_AND_HOLD)


def test_structure_lapses_and_is_unknown_before_anybody_looked() -> None:
    seen = looked_at(1, keys=3, keys_missing=0, keys_new=0, compared_with=sealing_id(50))
    assert cell(matrix_of([seen], 31), Dimension.STRUCTURE).verdict is Verdict.OK
    assert cell(matrix_of([seen], 31.1), Dimension.STRUCTURE).verdict is Verdict.STALE
    assert cell(matrix_of(proofs_in("1 a L3 ok"), 2), Dimension.STRUCTURE).verdict is Verdict.UNKNOWN
    # A proof by somebody who recorded no counts says that the sealing is what was saved, and nothing of the checkpoint before.
    assert cell(matrix_of([looked_at(1, keys="many")], 2), Dimension.STRUCTURE).verdict is Verdict.UNKNOWN


COUNTS = {"floats": 10_000, "nonfinite": 0, "zeros": 100, "saturated": 0}
VALUES = [
    # changes to the counts of the checkpoint before and of this one; verdict
    ({}, {}, "ok"),
    ({}, {"nonfinite": 1}, "suspect"),
    ({"nonfinite": 1}, {"nonfinite": 1}, "ok"),
    ({"nonfinite": 1}, {"nonfinite": 2}, "suspect"),
    ({}, {"zeros": 600}, "ok"),
    ({}, {"zeros": 601}, "suspect"),
    ({"zeros": 5000}, {"zeros": 0}, "ok"),
    ({}, {"saturated": 1}, "ok"),
    ({}, {"saturated": 2}, "suspect"),
    ({}, {"floats": 0, "zeros": 0}, "ok"),
]


@pytest.mark.parametrize(("before", "now", "verdict"), VALUES)
def test_values_beside_the_checkpoint_before(before: dict[str, int], now: dict[str, int], verdict: str) -> None:
    proofs = [looked_at(1, 50, **{**COUNTS, **before}), looked_at(1, 100, **{**COUNTS, **now})]
    found = cell(matrix_of(proofs, 2, run_of(50, 100)), Dimension.VALUES)
    assert found.verdict == verdict
    assert found.response is (Response.QUARANTINE if verdict == "suspect" else Response.NONE)


def test_values_are_compared_with_the_last_checkpoint_that_is_trusted() -> None:
    """Otherwise the second checkpoint with the same fault would look like the first."""
    proofs = [looked_at(1, step, **{**COUNTS, "nonfinite": bad}) for step, bad in ((50, 0), (75, 9), (100, 9))]
    state = run_of(50, 75, 100, quarantined=(75,))
    assert cell(matrix_of(proofs, 2, state), Dimension.VALUES).verdict is Verdict.SUSPECT
    assert cell(matrix_of(proofs, 2, run_of(50, 75, 100)), Dimension.VALUES).verdict is Verdict.OK


def test_a_first_checkpoint_with_odd_numbers_is_suspect() -> None:
    found = cell(matrix_of([looked_at(1, **{**COUNTS, "nonfinite": 1})], 2), Dimension.VALUES)
    assert found.verdict is Verdict.SUSPECT and "none before" in found.why


def test_a_resume_that_failed_is_about_the_values() -> None:
    matrix = matrix_of(proofs_in("1 a L4 ok; 2 a L5 failed"), 3)
    found = cell(matrix, Dimension.VALUES)
    assert (found.verdict, found.response) == (Verdict.FAILED, Response.QUARANTINE)


def _marked(reason: str, lifted: bool) -> RunState:
    state = run_of(100)
    state.marks["op"] = Mark("op", sealing_id(100), reason, 1, KEYS.operator.key_id, utc_text(DAY_0), "lift" if lifted else "", "")
    if not lifted:
        state.quarantined[sealing_id(100)] = ("op",)
    return state


@pytest.mark.parametrize(
    ("reason", "lifted", "verdict", "calls"),
    [
        ("values: 1 values are NaN", False, "suspect", False),
        ("values: 1 values are NaN", True, "ok", False),
        ("somebody else's", False, "suspect", False),
        ("structure: 9 of 10 keys", True, "suspect", True),
    ],
)
def test_a_quarantine_is_placed_once_and_a_lift_is_respected(reason: str, lifted: bool, verdict: str, calls: bool) -> None:
    odd = looked_at(1, **{**COUNTS, "nonfinite": 1})
    matrix = matrix_of([odd], 2, _marked(reason, lifted))
    assert cell(matrix, Dimension.VALUES).verdict == verdict
    assert any(call.response is Response.QUARANTINE for call in responses(matrix)) is calls


def test_a_hold_is_called_for_until_its_quarantine_stands() -> None:
    odd = looked_at(1, keys=10, keys_missing=5, keys_new=0, compared_with=sealing_id(50))

    def wanted(state: RunState) -> bool:
        return any(call.response is Response.QUARANTINE_AND_HOLD for call in responses(matrix_of([odd], 2, state)))

    assert wanted(run_of(100))
    assert wanted(_marked("values: something else", False))
    assert not wanted(_marked("structure: 5 of 15 keys", False))
    assert not wanted(_marked("structure: 5 of 15 keys", True))


ARRIVALS = [
    # minutes since the commit; what was asked about the copy in b; verdict; response
    (10, None, "ok", "none"),
    (30, None, "ok", "none"),
    (31, None, "unknown", "none"),
    (31, Received(False), "failed", "catch_up"),
    (30, Received(False), "ok", "none"),
    (31, Received(True, day(5 * MINUTE)), "ok", "none"),
    (31, Received(True), "ok", "none"),
    (600, Received(True, day(300 * MINUTE)), "ok", "none"),
]


@pytest.mark.parametrize(("minutes", "received", "verdict", "response"), ARRIVALS)
def test_timeliness_of_a_copy(minutes: float, received: Received | None, verdict: str, response: str) -> None:
    asked = Asked(fresh=True, received={} if received is None else {(sealing_id(100), store_id("b")): received})
    found = cell(matrix_of([], minutes * MINUTE, asked=asked), Dimension.TIMELINESS, "b")
    assert (found.verdict, found.response) == (verdict, response)
    assert cell(matrix_of([], minutes * MINUTE, asked=asked), Dimension.TIMELINESS, "a").verdict is Verdict.OK, "where it was committed"


@pytest.mark.parametrize(
    ("newest", "verdict", "response"),
    [
        (None, "unknown", "none"),
        (Newest(100, day(0)), "ok", "none"),
        (Newest(200, day(1 - 30 * MINUTE)), "ok", "none"),
        (Newest(200, day(1 - 31 * MINUTE)), "failed", "catch_up"),
    ],
)
def test_timeliness_of_the_run(newest: Newest | None, verdict: str, response: str) -> None:
    matrix = matrix_of([], 1, asked=Asked(fresh=True, newest_source=newest))
    assert (matrix.run_cell.verdict, matrix.run_cell.response) == (verdict, response)
    assert any(call.response is Response.CATCH_UP and not call.sealing for call in responses(matrix)) is (response == "catch_up")


def test_the_chain_is_unknown_where_proofs_are_missing_or_nothing_was_compared() -> None:
    for asked, verdict in (
        (FRESH, Verdict.OK),
        (Asked(), Verdict.UNKNOWN),
        (Asked(fresh=False), Verdict.UNKNOWN),
        (Asked(fresh=True, unknown_verifiers={"v": "its chain ends at 3"}), Verdict.UNKNOWN),
    ):
        assert cell(matrix_of([], 1, asked=asked), Dimension.CHAIN).verdict is verdict


LOCKED = (StoreFacts(store_id("a"), "a", lock_required=True),)


@pytest.mark.parametrize(
    ("unlocked", "until", "now", "verdict"),
    [
        (None, None, 2, "unknown"),
        ("0", 20, 2, "ok"),
        ("0", 20, 8.1, "stale"),
        ("0", 5, 6, "failed"),
        ("3", 20, 2, "failed"),
        ("0", None, 2, "failed"),
    ],
)
def test_locks(unlocked: str | None, until: float | None, now: float, verdict: str) -> None:
    evidence = {} if unlocked is None else {"unlocked": unlocked}
    if until is not None:
        evidence["locked_until"] = utc_text(day(until))
    matrix = matrix_of([replace(proof(1, "a", Level.L1, OK), evidence=evidence)], now, stores=LOCKED)
    assert cell(matrix, Dimension.LOCK).verdict == verdict
    assert cell(matrix_of([], now), Dimension.LOCK).verdict is Verdict.OK, "where no lock is asked for"


@pytest.mark.parametrize(
    ("wraps", "live", "needed", "now", "verdict", "response"),
    [
        ("", None, 1, 2, "unknown", "prove"),
        ("keyring 1, recovery 2", None, 2, 2, "ok", "none"),
        ("keyring 1, recovery 2", {"keyring 1"}, 1, 2, "ok", "none"),
        ("keyring 1, recovery 2", {"keyring 1"}, 2, 2, "suspect", "review"),
        ("keyring 1", None, 2, 2, "suspect", "review"),
        ("keyring 1", {"keyring 9"}, 1, 2, "failed", "incident"),
        ("keyring 1", None, 1, 32, "stale", "prove"),
    ],
)
def test_keys(wraps: str, live: set[str] | None, needed: int, now: float, verdict: str, response: str) -> None:
    proofs = [replace(proof(1, "a", level, OK), evidence={"wraps": wraps} if wraps else {}) for level in (Level.L2, Level.L3)]
    asked = Asked(fresh=True, live_keys=None if live is None else frozenset(live))
    found = cell(matrix_of(proofs, now, asked=asked, policy=MatrixPolicy(POLICY, MatrixSettings(live_wraps=needed))), Dimension.KEY)
    assert (found.verdict, found.response) == (verdict, response)


def test_a_deleted_copy_has_no_row_and_one_of_another_manifest_proves_nothing() -> None:
    matrix = matrix_of(proofs_in("1 a L4 ok of another; 1 b L2 ok"), 2, run_of(100, deleted=("100 b",)))
    assert [row.store.name for row in matrix.rows] == ["a"]
    assert cell(matrix, Dimension.FILE).verdict is Verdict.UNKNOWN


def test_rows_begin_with_the_newest_checkpoint_and_the_worst_cell_is_the_verdict() -> None:
    matrix = matrix_of(proofs_in("1 a L2 failed; 1 b L2 ok", 50), 2, run_of(50, 100))
    assert [(row.step, row.store.name) for row in matrix.rows] == [(100, "a"), (100, "b"), (50, "a"), (50, "b")]
    assert matrix.verdict is Verdict.FAILED
    assert sum(matrix.counts().values()) == 4 * len(Dimension)


def test_only_some_checkpoints_are_judged_by_all_proofs() -> None:
    state = run_of(50, 100)
    proofs = [looked_at(1, 50, **COUNTS), looked_at(1, 100, **{**COUNTS, "zeros": 9000})]
    facts = fold_facts(state, proofs, STORES, day(2), POLICY, FRESH, [state.commits[sealing_id(100)]])
    matrix = judge(facts, day(2), JUDGED_BY)
    assert {row.step for row in matrix.rows} == {100}
    assert cell(matrix, Dimension.VALUES).verdict is Verdict.SUSPECT


def test_a_moment_is_judged_by_what_was_known_then() -> None:
    """The heatmap over time asks for moments of the past."""
    proofs = proofs_in("1 a L2 ok; 5 b L2 ok")
    assert cell(matrix_of(proofs, 3), Dimension.FILE, "b").verdict is Verdict.UNKNOWN
    assert cell(matrix_of(proofs, 6), Dimension.FILE, "b").verdict is Verdict.OK
    assert timedelta(days=2) == cell(matrix_of(proofs, 3), Dimension.FILE).age(datetime.fromisoformat("2026-03-04T00:00:00+00:00"))
