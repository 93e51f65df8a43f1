"""The DAGs under a real scheduler, on PostgreSQL: started by hand, by training, by the clock and for the past; and the plugin's routes.

One file, because all of it shares one Airflow, which takes the longest of it to start.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.airflow.instance import DAGS, Instance, processes_in, running_instance
from tests.protect.command_line import RUN
from tests.protect.little_site import tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
OPERATORS = ("runs", "plan", "seal", "commit", "fill")
"""Tasks of seawall_sync that act; the others turn lists into lists."""


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    with running_instance() as instance:
        yield instance


def committed(instance: Instance) -> list[int]:
    """Steps of the run's log, newest first."""
    return [row["step"] for row in instance.desk("copies", RUN, "--json").json["checkpoints"]]


def sealed(instance: Instance) -> int:
    """How many batches were sealed so far."""
    return sum(instance.tasks("seawall_sync", run["dag_run_id"])["seal"].count("success") for run in instance.runs("seawall_sync"))


def acting_runs(instance: Instance) -> int:
    """How many runs there are that may have written something."""
    return sum(run["run_type"] != "backfill" for dag in DAGS for run in instance.runs(dag))


def test_what_training_said_while_airflow_was_down_comes_with_its_next_word(instance: Instance) -> None:
    assert instance.notifier.waiting == 1, "of step 10, before Airflow ran"
    instance.tell(20)
    instance.wait("delivery", lambda: instance.notifier.waiting == 0)
    events = instance.get("/assets/events?limit=100")["asset_events"]
    assert {10, 20} <= {event["extra"]["step"] for event in events}
    # One that comes while a run is on its way may start none of its own (apache/airflow issue 56050); that run takes the newest.
    instance.wait("run", lambda: 10 in instance.steps_told("seawall_sync"))
    for run in instance.runs("seawall_sync", "asset_triggered"):
        assert instance.await_run("seawall_sync", run["dag_run_id"]) == "success"
        assert run["data_interval_start"] is None, "what window() is for"
    assert 20 in committed(instance)


def test_a_run_by_hand_commits_and_what_it_committed_is_proved(instance: Instance) -> None:
    instance.await_quiet()
    before = sealed(instance)
    instance.desk.save(30)
    run = instance.trigger("seawall_sync", run=RUN)
    assert instance.await_run("seawall_sync", run) == "success"
    states = instance.tasks("seawall_sync", run)
    assert (states["plan"], states["commit"], states["fill"]) == (["success"], ["success"], ["skipped"])
    assert committed(instance)[0] == 30
    # A run of an event that waited may have come first; then this one found it done.
    instance.await_quiet()
    assert sealed(instance) == before + 1
    instance.wait("run of seawall_verify", lambda: 30 in instance.steps_told("seawall_verify"))
    instance.await_quiet()
    point = instance.desk("copies", RUN, "--json").json["recovery_point"]
    assert (point["step"], point["level"], sorted(point["stores"])) == (30, "L4", ["a", "c"])


def test_the_clock_gives_a_window_of_an_hour(instance: Instance) -> None:
    # With catchup off, a DAG that is unpaused gets one run, for the last hour that is over.
    scheduled = instance.runs("seawall_sync", "scheduled")
    assert scheduled
    for run in scheduled:
        start, end = (datetime.fromisoformat(run[f"data_interval_{side}"]) for side in ("start", "end"))
        assert end - start == timedelta(hours=1)
        assert instance.await_run("seawall_sync", run["dag_run_id"]) == "success"


def test_the_restore_form_brings_a_checkpoint_back(instance: Instance) -> None:
    target = instance.desk.folder / "back"
    run = instance.trigger("seawall_restore", run=RUN, target=str(target))
    assert instance.await_run("seawall_restore", run) == "success"
    assert tree(target) == tree(instance.desk.checkpoints / "step_30")
    result = instance.get(f"/dags/seawall_restore/dagRuns/{run}/taskInstances/restore/xcomEntries/return_value")["value"]
    assert (result["step"], result["path"]) == (30, str(target))


@pytest.mark.parametrize(
    "conf",
    [{"run": RUN}, {"run": "", "target": "/x"}, {"run": RUN, "target": "/x", "level": "L9"}, {"run": RUN, "target": "/x", "step": -1}],
)
def test_a_restore_form_that_is_filled_in_wrong_is_refused(instance: Instance, conf: dict[str, object]) -> None:
    with pytest.raises(httpx.HTTPStatusError) as refused:
        instance.trigger("seawall_restore", **conf)
    assert refused.value.response.status_code == 400


def test_filling_in_the_past_acts_on_nothing(instance: Instance) -> None:
    # A full hour may strike in between: then the scheduled run does act, and it is tried again.
    for step in (40, 50):
        instance.await_quiet()
        # So there would be something to do.
        instance.desk.save(step)
        before, others = instance.desk.stored(), acting_runs(instance)
        past = {"from_date": "2025-03-01T00:00:00Z", "to_date": "2025-03-01T01:00:00Z", "reprocess_behavior": "completed"}
        backfill = instance.post("/backfills", dag_id="seawall_sync", max_active_runs=2, **past)
        instance.await_backfill(backfill["id"])
        filled = instance.runs("seawall_sync", "backfill")
        after = instance.desk.stored()
        if acting_runs(instance) == others:
            break
    assert [run["state"] for run in filled] == ["success", "success"]
    for run in filled:
        states = instance.tasks("seawall_sync", run["dag_run_id"])
        assert {state for task in OPERATORS for state in states[task]} == {"skipped"}
    assert after == before, "no object, no log entry, no proof"


def test_the_plugin_asks_who_it_is(instance: Instance) -> None:
    url = f"{instance.airflow.url}/seawall"
    hold = f"{url}/api/runs/{RUN}/hold"
    viewer, admin = ({"Authorization": f"Bearer {instance.token(name)}"} for name in ("viewer", "admin"))
    with httpx.Client(timeout=60) as client:
        for path in ("/", "/api/runs", f"/api/runs/{RUN}/copies", f"/api/runs/{RUN}/log"):
            assert client.get(url + path).status_code == 401
            assert client.get(url + path, headers=viewer).status_code == 200
        assert client.post(hold, json={"reason": "nobody"}).status_code == 401
        assert client.post(hold, json={"reason": "a viewer"}, headers=viewer).status_code == 403
        foreign = {"Cookie": f"_token={instance.token('admin')}", "Origin": "http://evil.example"}
        assert client.post(hold, json={"reason": "another site"}, headers=foreign).status_code == 403
        own = {**foreign, "Origin": instance.airflow.url}
        assert client.post(hold, json={"reason": "its own page"}, headers=own).status_code == 200
        assert client.get(f"{url}/api/runs/{RUN}/copies", headers=admin).json()["held"] == ["its own page (by admin in Airflow)"]


def test_nothing_went_wrong_unseen(instance: Instance) -> None:
    """Last, because it is about all of the above."""
    assert instance.get("/importErrors")["import_errors"] == []
    assert instance.get("/plugins/importErrors")["import_errors"] == []
    assert [plugin["name"] for plugin in instance.get("/plugins")["plugins"]].count("seawall") == 1
    for dag in DAGS:
        assert instance.get(f"/dags/{dag}/dagVersions")["total_entries"] == 1, f"{dag} is not serialised the same way twice"
        assert {run["state"] for run in instance.runs(dag)} == {"success"}
    assert processes_in(Path(instance.airflow.folder)), "what the end of this file finds to be gone was seen before"
