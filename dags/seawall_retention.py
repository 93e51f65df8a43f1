"""Free what no rule keeps, and only that: a signed plan a day, and the deletion of what an operator approved after it has cooled off.

A plan is approved on the command line (`seawall retention approve`); no task does it. Nothing is deleted that is not on the plan, and every
copy is decided again right before it goes (docs/retention.md).
"""

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, TriggerRule, task

from seawall.operators.notifiers import AlertmanagerNotifier, DingTalkNotifier
from seawall.operators.retention import PlanRetentionOperator, RunRetentionOperator
from seawall.operators.roles import task_arguments
from seawall.operators.runs import ListRunsOperator
from seawall.operators.work import fail_with_upstream

with DAG(
    dag_id="seawall_retention",
    schedule=CronDataIntervalTimetable("30 5 * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=task_arguments("operator"),
    params={"run": Param("", type="string", title="Run", description="Only this run; empty for all of seawall.toml.")},
    on_failure_callback=[AlertmanagerNotifier(), DingTalkNotifier()],
    on_success_callback=[AlertmanagerNotifier(resolved=True)],
    tags=["seawall"],
    doc_md=__doc__,
) as dag:
    runs = ListRunsOperator(task_id="runs", run="{{ params.run }}")
    plan = PlanRetentionOperator.partial(task_id="plan", map_index_template="{{ task.run }}").expand(run=runs.output)
    delete = RunRetentionOperator.partial(task_id="delete", map_index_template="{{ task.run }}", trigger_rule=TriggerRule.ALL_DONE).expand(
        run=runs.output
    )
    plan >> delete
    [runs, plan, delete] >> task(task_id="failed", trigger_rule=TriggerRule.ONE_FAILED)(fail_with_upstream)()
