"""The task that makes a run's report: which interval it is about, and that it does the same when the past is filled in."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction

from seawall.audit.terms import audited
from seawall.operators.audit import AuditOperator
from seawall.operators.runs import ListRunsOperator
from tests.airflow.conftest import CHECKOUT
from tests.airflow.tasks import context
from tests.audit.past import DAY, FIRST_DAY, Past
from tests.protect.command_line import new_desk


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    past = Past(new_desk(tmp_path))
    past.begin()
    yield past


def report(past: Past, kind: str = "scheduled", day: int | None = None, asked: datetime | None = None, **more: Any) -> Any:
    """What the task makes of a run whose own interval began at 07:00 of a day, or that has none."""
    start = None if day is None else FIRST_DAY + day * DAY + timedelta(hours=7)
    interval = {} if start is None else {"data_interval_start": start, "data_interval_end": start + DAY}
    run = SimpleNamespace(run_type=kind, run_after=asked or (start and start + DAY))
    task = AuditOperator(task_id="report", run=past.run, seawall_config=str(past.desk.config), **more)
    return task.execute(context(dag_run=run, **interval))


def test_a_backfill_finds_what_the_day_itself_made(past: Past) -> None:
    reports = past.live(2)
    listed = past.desk.stored()
    for kind in ("scheduled", "backfill"):
        done = report(past, kind, day=1)
        assert (done["status"], done["record"]) == ("found", "2025-03-02T00-00-00Z")
        assert (done["counts"]["ok"], done["counts"]["checkpoints"]) == ("2", "1")
    assert past.desk.stored() == listed
    past.report_path(1).unlink()
    assert report(past, "backfill", day=1)["status"] == "written"
    assert past.report_path(1).read_bytes() == reports[1]
    assert past.desk.stored() == listed


def test_a_run_without_an_interval_is_about_the_last_day_that_is_over(past: Past) -> None:
    past.live(2)
    asked = FIRST_DAY + 2 * DAY + timedelta(hours=7)
    assert report(past, "manual", asked=asked)["start"] == "2025-03-02T00:00:00.000000Z"
    assert report(past, "manual", asked=asked - timedelta(minutes=1))["start"] == "2025-03-01T00:00:00.000000Z"
    assert report(past, "manual", asked=asked, start="2025-03-01", end="2025-03-03")["counts"]["checkpoints"] == "2"
    for wrong in ({"start": "2025-03-01"}, {"end": "2025-03-01"}, {"start": "x", "end": "y"}):
        with pytest.raises(AirflowFailException, match="UsageError"):
            report(past, "manual", asked=asked, **wrong)


def test_what_has_no_report_is_skipped_and_what_differs_fails(past: Past) -> None:
    past.live(1)
    with pytest.raises(AirflowSkipException, match="no log yet"):
        report(past, day=-9)
    with pytest.raises(AirflowSkipException, match="not over for long enough"):
        report(past, day=100_000)
    past.at(0, 12)
    past("verify")
    with pytest.raises(AirflowFailException, match="AuditDiffersError"):
        report(past, "backfill", day=0)


def test_the_runs_are_listed_for_the_past_only_where_nothing_acts(past: Past) -> None:
    filling = context(dag_run=SimpleNamespace(run_type="backfill", run_after=None))
    with pytest.raises(AirflowSkipException, match="backfill"):
        ListRunsOperator(task_id="runs", seawall_config=str(past.desk.config)).execute(filling)
    listing = context(
        dag_run=SimpleNamespace(run_type="backfill", run_after=FIRST_DAY), data_interval_start=FIRST_DAY, data_interval_end=FIRST_DAY + DAY
    )
    task = ListRunsOperator(task_id="runs", in_the_past=True, seawall_config=str(past.desk.config))
    assert past.run in task.execute(listing)


def test_the_schedule_audits_days_from_midnight_to_midnight() -> None:
    import pendulum

    dag = DagBag(dag_folder=str(CHECKOUT / "dags" / "seawall_audit.py")).dags["seawall_audit"]
    timetable = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable
    restriction = TimeRestriction(earliest=pendulum.datetime(2026, 1, 1), latest=None, catchup=True)
    first = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    assert first is not None and first.data_interval is not None
    interval = audited(first.data_interval.start, first.data_interval.end)
    assert (interval.start.hour, interval.start.minute, interval.end - interval.start) == (0, 0, DAY)
    assert interval.start.date() == first.data_interval.start.date(), "a date that is filled in is the day that is reported"
