"""Prove the copies of every run's newest checkpoint: after each sync, and daily, because proofs lapse.

Copies are read back by mapped tasks; one task a run signs what they found. A damaged copy is signed as such, and makes the DAG run
fail.
"""

from datetime import UTC, datetime

from airflow.sdk import DAG, AssetOrTimeSchedule, CronDataIntervalTimetable, Param, TriggerRule, task

from seawall.operators.assets import SYNCED
from seawall.operators.roles import task_arguments
from seawall.operators.runs import ListRunsOperator
from seawall.operators.verify import CertifyOperator, DueCopiesOperator, VerifyOperator
from seawall.operators.work import copies_to_verify, fail_with_upstream

with DAG(
    dag_id="seawall_verify",
    schedule=AssetOrTimeSchedule(timetable=CronDataIntervalTimetable("30 3 * * *", timezone="UTC"), assets=[SYNCED]),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=task_arguments("verifier"),
    params={
        "run": Param("", type="string", title="Run", description="Only this run; empty for all of seawall.toml."),
        "level": Param("", enum=["", "L0", "L1", "L2", "L3", "L4"], title="Level", description="Empty: the highest that the keys allow."),
        "every_hours": Param(
            20, type="integer", minimum=0, title="Hours", description="Leave out what was looked at since; 0 for nothing."
        ),
    },
    tags=["seawall"],
    doc_md=__doc__,
) as dag:
    runs = ListRunsOperator(task_id="runs", run="{{ params.run }}")
    due = DueCopiesOperator.partial(
        task_id="due", map_index_template="{{ task.run }}", level="{{ params.level }}", every_hours="{{ params.every_hours }}"
    ).expand(run=runs.output)
    copies = task(task_id="copies", trigger_rule=TriggerRule.ALL_DONE)(copies_to_verify)(due.output)
    verify = VerifyOperator.partial(
        task_id="verify", map_index_template="{{ task.run }} {{ task.store }}", level="{{ params.level }}"
    ).expand_kwargs(copies)
    certify = CertifyOperator.partial(
        task_id="certify", map_index_template="{{ task.run }}", results=verify.output, trigger_rule=TriggerRule.ALL_DONE
    ).expand(run=runs.output)
    [due, verify, certify] >> task(task_id="failed", trigger_rule=TriggerRule.ONE_FAILED)(fail_with_upstream)()
