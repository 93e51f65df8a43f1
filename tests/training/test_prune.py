"""Which steps training may remove from its own folder: a table of cases, and what holds for all of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.training.prune import StepState, candidates, prune


def done(*steps: int) -> list[StepState]:
    return [StepState(step, complete=True) for step in steps]


def proved(*steps: int, copies: int = 2) -> dict[int, int]:
    return dict.fromkeys(steps, copies)


NAN = StepState(40, complete=True, sound=False)
KILLED = StepState(10, complete=False, abandoned=True)
FOREIGN = StepState(10, complete=False)

CASES = {
    "nothing is there": ([], {}, 1, []),
    "fewer than are kept": (done(10, 20), proved(10, 20), 3, []),
    "older ones that are proved go": (done(10, 20, 30, 40), proved(10, 20, 30, 40), 2, [10, 20]),
    "not proved often enough stays": (done(10, 20, 30), {10: 1, 20: 2}, 1, [20]),
    "unknown is no proof": (done(10, 20), {}, 1, []),
    "order of the listing does not matter": (done(30, 10, 20), proved(10, 20), 1, [10, 20]),
    "steps sort by number": (done(9, 10, 100), proved(9, 10, 100), 2, [9]),
    "an unfinished newer one counts for nothing": ([*done(10, 20), StepState(30, False, True)], proved(10, 20), 1, [10]),
    "an unfinished newer one stays, whoever wrote it": ([*done(10), StepState(30, False, True), StepState(40, False)], proved(10), 1, []),
    "what a kill left is cleared once a newer one is complete": ([KILLED, *done(20)], {}, 1, [10]),
    "what a kill left stays while nothing is complete": ([KILLED], {}, 1, []),
    "an unfinished one of somebody else stays": ([FOREIGN, *done(20, 30)], proved(10, 20, 30), 1, [20]),
    "NaN does not push out the last good one": ([*done(10, 20, 30), NAN], proved(10, 20, 30, 40), 1, [10, 20]),
    "the newest stays even if it is NaN and proved": ([NAN], proved(40), 1, []),
    "with NaN only, nothing goes": ([StepState(n, True, sound=False) for n in (1, 2, 3)], proved(1, 2, 3), 1, []),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rule(name: str) -> None:
    steps, copies, keep, removed = CASES[name]
    assert prune(steps, copies, keep, 2) == removed


def test_what_is_protected_stays() -> None:
    assert prune([KILLED, *done(20, 30, 40)], proved(20, 30, 40), 1, 2, protected={10, 20}) == [30]


@pytest.mark.parametrize(("keep", "needed"), [(0, 1), (1, 0), (-1, 2)])
def test_bounds_that_would_remove_the_only_copy_are_refused(keep: int, needed: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        prune(done(10, 20), proved(10, 20), keep, needed)


STEPS = st.lists(
    st.builds(StepState, st.integers(0, 60), st.booleans(), st.booleans(), st.booleans()), max_size=12, unique_by=lambda state: state.step
)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.dictionaries(st.integers(0, 60), st.integers(0, 4)), st.integers(1, 4), st.integers(1, 3), st.sets(st.integers(0, 60)))
def test_laws(steps: list[StepState], copies: dict[int, int], keep: int, needed: int, protected: set[int]) -> None:
    removed = prune(steps, copies, keep, needed, protected)
    by_step = {state.step: state for state in steps}
    complete = [state.step for state in steps if state.complete]
    good = sorted(state.step for state in steps if state.complete and state.sound)
    assert removed == sorted(set(removed))
    assert set(removed) <= set(candidates(steps, keep, protected)) <= set(by_step)
    assert not set(removed) & protected
    assert not set(removed) & set(good[-keep:])
    assert len(good) - len(set(removed) & set(good)) >= min(keep, len(good))
    if complete:
        assert max(complete) not in removed
    else:
        assert removed == []
    for step in removed:
        state = by_step[step]
        if state.complete:
            assert copies.get(step, 0) >= needed
        else:
            assert state.abandoned
            assert step < max(complete)
    # More copies never keep a step here that fewer let go.
    assert set(removed) <= set(prune(steps, dict.fromkeys(range(61), 9), keep, needed, protected))
