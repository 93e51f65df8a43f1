"""Copy every run's newest proved checkpoint into its archive once a day, sealed as it is, and read it back there.

Runs with an ``archive`` in seawall.toml take part. A large checkpoint goes in parts, each a task of its own. What is archived already is
not sent again; a run about the past archives nothing. What the archive keeps is decided by seawall_retention.
"""

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, TriggerRule, task

from seawall.operators.archive import ArchiveOperator, ArchivePartOperator, PlanArchiveOperator
from seawall.operators.notifiers import AlertmanagerNotifier, DingTalkNotifier
from seawall.operators.roles import task_arguments
from seawall.operators.runs import ListRunsOperator
from seawall.operators.verify import CertifyOperator, VerifyOperator
from seawall.operators.work import archived_to_prove, fail_with_upstream, parts_to_archive, sealings_to_archive

DONE = TriggerRule.ALL_DONE

with DAG(
    dag_id="seawall_archive",
    schedule=CronDataIntervalTimetable("30 3 * * *", timezone="UTC"),
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
    runs = ListRunsOperator(task_id="runs", run="{{ params.run }}")
    plan = PlanArchiveOperator.partial(task_id="plan", map_index_template="{{ task.run }}").expand(run=runs.output)
    parts = task(task_id="parts", trigger_rule=DONE)(parts_to_archive)(plan.output)
    copy = ArchivePartOperator.partial(task_id="copy", map_index_template="{{ task.run }} {{ task.first }}").expand_kwargs(parts)
    sealings = task(task_id="sealings", trigger_rule=DONE)(sealings_to_archive)(plan.output)
    archive = ArchiveOperator.partial(task_id="archive", map_index_template="{{ task.run }}", trigger_rule=DONE).expand_kwargs(sealings)
    copy >> archive
    copies = task(task_id="copies", trigger_rule=DONE)(archived_to_prove)(archive.output)
    verify = VerifyOperator.partial(
        task_id="verify", map_index_template="{{ task.run }} {{ task.store }}", level="L2", **task_arguments("verifier")
    ).expand_kwargs(copies)
    sign = CertifyOperator(
        task_id="sign", run="", results=verify.output, trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS, **task_arguments("verifier")
    )
    [runs, plan, copy, archive, verify, sign] >> task(task_id="failed", trigger_rule=TriggerRule.ONE_FAILED)(fail_with_upstream)()
