"""Word to Airflow, against a real HTTP server that goes away, hangs, forgets tokens and refuses."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.errors import ConfigurationError
from seawall.training.airflow_events import AirflowEvents, AirflowUnavailableError
from seawall.training.committed import Committed
from seawall.training.credentials import from_environment, from_file
from seawall.training.notifier import Notifier
from seawall.training.spool import REFUSED, Spool
from tests.training.little_airflow import PASSWORD, USERNAME, LittleAirflow


@pytest.fixture
def airflow() -> Iterator[LittleAirflow]:
    server = LittleAirflow()
    yield server
    server.stop()


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps({"username": USERNAME, "password": PASSWORD}))
    path.chmod(0o600)
    return path


def committed(step: int) -> Committed:
    return Committed(step, 4, Path(f"/checkpoints/step_{step:08d}"), 2, "2026-11-29T00:00:00.000000Z")


def notifier(url: str, credentials: Path, tmp_path: Path, *, limit: int = 1000, read_seconds: float = 10.0) -> Notifier:
    events = AirflowEvents(url, from_file(credentials), read_seconds=read_seconds)
    return Notifier(events, "gpt", tmp_path / "spool", limit=limit, first_wait=0.02, longest_wait=0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_an_event_says_run_step_path_and_epoch(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    told = notifier(airflow.url, credentials, tmp_path)
    told(committed(10))
    told(committed(20))
    assert airflow.wait_for(2)
    told.close()
    assert airflow.events[0] == {"asset_id": 7, "extra": {"run": "gpt", "step": 10, "path": "/checkpoints/step_00000010", "epoch": 4}}
    assert airflow.steps() == [10, 20]
    assert told.waiting == 0
    assert airflow.issued == 1, "one token does for all"
    assert airflow.paths[1] == "/api/v2/assets?limit=100&name_pattern=checkpoint_ready"


def test_training_does_not_wait_for_a_server_that_hangs(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    airflow.held.clear()
    told = notifier(airflow.url, credentials, tmp_path, read_seconds=300)
    told(committed(10))
    assert airflow.wait_for_requests("/auth/token", 1)
    began = time.monotonic()
    told(committed(20))
    told.close(timeout=0.2)
    assert time.monotonic() - began < 5, "two small files and the time that close was given; the request may take 300 s"
    assert told.waiting == 2


def test_a_slow_server_is_given_up_and_asked_again(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    airflow.held.clear()
    told = notifier(airflow.url, credentials, tmp_path, read_seconds=0.2)
    told(committed(10))
    assert airflow.wait_for_requests("/auth/token", 3)
    airflow.held.set()
    assert airflow.wait_for(1)
    told.close()
    assert airflow.steps() == [10]


def test_events_of_a_time_without_airflow_come_later_in_order(credentials: Path, tmp_path: Path) -> None:
    port = free_port()
    first = notifier(f"http://127.0.0.1:{port}", credentials, tmp_path)
    for step in (10, 20, 30):
        first(committed(step))
    first.close(timeout=0.1)
    assert first.waiting == 3
    # Another process of the same run: it sends what the one before could not.
    second = notifier(f"http://127.0.0.1:{port}", credentials, tmp_path)
    second(committed(40))
    server = LittleAirflow(port)
    try:
        assert server.wait_for(4)
        second.close()
        assert server.steps() == [10, 20, 30, 40]
        assert second.waiting == 0
    finally:
        server.stop()


def test_an_expired_token_is_replaced(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    told = notifier(airflow.url, credentials, tmp_path)
    told(committed(10))
    assert airflow.wait_for(1)
    airflow.tokens.clear()
    told(committed(20))
    assert airflow.wait_for(2)
    told.close()
    assert airflow.issued == 2
    assert airflow.steps() == [10, 20]


def test_rotated_credentials_are_read_again(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    credentials.write_text(json.dumps({"username": USERNAME, "password": "yesterday's"}))
    told = notifier(airflow.url, credentials, tmp_path)
    told(committed(10))
    assert airflow.wait_for_requests("/auth/token", 2)
    credentials.write_text(json.dumps({"username": USERNAME, "password": PASSWORD}))
    assert airflow.wait_for(1)
    told.close()


@pytest.mark.parametrize("status", [500, 502, 503, 429, 403])
def test_what_may_pass_is_tried_again(airflow: LittleAirflow, credentials: Path, tmp_path: Path, status: int) -> None:
    airflow.failing = [status, status]
    told = notifier(airflow.url, credentials, tmp_path)
    told(committed(10))
    assert airflow.wait_for(1)
    told.close()
    assert airflow.steps() == [10]


def test_an_asset_that_is_not_there_yet_or_has_a_new_number(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    airflow.assets = airflow.assets[:1]
    told = notifier(airflow.url, credentials, tmp_path)
    told(committed(10))
    assert airflow.wait_for_requests("/api/v2/assets?", 2)
    airflow.assets = [{"id": 11, "name": "checkpoint_ready"}]
    assert airflow.wait_for(1)
    airflow.assets = [{"id": 12, "name": "checkpoint_ready"}]
    told(committed(20))
    assert airflow.wait_for(2)
    told.close()
    assert [event["asset_id"] for event in airflow.events] == [11, 12]


def test_an_event_that_is_refused_holds_up_no_other(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    airflow.failing = [422]
    told = notifier(airflow.url, credentials, tmp_path)
    told(committed(10))
    told(committed(20))
    assert airflow.wait_for(1)
    told.close()
    assert airflow.steps() == [20]
    [aside] = (tmp_path / "spool" / REFUSED).iterdir()
    assert json.loads(aside.read_text())["step"] == 10


def test_a_lost_answer_sends_the_event_again(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    airflow.cut_after_taking = 1
    told = notifier(airflow.url, credentials, tmp_path)
    told(committed(10))
    assert airflow.wait_for(2)
    told.close()
    assert airflow.steps() == [10, 10]


KILLED = """
import sys
from pathlib import Path
from seawall.training.airflow_events import AirflowEvents
from seawall.training.committed import Committed
from seawall.training.credentials import from_file
from seawall.training.notifier import Notifier
told = Notifier(AirflowEvents(sys.argv[1], from_file(Path(sys.argv[2])), read_seconds=60), "gpt", Path(sys.argv[3]))
told(Committed(10, 4, Path("/checkpoints/step_00000010"), 1, ""))
print("kept", flush=True)
sys.stdin.read()
"""


def test_killed_between_sending_and_forgetting(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    # Airflow has the event and its answer is on the way: that is when the trainer is killed.
    airflow.cut_after_taking = 10**6
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, airflow.url, str(credentials), str(tmp_path / "spool")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"kept\n"
    assert airflow.wait_for(1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    sent = len(airflow.events)
    assert len(Spool(tmp_path / "spool").waiting()) == 1
    airflow.cut_after_taking = 0
    again = notifier(airflow.url, credentials, tmp_path)
    assert airflow.wait_for(sent + 1)
    again.close()
    assert set(airflow.steps()) == {10}
    assert again.waiting == 0


def test_the_spool_is_bounded_and_keeps_the_newest(credentials: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = notifier(f"http://127.0.0.1:{free_port()}", credentials, tmp_path, limit=3)
    for step in range(10):
        told(committed(step))
    told.close(timeout=0.0)
    spool = Spool(tmp_path / "spool")
    assert [spool.read(path)["step"] for path in spool.waiting()] == [7, 8, 9]
    assert "oldest events were dropped" in caplog.text


def test_a_disk_that_takes_nothing_is_logged_and_not_raised(
    airflow: LittleAirflow, credentials: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "spool").write_text("a file where the folder should be")
    told = notifier(airflow.url, credentials, tmp_path)
    told(committed(10))
    assert "the event of step 10 cannot be kept" in caplog.text
    (tmp_path / "spool").unlink()
    told(committed(20))
    assert airflow.wait_for(1)
    told.close()
    assert airflow.steps() == [20]


def test_a_spoiled_event_is_set_aside(airflow: LittleAirflow, credentials: Path, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / "00000000000000000001-1-000000.json").write_text('{"run": "gp')
    told = notifier(airflow.url, credentials, tmp_path)
    told(committed(10))
    assert airflow.wait_for(1)
    told.close()
    assert [path.name for path in (spool / REFUSED).iterdir()] == ["00000000000000000001-1-000000.json"]


def test_nothing_secret_is_logged_or_shown(
    airflow: LittleAirflow, credentials: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    airflow.failing = [503, 401, 422]
    told = notifier(airflow.url, credentials, tmp_path)
    for step in (10, 20, 30):
        told(committed(step))
    assert airflow.wait_for(2)
    told.close()
    said = caplog.text + repr(from_file(credentials)()) + repr(told)
    assert "tried again" in said, "something was logged at all"
    assert PASSWORD not in said
    assert "secret-token" not in said


def test_a_redirect_is_not_followed(airflow: LittleAirflow, credentials: Path) -> None:
    events = AirflowEvents(airflow.url, from_file(credentials))
    events.create({"step": 1})
    airflow.failing = [307]
    with pytest.raises(AirflowUnavailableError, match="HTTP 307"):
        events.create({"step": 2})
    assert airflow.steps() == [1]


def test_credentials_that_others_can_read_are_refused(credentials: Path) -> None:
    credentials.chmod(0o640)
    with pytest.raises(ConfigurationError, match="others may read"):
        from_file(credentials)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"token": ""}', '{"username": "a"}', '{"token": "a\\nb"}', '{"token": "t", "user": "u"}', '{"to']
)
def test_credentials_of_another_form_are_refused(credentials: Path, text: str) -> None:
    credentials.write_text(text)
    with pytest.raises(ConfigurationError):
        from_file(credentials)


def test_credentials_from_the_environment(airflow: LittleAirflow) -> None:
    airflow.tokens.add("a-token-of-an-operator")
    events = AirflowEvents(airflow.url, from_environment({"SEAWALL_AIRFLOW_TOKEN": "a-token-of-an-operator"}))
    events.create({"step": 1})
    assert airflow.steps() == [1]
    assert airflow.issued == 0
    with pytest.raises(ConfigurationError):
        from_environment({})


@pytest.mark.parametrize("url", ["ftp://airflow", "airflow:8080", "http://", "http://name" + ":word@airflow"])
def test_a_url_that_is_none_is_refused_without_showing_it(url: str, credentials: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        AirflowEvents(url, from_file(credentials))
    assert "word" not in str(caught.value)
    assert os.environ.get("SEAWALL_AIRFLOW_TOKEN") is None
