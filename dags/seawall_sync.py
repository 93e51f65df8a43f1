"""Take every run's newest checkpoint to its stores, hourly and whenever training says that one is ready.

Runs come from seawall.toml when the DAG runs. An unchanged run costs a few requests; an incomplete checkpoint is skipped until it is
finished; a run or a store that fails does not hold up the others.
"""

from datetime import UTC, datetime

from airflow.sdk import DAG, AssetOrTimeSchedule, CronDataIntervalTimetable, Param, TriggerRule, task

from seawall.operators.assets import CHECKPOINT_READY, SYNCED
from seawall.operators.notifiers import AlertmanagerNotifier, DingTalkNotifier
from seawall.operators.roles import task_arguments
from seawall.operators.runs import ListRunsOperator
from seawall.operators.sync import CommitOperator, FillOperator, PlanSyncOperator, SealBatchOperator
from seawall.operators.work import batches_to_seal, copies_to_fill, fail_with_upstream, sealings_to_commit

with DAG(
    dag_id="seawall_sync",
    # A bare cron string would give a window of no length.
    schedule=AssetOrTimeSchedule(timetable=CronDataIntervalTimetable("0 * * * *", timezone="UTC"), assets=[CHECKPOINT_READY]),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=task_arguments("writer"),
    params={"run": Param("", type="string", title="Run", description="Only this run; empty for all of seawall.toml.")},
    on_failure_callback=[AlertmanagerNotifier(), DingTalkNotifier()],
    on_success_callback=[AlertmanagerNotifier(resolved=True)],
    tags=["seawall"],
    doc_md=__doc__,
) as dag:
    runs = ListRunsOperator(task_id="runs", run="{{ params.run }}", trained_here=True)
    plan = PlanSyncOperator.partial(task_id="plan", map_index_template="{{ task.run }}").expand(run=runs.output)
    batches = task(task_id="batches", trigger_rule=TriggerRule.ALL_DONE)(batches_to_seal)(plan.output)
    seal = SealBatchOperator.partial(task_id="seal", map_index_template="{{ task.run }} {{ task.batch }}").expand_kwargs(batches)
    sealings = task(task_id="sealings", trigger_rule=TriggerRule.ALL_DONE)(sealings_to_commit)(plan.output)
    commit = CommitOperator.partial(
        task_id="commit", map_index_template="{{ task.run }}", outlets=[SYNCED], trigger_rule=TriggerRule.ALL_DONE
    ).expand_kwargs(sealings)
    lacking = task(task_id="lacking", trigger_rule=TriggerRule.ALL_DONE)(copies_to_fill)(commit.output)
    fill = FillOperator.partial(
        task_id="fill", map_index_template="{{ task.run }} {{ task.store }}", outlets=[SYNCED], trigger_rule=TriggerRule.ALL_DONE
    ).expand_kwargs(lacking)
    seal >> commit
    [plan, seal, commit, fill] >> task(task_id="failed", trigger_rule=TriggerRule.ONE_FAILED)(fail_with_upstream)()
