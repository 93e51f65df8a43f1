"""Report, day by day, what was proved of the checkpoints that every run committed: signed, written once, and the same whenever it is made.

A run at 07:00 (UTC) reports the day that ended seven hours before: what is proved up to six hours after a day's end counts, and clocks may
differ by one. Days that are missing are filled in with a backfill, and days that are there are made again and compared; a difference
fails the run. A backfill sends nothing to anybody, and nothing is ever moved.
"""

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, TriggerRule, task

from seawall.operators.audit import AuditOperator
from seawall.operators.notifiers import AlertmanagerNotifier, DingTalkNotifier
from seawall.operators.roles import task_arguments
from seawall.operators.runs import ListRunsOperator
from seawall.operators.work import fail_with_upstream

_MORE = "Another interval than the run's own"

with DAG(
    dag_id="seawall_audit",
    # The hour is that of seawall.audit.terms.DELAY, so that the interval of a report is a day from midnight to midnight.
    schedule=CronDataIntervalTimetable("0 7 * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=4,
    default_args=task_arguments("verifier"),
    params={
        "run": Param("", type="string", title="Run", description="Only this run; empty for all of seawall.toml."),
        "start": Param("", type="string", title="Start", description="A day, or a moment with its zone.", section=_MORE),
        "end": Param("", type="string", title="End", description="The same; not part of the interval.", section=_MORE),
    },
    on_failure_callback=[AlertmanagerNotifier(), DingTalkNotifier()],
    on_success_callback=[AlertmanagerNotifier(resolved=True)],
    tags=["seawall"],
    doc_md=__doc__,
) as dag:
    runs = ListRunsOperator(task_id="runs", run="{{ params.run }}", in_the_past=True)
    report = AuditOperator.partial(
        task_id="report", map_index_template="{{ task.run }}", start="{{ params.start }}", end="{{ params.end }}"
    ).expand(run=runs.output)
    [runs, report] >> task(task_id="failed", trigger_rule=TriggerRule.ONE_FAILED)(fail_with_upstream)()
