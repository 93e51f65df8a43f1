"""A task that fails is told to Alertmanager and DingTalk, in its own process; nothing that goes wrong there is raised or leaks a secret."""

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator

from seawall.operators.notifiers import AlertmanagerNotifier, DingTalkNotifier, task_address
from seawall.operators.provider import get_provider_info
from seawall.testing.local_server import free_port
from tests.airflow.tasks import context
from tests.alerts.receivers import Receiver, Robot, alertmanager, listening, needs_alertmanager
from tests.protect.command_line import RUN, Desk, new_desk

TOKEN, KEY = "5e" * 32, "SEC" + "77" * 32


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return new_desk(tmp_path)


@pytest.fixture
def manager(desk: Desk) -> Iterator[Receiver]:
    with listening(Receiver()) as receiver:
        configure(desk, f'alertmanager = ["{receiver.url}"]')
        yield receiver


@pytest.fixture
def robot(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Robot]:
    made = Robot(TOKEN, KEY, datetime.now(UTC).timestamp())
    with listening(made.receiver):
        configure(desk, 'dingtalk_conn_id = "chat"')
        connection = {"conn_type": "dingding", "host": made.receiver.url, "password": TOKEN, "extra": {"secret": KEY}}
        monkeypatch.setenv("AIRFLOW_CONN_CHAT", json.dumps(connection))
        yield made


def configure(desk: Desk, line: str) -> None:
    text = desk.config.read_text()
    desk.config.write_text(f"{text}\n[alerts]\n{line}\n" if "[alerts]" not in text else f"{text}{line}\n")


def failed(**more: Any) -> Any:
    """What a callback gets of a task that failed."""
    task = SimpleNamespace(dag_id="seawall_sync", task_id="seal", run_id="manual__2026-11-29T03:00:00+00:00", map_index=3)
    return context(ti=task, exception=RuntimeError("a store did not answer"), **more)


def test_a_failed_task_is_an_alert_with_a_link_to_it(desk: Desk, manager: Receiver) -> None:
    AlertmanagerNotifier(run=RUN, seawall_config=str(desk.config))(failed())
    (alert,) = manager.requests[0].body
    assert alert["labels"]["alertname"] == "SeawallTaskFailed" and alert["labels"]["severity"] == "critical"
    assert {name: alert["labels"][name] for name in ("dag_id", "task_id", "run")} == {
        "dag_id": "seawall_sync",
        "task_id": "seal",
        "run": RUN,
    }
    assert alert["annotations"]["description"] == "a store did not answer"
    expected = "http://testserver/dags/seawall_sync/runs/manual__2026-11-29T03%3A00%3A00%2B00%3A00/tasks/seal/mapped/3"
    assert alert["generatorURL"] == expected


def test_the_next_success_ends_it(desk: Desk, manager: Receiver) -> None:
    AlertmanagerNotifier(run=RUN, seawall_config=str(desk.config))(failed())
    AlertmanagerNotifier(run=RUN, resolved=True, seawall_config=str(desk.config))(failed())
    (first,), (second,) = (request.body for request in manager.requests)
    assert second["labels"] == first["labels"] and second["endsAt"] <= datetime.now(UTC).isoformat()[:23] + "Z" < first["endsAt"]


def test_a_failed_task_is_a_message_by_airflows_connection(desk: Desk, robot: Robot) -> None:
    DingTalkNotifier(run=RUN, seawall_config=str(desk.config))(failed())
    (text,) = robot.texts
    assert text.startswith(
        "### seawall: seawall_sync.seal failed\n\nrun gpt\n\na store did not answer\n\n[open in Airflow](http://testserver/"
    )


def test_the_run_may_be_a_template(desk: Desk, manager: Receiver) -> None:
    notifier = AlertmanagerNotifier(run="{{ params.run }}", seawall_config=str(desk.config))
    notifier(failed(params={"run": "gpt-9"}))
    assert manager.requests[0].body[0]["labels"]["run"] == "gpt-9"


def test_the_run_is_that_of_the_task(desk: Desk, manager: Receiver) -> None:
    AlertmanagerNotifier(seawall_config=str(desk.config))(failed(task=SimpleNamespace(run="gpt-7")))
    assert manager.requests[0].body[0]["labels"]["run"] == "gpt-7"


def test_a_backfill_tells_nobody(desk: Desk, manager: Receiver, robot: Robot) -> None:
    past = {"dag_run": SimpleNamespace(run_type="backfill", run_after=datetime.now(UTC) - timedelta(days=9))}
    for notifier in (AlertmanagerNotifier, DingTalkNotifier):
        notifier(seawall_config=str(desk.config))({**failed(), **past})
    assert not manager.requests and not robot.receiver.requests


def test_a_callback_of_a_whole_dag_is_about_the_dag(desk: Desk, manager: Receiver, robot: Robot) -> None:
    """Airflow hands it some task of the run, another one when the run succeeds: only without the task are both one alert."""
    last = failed(reason="task_failure")
    del last["exception"]
    AlertmanagerNotifier(seawall_config=str(desk.config))(last)
    DingTalkNotifier(seawall_config=str(desk.config))(last)
    other = SimpleNamespace(dag_id="seawall_sync", task_id="commit", run_id="scheduled__2", map_index=-1)
    its_task = SimpleNamespace(run="{{ params.run }}")
    AlertmanagerNotifier(resolved=True, seawall_config=str(desk.config))(context(ti=other, task=its_task, reason="success"))
    (first,), (second,) = (request.body for request in manager.requests)
    assert first["labels"] == second["labels"] and "task_id" not in first["labels"]
    assert first["annotations"] == {"summary": "seawall_sync failed", "description": "task_failure at seal"}
    assert first["generatorURL"].endswith("/tasks/seal/mapped/3"), "the link leads to the task"
    assert robot.texts[0].startswith("### seawall: seawall_sync failed\n\ntask_failure at seal\n\n")


def test_a_callback_may_know_the_dag_and_nothing_else(desk: Desk, manager: Receiver) -> None:
    with DAG("whole") as dag:
        BaseOperator(task_id="one")
    notifier = AlertmanagerNotifier(seawall_config=str(desk.config))
    notifier({"dag": dag, "run_id": "backfill__2026-01-01T00:00:00+00:00", "reason": "task_failure"})
    assert not manager.requests, "the past alarms nobody"
    notifier({"dag": dag, "run_id": "manual__1", "reason": "task_failure"})
    (alert,) = manager.requests[0].body
    assert alert["labels"]["dag_id"] == "whole" and alert["generatorURL"] == "http://testserver/dags/whole/runs/manual__1"
    assert task_address({}) == ""


@pytest.mark.parametrize("notifier", [AlertmanagerNotifier, DingTalkNotifier])
@pytest.mark.parametrize("trouble", ["nobody listens", "no configuration", "no receiver", "no connection"])
def test_trouble_is_logged_and_not_raised(desk: Desk, notifier: Any, trouble: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = str(desk.config)
    if trouble == "nobody listens":
        configure(desk, f'alertmanager = ["http://127.0.0.1:{free_port()}"]')
    elif trouble == "no configuration":
        path = str(desk.folder / "nowhere.toml")
    elif trouble == "no connection":
        configure(desk, 'dingtalk_conn_id = "nowhere"')
    notifier(seawall_config=path)(failed())


def test_no_secret_is_logged(desk: Desk, robot: Robot, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    robot.receiver.answer = lambda request: (500, {})
    DingTalkNotifier(seawall_config=str(desk.config))(failed())
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert TOKEN not in said and KEY not in said and "access_token" not in said


@needs_alertmanager
def test_a_real_alertmanager_takes_the_alert_and_its_end(desk: Desk, tmp_path: Path) -> None:
    with listening(Receiver()) as told, alertmanager(tmp_path, told) as server:
        configure(desk, f'alertmanager = ["{server.url}"]')
        AlertmanagerNotifier(seawall_config=str(desk.config))(failed())
        (found,) = server.alerts()
        assert found["labels"]["task_id"] == "seal" and found["generatorURL"].endswith("/tasks/seal/mapped/3")
        AlertmanagerNotifier(resolved=True, seawall_config=str(desk.config))(failed())
        assert server.alerts() == []


def test_they_survive_serialization() -> None:
    """A DAG that has them as default arguments is the same DAG every time that its file is read."""
    from airflow.serialization.serialized_objects import DagSerialization

    def read() -> Any:
        arguments = {"on_failure_callback": [AlertmanagerNotifier(), DingTalkNotifier()]}
        with DAG("with_callbacks", default_args=arguments) as dag:
            BaseOperator(task_id="one")
        return DagSerialization.to_dict(dag)

    assert read() == read()


def test_airflow_is_told_of_them() -> None:
    assert set(get_provider_info()["notifications"]) == {
        f"{one.__module__}.{one.__name__}" for one in (AlertmanagerNotifier, DingTalkNotifier)
    }
