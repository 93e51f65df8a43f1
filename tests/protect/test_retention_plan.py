"""The tables of tests/protect/retention, and what is common to all of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from seawall.protect.retention_facts import RunFacts
from seawall.protect.retention_plan import decide
from seawall.protect.retention_settings import RetentionSettings
from tests.protect.retention_tables import Table, read_table

TABLES = sorted((Path(__file__).parent / "retention").glob("*.md"))


@pytest.fixture(params=TABLES, ids=lambda path: path.stem)
def table(request: pytest.FixtureRequest) -> Table:
    return read_table(request.param)


def test_each_checkpoint_is_dealt_with_as_its_row_says(table: Table) -> None:
    decision = decide(table.facts, table.policy)
    assert len(decision.stopped) == len(table.stopped), decision.stopped
    for found, words in zip(decision.stopped, table.stopped, strict=True):
        assert words in found
    keep = {kept.step: kept for kept in decision.keep}
    for point in table.facts.points:
        expected = table.expected[point.step]
        verdict, *stores = expected.verdict.split()
        if verdict in ("keep", "KEEP"):
            assert point.step in keep, point.step
            assert keep[point.step].protected is (verdict == "KEEP"), keep[point.step]
            assert any(expected.because in reason for reason in keep[point.step].reasons), keep[point.step]
            continue
        assert point.step not in keep, keep.get(point.step)
        going = [deletion for deletion in decision.delete if deletion.sealing == point.sealing]
        wanted = stores or ([copy.store for copy in point.copies] if verdict == "delete" else [])
        assert [deletion.store for deletion in going] == wanted, point.step
        assert all(expected.because in deletion.reason for deletion in going)


def test_whatever_is_said_of_the_source_nothing_is_asked_about_it() -> None:
    """An empty or shrunken folder of training cannot delete anything: there is no fact to say it with."""
    assert not {"source", "sources", "paths", "folder"} & set(RunFacts.__dataclass_fields__)


def test_the_same_facts_in_any_order_give_the_same_plan(table: Table) -> None:
    turned = replace(table.facts, points=table.facts.points[::-1], sites=table.facts.sites[::-1])
    assert decide(turned, table.policy) == decide(table.facts, table.policy)


def test_an_empty_run_deletes_nothing() -> None:
    facts = read_table(TABLES[0]).facts
    decision = decide(replace(facts, points=(), begun_at=None), RetentionSettings())
    assert decision.delete == () and decision.keep == ()


@pytest.mark.parametrize(
    "given",
    [
        {"keep_last": 0},
        {"min_copies": 1},
        {"min_level": "L1"},
        {"min_level": "L9"},
        {"detection_days": 0},
        {"cooling_off_hours": 0},
        {"keep": 7},
    ],
)
def test_settings_that_would_not_protect_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"validation error"):
        RetentionSettings.model_validate(given)
