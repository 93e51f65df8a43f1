"""The integrity matrix: prove the copies of every run, judge them, and set in motion what the verdicts call for.

Runs after each sync, and daily, because proofs lapse. Copies are read back by mapped tasks; one task a run signs what they found. Then
the matrix is computed: a damaged copy is healed from the others and proved again, a suspect checkpoint is quarantined, a late one is
caught up with. Where all is well the responses are skipped. The DAG run fails while a person has to look.
"""

from datetime import UTC, datetime

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, AssetOrTimeSchedule, CronDataIntervalTimetable, Param, TaskGroup, TriggerRule, task

from seawall.operators.assets import SYNCED
from seawall.operators.matrix import MatrixOperator, SettleOperator
from seawall.operators.notifiers import AlertmanagerNotifier, DingTalkNotifier
from seawall.operators.respond import HealOperator, RespondOperator
from seawall.operators.roles import task_arguments
from seawall.operators.runs import ListRunsOperator
from seawall.operators.verify import CertifyOperator, DueCopiesOperator, VerifyOperator
from seawall.operators.work import (
    copies_to_heal,
    copies_to_prove,
    copies_to_verify,
    fail_with_upstream,
    runs_to_mark,
    runs_to_settle,
    syncs_to_start,
)

DONE = TriggerRule.ALL_DONE

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
        "budget": Param(
            "1TB",
            type="string",
            title="Bytes",
            description="Stop after so many bytes a run, such as 500GB; what is left comes with the next DAG run. Empty: no bound.",
        ),
        "step": Param(
            "",
            type="string",
            pattern="^(newest|[0-9]*)$",
            title="Step",
            description="The copies of this checkpoint too, whenever they were read back last: a step, or: newest.",
        ),
    },
    on_failure_callback=[AlertmanagerNotifier(), DingTalkNotifier()],
    on_success_callback=[AlertmanagerNotifier(resolved=True)],
    tags=["seawall"],
    doc_md=__doc__,
) as dag:
    runs = ListRunsOperator(task_id="runs", run="{{ params.run }}")
    due = DueCopiesOperator.partial(
        task_id="due",
        map_index_template="{{ task.run }}",
        level="{{ params.level }}",
        budget="{{ params.budget }}",
        step="{{ params.step }}",
    ).expand(run=runs.output)
    copies = task(task_id="copies", trigger_rule=DONE)(copies_to_verify)(due.output)
    verify = VerifyOperator.partial(task_id="verify", map_index_template="{{ task.run }} {{ task.store }}").expand_kwargs(copies)
    certify = CertifyOperator.partial(
        task_id="certify", map_index_template="{{ task.run }}", results=verify.output, trigger_rule=DONE
    ).expand(run=runs.output)
    matrix = MatrixOperator.partial(task_id="matrix", map_index_template="{{ task.run }}", trigger_rule=DONE).expand(run=runs.output)
    certify >> matrix

    with TaskGroup("mend"):
        damaged = task(task_id="damaged", trigger_rule=DONE)(copies_to_heal)(matrix.output)
        heal = HealOperator.partial(
            task_id="heal", map_index_template="{{ task.run }} {{ task.store }}", **task_arguments("writer")
        ).expand_kwargs(damaged)
        healed = task(task_id="healed", trigger_rule=DONE)(copies_to_prove)(heal.output)
        prove = VerifyOperator.partial(task_id="prove", map_index_template="{{ task.run }} {{ task.store }}").expand_kwargs(healed)
        sign = CertifyOperator(task_id="sign", run="", results=prove.output, trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)

    with TaskGroup("mark"):
        suspect = task(task_id="suspect", trigger_rule=DONE)(runs_to_mark)(matrix.output)
        respond = RespondOperator.partial(task_id="respond", map_index_template="{{ task.run }}").expand(run=suspect)

    with TaskGroup("catch_up"):
        late = task(task_id="late", trigger_rule=DONE)(syncs_to_start)(matrix.output)
        sync = TriggerDagRunOperator.partial(
            task_id="sync", trigger_dag_id="seawall_sync", logical_date=None, skip_when_already_exists=True
        ).expand_kwargs(late)

    touched = task(task_id="touched", trigger_rule=DONE)(runs_to_settle)(matrix.output)
    settle = SettleOperator.partial(task_id="settle", map_index_template="{{ task.run }}", trigger_rule=DONE).expand_kwargs(touched)
    [sign, respond] >> settle
    [due, verify, certify, matrix, heal, prove, sign, respond, sync, settle] >> task(task_id="failed", trigger_rule=TriggerRule.ONE_FAILED)(
        fail_with_upstream
    )()
