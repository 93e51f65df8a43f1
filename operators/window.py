"""The stretch of time that a run of a DAG is about."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

BACKFILL = "backfill"
RERUN_WITHIN = timedelta(days=2)
"""How long after its interval's end a run may be run again and still act: last night's, by whoever is on call in the morning."""
FALLBACK = timedelta(hours=1)
"""Length of the window of a run without a data interval: that of the hourly DAGs."""


def window(context: Mapping[str, Any]) -> tuple[datetime, datetime]:
    """Start and end of the run's data interval.

    Runs that an asset or a person started have none (apache/airflow issues 58516 and 46194): they are about the hour that ended when
    they were asked for.
    """
    if has_interval(context):
        return context["data_interval_start"], context["data_interval_end"]
    run_after: datetime = context["dag_run"].run_after
    return run_after - FALLBACK, run_after


def has_interval(context: Mapping[str, Any]) -> bool:
    """Whether the run has a data interval: the clock or a backfill started it, or a person who named a date."""
    return context.get("data_interval_start") is not None and context.get("data_interval_end") is not None


def is_past(context: Mapping[str, Any], now: datetime) -> bool:
    """Whether the run is about the past: a backfill, or an old date that a person named or cleared. Such a run acts on nothing: what it
    would copy, prove or announce is the present."""
    run = context.get("dag_run")
    if run is not None and getattr(run, "run_type", None) == BACKFILL:
        return True
    if not has_interval(context):
        return False
    start, end = context["data_interval_start"], context["data_interval_end"]
    # One that is started by hand is about the last interval that is over, which may have ended as long ago as an interval takes.
    return bool(now - end > RERUN_WITHIN + (end - start))
