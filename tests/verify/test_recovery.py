"""What proofs are worth, and which checkpoint is the recovery point: a table of cases, and laws that hold for any history."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.clock import parse_utc
from seawall.log.state import RunState
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.proofs import FAILED, OK, Proof
from seawall.verify.recovery import CopyState, copy_states, recovery_point
from tests.verify.judging import POLICY, day, manifest_id, proof, proofs_in, run_of, sealing_id, store_id

JUDGED = [
    # what happened (day, store, level, result)        now  copies in a and b; "-" nothing holds, "!" a failure stands
    ("", 1, "", ""),
    ("1 a L0 ok", 1, "L0", ""),
    ("1 a L1 ok", 8, "L1", ""),
    ("1 a L1 ok", 8.1, "-", ""),
    ("1 a L2 ok", 8, "L2", ""),
    ("1 a L2 ok", 8.1, "-", ""),
    # Content counts for every copy whose own bytes are fresh, and for no other.
    ("1 a L2 ok; 1 a L3 ok", 2, "L3", ""),
    ("1 a L3 ok", 2, "L3", ""),
    ("1 a L4 ok; 1 b L2 ok", 2, "L4", "L4"),
    ("1 a L4 ok; 1 b L1 ok", 2, "L4", "L1"),
    ("1 a L4 ok; 1 b L0 ok", 9, "-", "-"),
    ("1 a L4 ok; 8 b L2 ok", 9, "-", "L4"),
    ("1 a L4 ok; 25 a L2 ok", 31, "L4", ""),
    ("1 a L4 ok; 25 a L2 ok", 31.1, "L2", ""),
    ("1 a L5 ok; 88 a L2 ok", 91, "L5", ""),
    ("1 a L5 ok; 88 a L2 ok", 91.1, "L2", ""),
    ("1 a L3 ok; 1 b L4 ok; 30 a L2 ok", 31, "L4", "-"),
    # A failure stands until the same copy is proved to L2 at least, later.
    ("1 a L2 ok; 2 a L2 failed", 3, "!", ""),
    ("1 a L2 failed; 2 a L2 ok", 3, "L2", ""),
    ("1 a L2 failed; 2 a L1 ok; 2 a L0 ok", 3, "!", ""),
    ("1 a L2 failed; 2 b L2 ok", 3, "!", "L2"),
    ("1 a L2 failed", 300, "!", ""),
    ("1 a L0 failed; 2 a L0 ok", 3, "!", ""),
    ("1 a L0 failed; 2 a L1 ok", 3, "!", ""),
    ("1 a L0 failed; 2 a L2 ok", 3, "L2", ""),
    ("1 a L2 failed; 2 a L3 ok", 3, "L3", ""),
    ("1 a L3 failed; 2 a L2 ok", 3, "!", ""),
    ("1 a L3 failed; 2 a L0 failed; 3 a L2 ok", 4, "!", ""),
    ("1 a L3 failed; 2 a L0 failed; 3 a L3 ok", 4, "L3", ""),
    ("1 a L2 failed; 2 a L2 ok; 3 a L0 failed", 4, "!", ""),
    # What one check said at one moment: a failure of it stands, in whatever order it is read.
    ("1 a L0 failed; 1 a L2 ok", 2, "!", ""),
    ("1 a L2 ok; 1 a L0 failed", 2, "!", ""),
    ("1 a L1 failed; 1 a L2 ok", 2, "!", ""),
    ("1 a L3 ok; 1 a L4 failed", 2, "!", ""),
    # A failure that was made up for is no success of its level.
    ("1 a L0 failed; 1.5 a L2 ok", 8.2, "L2", ""),
    # Failed content is failed everywhere, until it is proved again somewhere.
    ("1 a L4 ok; 1 b L2 ok; 2 a L3 failed", 3, "!", "L2"),
    ("1 a L4 ok; 1 b L2 ok; 2 a L3 failed; 3 b L3 ok", 4, "!", "L4"),
    ("1 a L3 ok; 1 b L2 ok; 2 b L4 failed", 3, "L3", "!"),
    ("1 a L4 ok; 1 b L2 ok; 2 b L4 failed", 3, "L2", "!"),
    ("1 a L4 failed; 2 a L4 ok", 3, "L4", ""),
    ("1 a L5 ok; 2 b L3 failed", 3, "L2", "!"),
    # Clocks: success in the future counts for nothing, neither up nor against an older one; failure counts at once.
    ("5 a L2 ok", 4, "-", ""),
    ("1 a L2 ok; 50 a L2 ok", 2, "L2", ""),
    ("1 a L2 ok; 2 a L2 failed; 50 a L2 ok", 3, "!", ""),
    ("1 a L2 ok; 1 a L3 ok; 50 a L3 ok", 2, "L3", ""),
    ("1 a L3 failed; 1 b L2 ok; 50 a L3 ok", 2, "!", "L2"),
    ("1 a L2 ok; 50 a L2 failed", 2, "!", ""),
    ("1 a L2 ok; 50 b L3 failed; 1 a L3 ok", 2, "L2", "!"),
    ("10 a L2 failed; 5 a L2 ok", 11, "!", ""),
]


def states_of(proofs: list[Proof], now: float) -> dict[str, CopyState]:
    return copy_states(sealing_id(100), proofs, day(now), POLICY)


def word(state: CopyState | None) -> str:
    if state is None:
        return ""
    if state.failure is not None:
        assert state.level is None and state.lapses_at is None
        return "!"
    return "-" if state.level is None else state.level.name


@pytest.mark.parametrize(("events", "now", "a", "b"), JUDGED, ids=[f"{events} @ {now}" for events, now, _, _ in JUDGED])
def test_levels(events: str, now: float, a: str, b: str) -> None:
    proofs = proofs_in(events)
    for order in (proofs, proofs[::-1], [*proofs, *proofs]):
        states = states_of(order, now)
        assert (word(states.get(store_id("a"))), word(states.get(store_id("b")))) == (a, b)


def test_a_light_failure_that_outlives_its_repair_is_no_level() -> None:
    """L0 may lapse later than L2 by policy; what failed must not come back as a success then."""
    policy = AgePolicy({Level.L0: 30, Level.L2: 7})
    states = copy_states(sealing_id(100), proofs_in("1 a L0 failed; 2 a L2 ok"), day(12), policy)
    assert word(states[store_id("a")]) == "-"


def test_a_level_says_when_it_was_proved_and_when_it_lapses() -> None:
    states = states_of(proofs_in("1 a L4 ok; 5 a L2 ok"), 6)
    state = states[store_id("a")]
    assert (state.proved_at, state.lapses_at) == (proof(1, "a", Level.L4, OK).at, day(12))
    assert word(states_of(proofs_in("1 a L4 ok; 5 a L2 ok"), 12)[store_id("a")]) == "L4"


POINTS = [
    # proofs of 100 / of 200 / now / required / the point and its stores, best first
    ("1 a L3 ok", "1 a L3 ok", 2, "L3", "200 a"),
    ("1 a L3 ok", "", 2, "L3", "100 a"),
    ("1 a L3 ok", "1 a L2 ok", 2, "L3", "100 a"),
    ("1 a L3 ok", "1 a L2 ok", 2, "L2", "200 a"),
    ("1 a L3 ok", "1 a L3 ok; 2 a L2 failed", 3, "L3", "100 a"),
    ("1 a L3 ok", "1 a L3 ok; 1 b L2 ok; 2 a L2 failed", 3, "L3", "200 b"),
    ("1 b L3 ok; 1 a L2 ok", "", 2, "L3", "100 a b"),
    ("1 b L3 ok; 1 a L1 ok", "", 2, "L3", "100 b"),
    ("1 a L3 ok", "1 a L3 ok of another", 2, "L3", "100 a"),
    ("1 a L3 ok", "5 a L3 ok", 2, "L3", "100 a"),
    ("1 a L3 ok", "1 a L3 ok", 9, "L3", ""),
    ("", "", 2, "L0", ""),
]


@pytest.mark.parametrize(("of_100", "of_200", "now", "required", "expected"), POINTS)
def test_the_recovery_point(of_100: str, of_200: str, now: float, required: str, expected: str) -> None:
    proofs = proofs_in(of_100, 100) + proofs_in(of_200, 200)
    assert point_of(run_of(100, 200), proofs, now, Level.parse(required)) == expected


def point_of(state: RunState, proofs: list[Proof], now: float, required: Level = Level.L3, **more: object) -> str:
    decision = recovery_point(state, proofs, day(now), POLICY, required, **more)  # type: ignore[arg-type]  # as the tests give them
    if decision.point is None:
        return ""
    names = {store_id(name): name for name in "abc"}
    return " ".join([str(decision.point.commit.step), *(names[store] for store in decision.point.stores)])


BOTH = proofs_in("1 a L3 ok; 1 b L3 ok", 100) + proofs_in("1 a L3 ok; 1 b L3 ok", 200)


@pytest.mark.parametrize(
    ("state", "expected", "why"),
    [
        (run_of(100, 200), "200 a b", ""),
        (run_of(100, 200, quarantined=(200,)), "100 a b", "quarantined: looks odd"),
        (run_of(100, 200, quarantined=(100, 200)), "", "quarantined: looks odd"),
        (run_of(100, 200, orphaned=(200,)), "100 a b", ""),
        (run_of(100, 200, deleted=("200 a",)), "200 b", ""),
        (run_of(100, 200, deleted=("200 a", "200 b")), "100 a b", "no copy is at L3"),
    ],
)
def test_what_is_never_a_recovery_point(state: RunState, expected: str, why: str) -> None:
    assert point_of(state, BOTH, 2) == expected
    passed = recovery_point(state, BOTH, day(2), POLICY, Level.L3).passed_over
    assert [reason for _, reason in passed][:1] == ([reason for _, reason in passed if why in reason][:1] if why else [])


def test_a_point_at_or_below_a_step() -> None:
    assert point_of(run_of(100, 200), BOTH, 2, at_most_step=199) == "100 a b"
    assert point_of(run_of(100, 200), BOTH, 2, at_most_step=99) == ""


def test_a_point_among_the_stores_at_hand() -> None:
    proofs = proofs_in("1 a L3 ok; 1 b L3 ok", 100) + proofs_in("1 a L3 ok; 1 b L1 ok", 200)
    assert point_of(run_of(100, 200), proofs, 2, among=[store_id("b")]) == "100 b"
    assert point_of(run_of(100), proofs, 2, among=[store_id("b"), store_id("a")]) == "100 b a"
    assert point_of(run_of(100), proofs, 2, among=[store_id("c"), store_id("a"), store_id("b")]) == "100 a b"
    decision = recovery_point(run_of(100, 200), proofs, day(2), POLICY, Level.L3, among=[store_id("b")])
    assert [reason for _, reason in decision.passed_over] == ["its proved copies are in other stores"]


def test_the_later_of_two_commits_of_one_step_is_the_point() -> None:
    state = run_of(100, 200)
    older = state.commits[sealing_id(100)]
    state.commits[sealing_id(100)] = replace(older, step=200, seq=1)
    assert point_of(state, BOTH, 2) == "200 a b"
    assert recovery_point(state, BOTH, day(2), POLICY, Level.L3).point.commit.sealing == sealing_id(200)  # type: ignore[union-attr]


# Laws, over any history of two checkpoints in two stores.

EVENTS = st.builds(
    proof,
    st.integers(0, 100),
    st.sampled_from("ab"),
    st.sampled_from(Level),
    st.sampled_from([OK, OK, FAILED]),
    st.sampled_from([100, 200]),
    st.sampled_from(["", "", "", "other"]),
)
HISTORIES = st.lists(EVENTS, max_size=14)
LAWS = settings(max_examples=150, deadline=None)


def rank(state: CopyState | None) -> int:
    """Higher is better; a failure is worst."""
    if state is None or state.failure is not None or state.level is None:
        return -1
    return int(state.level)


def relevant(proofs: list[Proof], step: int = 100) -> list[Proof]:
    return [each for each in proofs if each.sealing == sealing_id(step) and each.manifest == manifest_id(step)]


@LAWS
@given(HISTORIES, st.integers(0, 100))
def test_every_level_has_its_witnesses(history: list[Proof], now: int) -> None:
    """Own bytes fresh, content fresh, no failure that nothing newer made up for: said anew, without the fold that is under test."""
    moment = day(now)
    proofs = relevant(history)
    for store, state in states_of(proofs, now).items():
        own = [each for each in proofs if each.store == store]
        past = [each for each in own if each.result == OK and parse_utc(each.at) <= moment]
        standing = [
            bad
            for bad in own
            if bad.result == FAILED and not any(good.at > bad.at and good.level >= max(Level.L2, bad.level) for good in past)
        ]
        assert bool(standing) == (state.failure is not None)
        if state.level is None:
            continue
        if state.level >= Level.L2:
            assert any(each.level >= Level.L2 and parse_utc(each.at) >= moment - timedelta(days=7) for each in past)
        else:
            assert any(each.level == state.level and parse_utc(each.at) >= moment - timedelta(days=7) for each in past)
        if state.level >= Level.L3:
            age = POLICY.max_age(state.level)
            of_level = [each for each in proofs if each.level == state.level and (each.result == FAILED or parse_utc(each.at) <= moment)]
            newest = max(of_level, key=lambda each: (each.at, each.result == FAILED))
            assert newest.result == OK and parse_utc(newest.at) >= moment - age
        assert state.lapses_at is not None and state.lapses_at >= moment


@LAWS
@given(HISTORIES, st.integers(0, 100), st.randoms(use_true_random=False))
def test_replays_and_order_change_nothing(history: list[Proof], now: int, chance) -> None:  # type: ignore[no-untyped-def]  # hypothesis' own
    proofs = relevant(history)
    replayed = proofs + [each for each in proofs if chance.random() < 0.5]
    chance.shuffle(replayed)
    again = states_of(replayed, now)
    for store, state in states_of(proofs, now).items():
        assert (word(again[store]), again[store].lapses_at) == (word(state), state.lapses_at)


@LAWS
@given(HISTORIES, st.integers(0, 100), st.integers(0, 13))
def test_a_success_that_is_lost_never_improves_a_copy(history: list[Proof], now: int, index: int) -> None:
    proofs = relevant(history)
    successes = [each for each in proofs if each.result == OK]
    if not successes:
        return
    lost = successes[index % len(successes)]
    before = states_of(proofs, now)
    after = states_of([each for each in proofs if each is not lost], now)
    for store in before:
        assert rank(after.get(store)) <= rank(before[store])


@LAWS
@given(HISTORIES, st.integers(0, 100), st.sampled_from("ab"), st.sampled_from(Level))
def test_a_new_failure_never_improves_a_copy_and_fells_its_own(history: list[Proof], now: int, store: str, level: Level) -> None:
    proofs = relevant(history)
    before = states_of(proofs, now)
    after = states_of([*proofs, proof(now, store, level, FAILED)], now)
    for each, state in before.items():
        assert rank(after[each]) <= rank(state)
    assert after[store_id(store)].failure is not None


@LAWS
@given(HISTORIES, st.integers(0, 100), st.integers(0, 60))
def test_time_alone_never_improves_a_copy(history: list[Proof], now: int, later: int) -> None:
    proofs = [each for each in relevant(history) if parse_utc(each.at) <= day(now)]
    before, after = states_of(proofs, now), states_of(proofs, now + later)
    for store, state in before.items():
        assert rank(after[store]) <= rank(state)


@LAWS
@given(HISTORIES, st.integers(0, 100))
def test_success_from_the_future_counts_for_nothing(history: list[Proof], now: int) -> None:
    proofs = relevant(history)
    without = [each for each in proofs if each.result == FAILED or parse_utc(each.at) <= day(now)]
    seen = states_of(without, now)
    assert {store: word(state) for store, state in states_of(proofs, now).items() if store in seen} == {
        store: word(state) for store, state in seen.items()
    }


@LAWS
@given(
    HISTORIES,
    st.integers(0, 100),
    st.sampled_from(Level),
    st.sets(st.sampled_from([100, 200])),
    st.sets(st.sampled_from([100, 200])),
    st.sets(st.sampled_from(["100 a", "100 b", "200 a", "200 b"])),
)
def test_the_point_is_the_newest_that_may_be_one(
    history: list[Proof], now: int, required: Level, quarantined: set[int], orphaned: set[int], deleted: set[str]
) -> None:
    state = run_of(100, 200, quarantined=tuple(quarantined), orphaned=tuple(orphaned), deleted=tuple(deleted))
    expected = ""
    for step in (200, 100):
        if step in quarantined or step in orphaned or expected:
            continue
        states = copy_states(sealing_id(step), relevant(history, step), day(now), POLICY)
        good = sorted(
            (-rank(copy), store, name)
            for name in "ab"
            if f"{step} {name}" not in deleted
            for store, copy in states.items()
            if store == store_id(name) and rank(copy) >= required
        )
        if good:
            expected = " ".join([str(step), *(name for _, _, name in good)])
    assert point_of(state, history, now, required) == expected
