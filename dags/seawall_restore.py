"""Rebuild a checkpoint from its copies, by hand: the newest that is proved to a level, or the one that is named."""

from datetime import UTC, datetime

from airflow.sdk import DAG, Param

from seawall.operators.restore import RestoreOperator
from seawall.operators.roles import task_arguments

_MORE = "Allow what is refused otherwise"

with DAG(
    dag_id="seawall_restore",
    schedule=None,
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    # Each try has half an hour and goes on by file where the last one stopped; a large checkpoint takes several.
    default_args={**task_arguments("restorer"), "retries": 24, "max_retry_delay": 300.0},
    # Parameters without a section stand in the one that the form shows open.
    params={
        "run": Param(type="string", minLength=1, title="Run"),
        "target": Param(
            type="string",
            minLength=1,
            title="Target",
            description="A path on the worker that does not exist. The checkpoint appears there when it is whole.",
        ),
        "step": Param(None, type=["null", "integer"], minimum=0, title="Step", description="Exactly this one."),
        "level": Param(
            None,
            type=["null", "string"],
            enum=[None, "L2", "L3", "L4", "L5"],
            values_display={"null": "the run's own"},
            title="Newest at level",
            description="Without a step: the newest that is proved to this.",
        ),
        "store": Param(None, type=["null", "string"], title="Store", description="Only from this one; its name in seawall.toml."),
        "unproved": Param(
            False, type="boolean", title="Unproved", description="The newest, although nothing is proved about it.", section=_MORE
        ),
        "quarantined": Param(False, type="boolean", title="Quarantined", description="Although it is quarantined.", section=_MORE),
    },
    tags=["seawall"],
    doc_md=__doc__,
) as dag:
    RestoreOperator(
        task_id="restore",
        run="{{ params.run }}",
        target="{{ params.target }}",
        step="{{ params.step if params.step is not none else '' }}",
        level="{{ params.level or '' }}",
        store="{{ params.store or '' }}",
        unproved="{{ params.unproved }}",
        quarantined="{{ params.quarantined }}",
    )
