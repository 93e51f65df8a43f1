"""Which copies are looked at again, as a table: what happened, when it is now, and what is due."""

from datetime import timedelta

import pytest

from seawall.verify.due import copies_due, newest_commit
from seawall.verify.levels import Level
from tests.verify.judging import POLICY, day, proofs_in, run_of, store_id

EVERY = timedelta(hours=20)
CASES = [
    # what happened; now; places with a receipt; wanted; due of a (where it was committed), b and c
    ("", 1, "abc", "L4", "abc"),
    ("", 1, "a", "L4", "a"),
    ("", 1, "", "L4", "a"),
    ("1 a L4 ok; 1 b L4 ok", 1.5, "ab", "L4", ""),
    ("1 a L4 ok; 1 b L4 ok", 1.9, "ab", "L4", "ab"),
    ("1 a L4 ok", 1.5, "ab", "L4", "b"),
    # Another copy's content counts for a copy whose own bytes were read.
    ("1 a L4 ok; 1 b L2 ok", 1.5, "ab", "L4", ""),
    ("1 a L2 ok; 1 b L2 ok", 1.5, "ab", "L4", "ab"),
    ("1 a L2 ok; 1 b L2 ok", 1.5, "ab", "L2", ""),
    # A failure is a result, too; it is looked at again with the next round, in case somebody repaired the copy.
    ("1 a L2 failed", 1.5, "a", "L4", ""),
    ("1 a L2 failed", 1.9, "a", "L4", "a"),
    # Taking the receipt away lets nobody escape who was proved before, nor the copy that was committed.
    ("1 b L4 ok", 3, "", "L4", "ab"),
    # Lapsed.
    ("1 a L4 ok", 40, "a", "L4", "a"),
    # A verifier's clock that ran ahead settles nothing.
    ("50 a L4 ok", 2, "a", "L4", "a"),
    # Proofs of another manifest are about another checkpoint.
    ("1 a L4 ok of another", 1.1, "a", "L4", "a"),
]


@pytest.mark.parametrize(("happened", "now", "receipts", "wanted", "due"), CASES)
def test_which_copies_are_due(happened: str, now: float, receipts: str, wanted: str, due: str) -> None:
    state = run_of(100)
    (commit,) = state.commits.values()
    whole = {store_id(name): name in receipts for name in "abc"}
    found = copies_due(state, commit, proofs_in(happened), whole, day(now), POLICY, Level.parse(wanted), EVERY)
    assert found == [store_id(name) for name in due]


def test_a_deleted_copy_is_never_due() -> None:
    state = run_of(100, deleted=("100 a",))
    (commit,) = state.commits.values()
    whole = {store_id("a"): True, store_id("b"): True}
    assert copies_due(state, commit, [], whole, day(1), POLICY, Level.L2, EVERY) == [store_id("b")]


def test_the_newest_is_the_highest_step_that_counts() -> None:
    assert newest_commit(run_of()) is None
    assert newest_commit(run_of(100, 300, 200)).step == 300  # type: ignore[union-attr]
    assert newest_commit(run_of(100, 300, orphaned=(300,))).step == 100  # type: ignore[union-attr]
