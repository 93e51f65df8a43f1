"""The DAGs under a real scheduler, on PostgreSQL: started by hand, by training, by the clock and for the past; and the plugin's routes.

One file, because all of it shares one Airflow, which takes the longest of it to start.
"""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.airflow.instance import DAGS, Instance, processes_in, running_instance
from tests.audit.past import DAY, FIRST_DAY, Past
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


def told_of_backfills(instance: Instance) -> list[object]:
    """Alerts that a backfill sent. Those of other runs may come late: a DAG's own are sent by the DAG processor when it comes to them."""
    return [alert for request in instance.told.requests for alert in request.body if "backfill" in alert.get("generatorURL", "")]


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


def test_a_dag_run_that_fails_is_told(instance: Instance) -> None:
    run = instance.trigger("seawall_sync", run="nowhere")
    instance.failures.add(run)
    assert instance.await_run("seawall_sync", run) == "failed"
    instance.wait("alert", lambda: True in instance.alerts("SeawallTaskFailed", dag_id="seawall_sync"))
    labels = [alert["labels"] for request in instance.told.requests for alert in request.body]
    assert len({json.dumps(each, sort_keys=True) for each in labels if each.get("dag_id") == "seawall_sync"}) == 1, "its end is its own"
    instance.await_quiet()
    assert instance.await_run("seawall_sync", instance.trigger("seawall_sync", run=RUN)) == "success"
    instance.wait("end of the alert", lambda: not instance.alerts("SeawallTaskFailed", dag_id="seawall_sync")[-1])


def test_a_damaged_copy_is_healed_and_proved_again_and_what_is_late_is_caught_up_with(instance: Instance) -> None:
    instance.await_quiet()
    (row, *_) = instance.desk("copies", RUN, "--json").json["checkpoints"]
    path = instance.desk.store("a") / f"runs/{RUN}/sealings/{row['sealing']}/file-1.sea"
    whole = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(whole[:-200] + bytes([whole[-200] ^ 1]) + whole[-199:])
    # Saved an hour ago, as far as its commit mark says, and nobody was told.
    hour_ago = (datetime.now(UTC) - timedelta(hours=1)).timestamp()
    os.utime(instance.desk.save(60) / "_COMMITTED", (hour_ago, hour_ago))
    run = instance.trigger("seawall_verify", run=RUN, step="newest")
    assert instance.await_run("seawall_verify", run) == "success"
    states = instance.tasks("seawall_verify", run)
    done = ("mend.heal", "mend.prove", "mend.sign", "catch_up.sync", "settle")
    assert {state for task in done for state in states[task]} == {"success"}
    assert {state for task in ("mark.respond", "failed") for state in states[task]} == {"skipped"}
    assert path.read_bytes() == whole
    (healed,) = [each for each in instance.desk("copies", RUN, "--json").json["checkpoints"] if each["sealing"] == row["sealing"]]
    assert {copy["level"] for copy in healed["copies"].values()} == {"L4"}
    damaged = instance.alerts("SeawallCopyDamaged", store="a", run=RUN)
    assert True in damaged and damaged[-1] is False, "it stood, and was over when the copy was proved again"
    instance.await_quiet()
    assert committed(instance)[0] == 60
    caught_up = [run for run in instance.runs("seawall_sync") if run["dag_run_id"].startswith("catch_up__")]
    assert [(run["state"], run["conf"]["run"]) for run in caught_up] == [("success", RUN)]


@pytest.mark.parametrize("days", [3, pytest.param(30, marks=[pytest.mark.nightly, pytest.mark.timeout(1500)])])
def test_days_that_are_filled_in_give_the_reports_that_they_gave_themselves(instance: Instance, days: int) -> None:
    instance.await_quiet()
    past = Past(instance.desk, f"past-{days}")
    past.begin()
    reports = past.live(days)
    past.end()

    def stored() -> dict[str, bytes]:
        # Of this run alone: the other one may be synced and proved meanwhile.
        return {name: raw for name, raw in instance.desk.stored().items() if f"/runs/{past.run}/" in name}

    listed = stored()
    # As if Airflow had not run on these days, but for the last: its report is there, and has to be the same.
    for day in range(days - 1):
        past.report_path(day).unlink()
    dates = {"from_date": f"{FIRST_DAY:%Y-%m-%dT%H:%M:%SZ}", "to_date": f"{FIRST_DAY + days * DAY:%Y-%m-%dT%H:%M:%SZ}"}
    # The dates may have been filled in for another run already; their DAG runs are then used again.
    asked = {"max_active_runs": 3, "reprocess_behavior": "completed", "dag_run_conf": {"run": past.run}}
    backfill = instance.post("/backfills", dag_id="seawall_audit", **dates, **asked)
    instance.await_backfill(backfill["id"], 60 + 30 * days)
    filled = [run for run in instance.runs("seawall_audit", "backfill") if run["conf"] == {"run": past.run}]
    assert [run["state"] for run in filled] == ["success"] * days
    for run in filled:
        assert instance.tasks("seawall_audit", run["dag_run_id"]) == {"runs": ["success"], "report": ["success"], "failed": ["skipped"]}
    for day, raw in reports.items():
        assert past.report_path(day).read_bytes() == raw
    assert stored() == listed, "nothing moved"
    assert told_of_backfills(instance) == []


def test_filling_in_the_past_of_what_acts_does_nothing(instance: Instance) -> None:
    instance.await_quiet()
    before, others = instance.desk.stored(), acting_runs(instance)
    past = {"from_date": "2025-03-01T00:00:00Z", "to_date": "2025-03-01T23:00:00Z"}
    dags = ("seawall_verify", "seawall_retention")
    for backfill in [instance.post("/backfills", dag_id=dag, max_active_runs=1, **past) for dag in dags]:
        instance.await_backfill(backfill["id"])
    for dag in dags:
        (filled,) = instance.runs(dag, "backfill")
        assert filled["state"] == "success"
        assert instance.tasks(dag, filled["dag_run_id"])["runs"] == ["skipped"]
    if acting_runs(instance) == others:
        assert instance.desk.stored() == before
    assert told_of_backfills(instance) == []


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
        assert {run["state"] for run in instance.runs(dag) if run["dag_run_id"] not in instance.failures} <= {"success"}, dag
    assert processes_in(Path(instance.airflow.folder)), "what the end of this file finds to be gone was seen before"
