"""The DAG files: they load without an error or a deprecated import, mean the same each time, and ask for what a task may count on."""

import json
import subprocess
import sys
import warnings
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction

from seawall.operators.window import window
from tests.airflow.conftest import CHECKOUT

DAGS = ("seawall_archive", "seawall_audit", "seawall_restore", "seawall_retention", "seawall_sync", "seawall_verify")


def load(folder: Path) -> DagBag:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Airflow's own modules warn about each other; ours may not use what is deprecated.
        warnings.filterwarnings("ignore", module=r"airflow\.(?!sdk).*")
        return DagBag(dag_folder=str(folder))


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return load(CHECKOUT / "dags")


def tasks(bag: DagBag) -> list[Any]:
    return [task for dag in bag.dags.values() for task in dag.tasks]


def test_every_file_loads_and_holds_one_dag(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert sorted(bag.dags) == list(DAGS)
    assert {Path(dag.fileloc).stem: name for name, dag in bag.dags.items()} == {name: name for name in DAGS}


def test_what_is_deprecated_would_be_found(tmp_path: Path) -> None:
    """The control of the test above."""
    (tmp_path / "old.py").write_text("from airflow.models.baseoperator import BaseOperator  # dag airflow\n")
    assert "DeprecatedImportWarning" in str(load(tmp_path).import_errors)


def test_parsing_twice_gives_the_same_dag(bag: DagBag) -> None:
    """A difference would be a new version of the DAG with every parse (apache/airflow issues 56471 and 63334)."""
    again = load(CHECKOUT / "dags")
    for name, dag in bag.dags.items():
        first, second = (json.dumps(DagSerialization.to_dict(one), sort_keys=True) for one in (dag, again.dags[name]))
        assert first == second
        assert "/seawall.toml" not in first, "what a host has is known when a task runs"


def test_parsing_reads_no_configuration_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEAWALL_CONFIG", "/nowhere/seawall.toml")
    monkeypatch.setenv("AIRFLOW__SEAWALL__CONFIG", "/nowhere/either.toml")
    assert load(CHECKOUT / "dags").import_errors == {}


def test_every_task_is_tried_again_and_ends(bag: DagBag) -> None:
    for task in tasks(bag):
        assert task.retries >= 2, task.task_id
        assert task.execution_timeout is not None and task.execution_timeout <= timedelta(minutes=30), task.task_id
        assert task.pool == "default_pool"


ROLES = {
    "seawall_sync": "writer",
    "seawall_archive": "writer",
    "seawall_verify": "verifier",
    "seawall_audit": "verifier",
    "seawall_retention": "operator",
    "seawall_restore": "restorer",
}
OF_ANOTHER = {
    ("seawall_verify", "mend.heal"): "writer",
    ("seawall_archive", "verify"): "verifier",
    ("seawall_archive", "sign"): "verifier",
}
"""Tasks that need another key than the rest of their DAG."""


@pytest.mark.parametrize("role", sorted(set(ROLES.values())))
def test_pools_and_queues_follow_the_configuration(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"AIRFLOW__SEAWALL__{role.upper()}_POOL", f"seawall_{role}")
    monkeypatch.setenv(f"AIRFLOW__SEAWALL__{role.upper()}_QUEUE", f"{role}s")
    for task in tasks(load(CHECKOUT / "dags")):
        own = OF_ANOTHER.get((task.dag_id, task.task_id), ROLES[task.dag_id]) == role
        assert (task.pool == f"seawall_{role}", task.queue == f"{role}s") == (own, own), (task.dag_id, task.task_id)


@pytest.mark.parametrize(
    ("dag", "length"),
    [("seawall_sync", timedelta(hours=1)), *((dag, timedelta(days=1)) for dag in DAGS if dag not in ("seawall_restore", "seawall_sync"))],
)
def test_an_hour_is_an_hour(bag: DagBag, dag: str, length: timedelta) -> None:
    """Airflow 3 makes of a cron string windows of no length (apache/airflow issues 50172 and 52145)."""
    timetable = DagSerialization.from_dict(DagSerialization.to_dict(bag.dags[dag])).timetable
    restriction = TimeRestriction(earliest=pendulum.datetime(2026, 1, 1), latest=None, catchup=True)
    first = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    assert first is not None and first.data_interval is not None
    assert first.data_interval.end - first.data_interval.start == length
    then = timetable.next_dagrun_info(last_automated_data_interval=first.data_interval, restriction=restriction)
    assert then is not None and then.data_interval is not None
    assert then.data_interval.start == first.data_interval.end


def test_runs_without_an_interval_have_a_window() -> None:
    asked = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    run = SimpleNamespace(run_after=asked, run_type="asset_triggered")
    assert window({"dag_run": run}) == (asked - timedelta(hours=1), asked)
    assert window({"dag_run": run, "data_interval_start": None, "data_interval_end": None}) == (asked - timedelta(hours=1), asked)
    start, end = datetime(2026, 3, 1, 11, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert window({"dag_run": run, "data_interval_start": start, "data_interval_end": end}) == (start, end)


def test_the_assets_are_those_that_training_announces(bag: DagBag) -> None:
    from seawall.operators.assets import CHECKPOINT_READY
    from seawall.training.airflow_events import DEFAULT_ASSET

    assert CHECKPOINT_READY.name == DEFAULT_ASSET
    assert "checkpoint_ready" in json.dumps(DagSerialization.to_dict(bag.dags["seawall_sync"]))


def asked(bag: DagBag, **answers: Any) -> dict[str, Any]:
    """What a task gets when the form is sent with these answers."""
    form = deepcopy(bag.dags["seawall_restore"].params)
    form.update(answers)
    return form.validate()


def test_the_form_of_a_restore(bag: DagBag) -> None:
    assert set(bag.dags["seawall_restore"].params) == {"run", "target", "step", "level", "store", "unproved", "quarantined"}
    whole = asked(bag, run="gpt", target="/mnt/back", level="L3", step=7)
    assert (whole["step"], whole["level"], whole["store"], whole["unproved"]) == (7, "L3", None, False)
    missing: list[dict[str, Any]] = [{}, {"run": "gpt"}, {"run": "", "target": "/x"}]
    wrong: list[dict[str, Any]] = [{"step": -1}, {"step": "7"}, {"level": "L9"}, {"unproved": "yes"}, {"store": 3}]
    for answers in [*missing, *({"run": "gpt", "target": "/x", **one} for one in wrong)]:
        with pytest.raises(ParamValidationError):
            asked(bag, **answers)


def test_parsing_brings_nothing_heavy() -> None:
    """A DAG processor parses all day; what tasks need is imported by tasks."""
    program = (
        "import sys\n"
        "from airflow.dag_processing.dagbag import DagBag\n"
        "from airflow.sdk import DAG, AssetOrTimeSchedule, task\n"
        "before = set(sys.modules)\n"
        "bag = DagBag(dag_folder=sys.argv[1])\n"
        f"assert len(bag.dags) == {len(DAGS)} and not bag.import_errors\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    done = subprocess.run([sys.executable, "-c", f"import json\n{program}", str(CHECKOUT / "dags")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    brought = set(json.loads(done.stdout.splitlines()[-1]))
    assert {name.split(".")[1] for name in brought if name.startswith("seawall.")} == {"errors", "operators"}
    assert {name.split(".")[0] for name in brought} & {
        "boto3",
        "botocore",
        "numpy",
        "torch",
        "zstandard",
        "awscrt",
        "cryptography",
    } == set()
