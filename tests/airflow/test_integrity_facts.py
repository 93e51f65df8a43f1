"""What the integrity page shows follows from the facts: of many copies as of few, of earlier days as of now."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from seawall.clock import utc_text
from seawall.log.floor import Freshness
from seawall.log.read import LogView
from seawall.log.state import Done, Mark, RunState
from seawall.plugins import warm
from seawall.plugins.earlier import History, columns
from seawall.plugins.integrity import DAYS, PAGE, Filter
from seawall.plugins.warm import Facts, judge_all
from seawall.verify.cells import MatrixPolicy
from seawall.verify.certify import KnownProofs
from seawall.verify.configuration import MatrixSettings
from seawall.verify.folded_facts import Asked, fold_facts
from seawall.verify.judge import judge
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.matrix import WORST_FIRST, Dimension, Matrix, Verdict
from seawall.verify.matrix_facts import RunFacts, StoreFacts
from seawall.verify.proofs import Proof
from tests.airflow.long_run import LongRun
from tests.log.actors import KEYS, hexed

NOW = datetime(2026, 5, 20, 15, 30, tzinfo=UTC)
STORES = {"a": hexed("store a", 16), "c": hexed("store c", 16)}
POLICY = MatrixPolicy(AgePolicy(), MatrixSettings())


def facts_of(run: LongRun, state: RunState | None = None, proofs: Sequence[Proof] | None = None) -> Facts:
    known = KnownProofs(tuple(run.proofs() if proofs is None else proofs))
    stores = tuple(StoreFacts(id, name, fault_domain=name) for name, id in STORES.items())
    return Facts(LogView(state or run.state(), "c"), Freshness.PROVED, known, {}, stores, frozenset(), POLICY, Level.L3)


def whole_matrix(facts: Facts, moment: datetime) -> Matrix:
    """Without the plugin: everything folded and judged at once."""
    asked = Asked(fresh=True)
    return judge(fold_facts(facts.view.state, facts.known.proofs, facts.stores, moment, POLICY.ages, asked), moment, POLICY)


def test_every_copy_is_judged_as_the_whole_matrix_judges_it() -> None:
    facts = facts_of(LongRun(600, NOW, STORES))
    found = judge_all(facts, NOW)
    whole = whole_matrix(facts, NOW)
    assert [(copy.commit.sealing, copy.store.id, copy.verdicts) for copy in found.copies] == [
        (row.sealing, row.store.id, tuple(cell.verdict for cell in row.cells.values())) for row in whole.rows
    ]
    assert sum(sum(counts.values()) for key, counts in found.counts.items() if key is not None) == sum(whole.counts().values())
    assert found.counts[None][Verdict.FAILED] == sum(row.verdict is Verdict.FAILED for row in whole.rows) > 0
    shown = found.copies[250:300]
    (rows,) = found.rows(shown, [NOW])
    of_whole = {(row.sealing, row.store.id): row for row in whole.rows}
    assert all(rows[copy.commit.sealing, copy.store.id][1] == of_whole[copy.commit.sealing, copy.store.id] for copy in shown)


def test_a_page_of_ten_thousand_copies_judges_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted and not timed: all copies once, then fifty in fourteen columns."""
    judged: list[int] = []

    def counting(facts: RunFacts, now: datetime, policy: MatrixPolicy) -> Matrix:
        judged.append(len(facts.copies))
        return judge(facts, now, policy)

    monkeypatch.setattr(warm, "judge", counting)
    run = LongRun(5000, NOW, STORES, timedelta(minutes=20))
    facts = facts_of(run)
    found = judge_all(facts, NOW)
    assert sum(judged) == len(found.copies) == 10_000
    judged.clear()
    moments = columns(NOW, DAYS)
    begun = time.process_time()
    columns_found = found.rows(found.copies[4000 : 4000 + PAGE], moments)
    print(f"50 of 10,000 copies in 14 columns, from warm facts: {time.process_time() - begun:.2f} s of CPU")
    assert len(judged) == DAYS and sum(judged) <= PAGE * DAYS
    assert len(columns_found[-1]) == PAGE
    needed = facts.history.around({copy.commit.sealing for copy in found.copies[4000 : 4000 + PAGE]}, facts.proofs, min(moments))
    assert len(needed) < 1200, "of 5,000 checkpoints: those of the page and the fortnight before it"


@pytest.mark.parametrize("days_ago", [0.4, 3, 9, 13])
def test_an_earlier_column_is_what_was_known_then(days_ago: float) -> None:
    """The history that ends at the moment and has nothing after it gives the same verdicts."""
    moment = NOW - timedelta(days=days_ago)
    run = LongRun(500, NOW, STORES)
    facts = facts_of(run)
    state = run.state()
    then = replace(
        state,
        commits={sealing: commit for sealing, commit in state.commits.items() if commit.stored_at and commit.stored_at <= utc_text(moment)},
        marks={op: mark for op, mark in state.marks.items() if mark.at <= utc_text(moment)},
        quarantined={sealing: ops for sealing, ops in state.quarantined.items() if state.marks[ops[0]].at <= utc_text(moment)},
    )
    alone = facts_of(run, then, [proof for proof in run.proofs() if proof.at <= utc_text(moment)])
    whole = {(row.sealing, row.store.id): row for row in whole_matrix(alone, moment).rows}
    everything = list(state.commits.values())
    (rows,) = facts.rows(everything, [moment], NOW)
    assert {key: row for key, (_, row) in rows.items()} == whole
    assert len(whole) < 2 * len(everything)


def test_a_lift_counts_in_a_column_only_when_a_later_entry_dates_it() -> None:
    run = LongRun(3, NOW, STORES)
    state = run.state()
    first = next(iter(state.commits.values()))
    at = run.begun(0) + timedelta(minutes=5)
    state.marks["q"] = Mark("q", first.sealing, "odd", 1, KEYS.operator.key_id, utc_text(at), lifted_by="l", lifted_why="it was not")
    state.done["l"] = Done(2, "")
    history = History(state)
    # The next entry with a time is the commit of the second checkpoint.
    since = history.known_since("l")
    assert since == run.begun(1) + timedelta(seconds=1)
    commits = list(state.commits.values())
    for moment, stands in ((at - timedelta(minutes=1), False), (at, True), (since - timedelta(minutes=1), True), (since, False)):
        assert (first.sealing in history.at(moment, commits).quarantined) is stands
    state.done["l"] = Done(9, "")
    assert History(state).known_since("l") is None, "nothing later tells"
    assert first.sealing in History(state).at(NOW - timedelta(seconds=1), commits).quarantined


def test_no_column_looks_better_than_the_history_that_it_is_of() -> None:
    """A copy that failed once is failed in each column from then on until a proof makes up for it, whatever is known today."""
    run = LongRun(300, NOW, STORES)
    facts = facts_of(run)
    damaged = [number for number in range(run.count) if run.damaged(number) and run.begun(number) < NOW - timedelta(days=2)]
    assert damaged
    failed_at = NOW - timedelta(days=2)
    moments = columns(NOW, DAYS)
    for number in damaged:
        commit = facts.view.state.commits[run.sealing(number)]
        for moment, rows in zip(moments, facts.rows([commit], moments, NOW), strict=True):
            if (commit.sealing, STORES["c"]) in rows:
                row = rows[commit.sealing, STORES["c"]][1]
                assert (row.cells[Dimension.FILE].verdict is Verdict.FAILED) is (moment >= failed_at)


def test_columns_are_midnights_and_now() -> None:
    found = columns(NOW, 4)
    assert [moment.isoformat() for moment in found] == [
        "2026-05-18T00:00:00+00:00", "2026-05-19T00:00:00+00:00", "2026-05-20T00:00:00+00:00", NOW.isoformat(),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("", None, None), ("1200", 1200, 1200), ("1000-2000", 1000, 2000), ("1000 - ", 1000, None), ("-2000", None, 2000)],
)
def test_steps_of_a_filter(text: str, first: int | None, last: int | None) -> None:
    found = Filter.parse("", "", text)
    assert (found.first_step, found.last_step) == (first, last)


def test_a_filter_takes_by_dimension_and_verdict() -> None:
    found = judge_all(facts_of(LongRun(600, NOW, STORES)), NOW)
    for verdict in WORST_FIRST:
        for dimension in (None, *Dimension):
            wanted = Filter.parse(verdict.value, dimension.value if dimension else "", "")
            assert sum(wanted.takes(copy) for copy in found.copies) == found.counts[dimension][verdict]
