"""A real Alertmanager takes our alerts, groups them, links them, and says when they are over."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from seawall.alerts.alert import Alert
from seawall.alerts.alertmanager import BATCH, Alertmanager
from seawall.alerts.send import Receivers, send_alerts
from seawall.errors import AlertRefusedError, AlertUnavailableError
from seawall.testing.local_server import free_port
from tests.alerts.receivers import CONFIGURATION, RealAlertmanager, Receiver, alertmanager, listening, needs_alertmanager

LINK = "http://127.0.0.1:18080/dags/seawall_verify/runs/r1/tasks/check"


def alert(store: str = "a", dimension: str = "file", *, over: bool = False, run: str = "gpt") -> Alert:
    now = datetime.now(UTC)
    began = now - timedelta(minutes=5)
    labels = {"run": run, "store": store, "dimension": dimension, "zone": ""}
    ends = now - timedelta(seconds=1) if over else None
    return Alert("SeawallCopyDamaged", "critical", f"a copy in {store} is damaged", began, labels, "step 100", ends, LINK)


@pytest.fixture(scope="module")
def told() -> Iterator[Receiver]:
    with listening(Receiver()) as receiver:
        yield receiver


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, told: Receiver) -> Iterator[RealAlertmanager]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager"), told) as running:
        yield running


@needs_alertmanager
def test_an_alert_stands_with_its_labels_and_its_link(server: RealAlertmanager) -> None:
    Alertmanager(server.url).send([alert(run="stands")])
    (found,) = [one for one in server.alerts() if one["labels"]["run"] == "stands"]
    assert found["labels"] == {
        "alertname": "SeawallCopyDamaged",
        "severity": "critical",
        "service": "seawall",
        "run": "stands",
        "store": "a",
        "dimension": "file",
    }
    assert found["annotations"] == {"summary": "a copy in a is damaged", "description": "step 100"}
    assert found["generatorURL"] == LINK and found["status"]["state"] in ("active", "unprocessed")
    assert [receiver["name"] for receiver in found["receivers"]] == ["on-call"]


@needs_alertmanager
def test_it_is_one_notification_a_group_and_one_when_it_is_over(server: RealAlertmanager, told: Receiver) -> None:
    manager = Alertmanager(server.url + "/")
    manager.send([alert("a", run="grouped"), alert("c", run="grouped")])

    def of_group(store: str, status: str) -> bool:
        groups = [request.body for request in told.requests if request.body["groupLabels"].get("run") == "grouped"]
        return any(group["groupLabels"]["store"] == store and group["status"] == status for group in groups)

    told.wait_for(lambda _: of_group("a", "firing") and of_group("c", "firing"))
    manager.send([alert("a", run="grouped", over=True)])
    told.wait_for(lambda _: of_group("a", "resolved"))
    assert not of_group("c", "resolved")
    assert {one["labels"]["store"] for one in server.alerts() if one["labels"]["run"] == "grouped"} == {"c"}


@needs_alertmanager
def test_the_same_alert_twice_is_one(server: RealAlertmanager) -> None:
    for _ in range(2):
        Alertmanager(server.url).send([alert(run="twice")])
    assert len([one for one in server.alerts() if one["labels"]["run"] == "twice"]) == 1


@needs_alertmanager
def test_many_alerts_go_in_several_requests(server: RealAlertmanager) -> None:
    Alertmanager(server.url).send([alert(f"s{number}", run="many") for number in range(BATCH + 3)])
    assert len([one for one in server.alerts() if one["labels"]["run"] == "many"]) == BATCH + 3


@needs_alertmanager
def test_what_it_refuses_is_said(server: RealAlertmanager) -> None:
    bad = Alert("Bad", "info", "a label that is none", datetime.now(UTC), {"not-a-label": "x"})
    (delivery,) = send_alerts(Receivers((Alertmanager(server.url),)), [bad])
    assert isinstance(delivery.error, AlertRefusedError) and "HTTP 400" in delivery.error.why


@needs_alertmanager
def test_the_published_configuration_is_valid() -> None:
    done = subprocess.run(["amtool", "check-config", CONFIGURATION], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class TestFailures:
    """They are said, and nothing else happens."""

    def test_nobody_listens(self) -> None:
        url = f"http://127.0.0.1:{free_port()}"
        (delivery,) = send_alerts(Receivers((Alertmanager(url),)), [alert()])
        assert isinstance(delivery.error, AlertUnavailableError) and url in str(delivery.error)

    def test_one_of_a_cluster_is_away(self) -> None:
        with listening(Receiver()) as receiver:
            managers = (Alertmanager(f"http://127.0.0.1:{free_port()}"), Alertmanager(receiver.url))
            deliveries = send_alerts(Receivers(managers), [alert()])
        assert [delivery.error is None for delivery in deliveries] == [False, True]
        assert receiver.requests[0].path == "/api/v2/alerts"

    def test_a_busy_one_is_tried_again(self) -> None:
        answers = [(503, {}), (200, {})]
        with listening(Receiver(lambda request: answers.pop(0))) as receiver:
            (delivery,) = send_alerts(Receivers((Alertmanager(receiver.url),)), [alert()])
        assert delivery.error is None and len(receiver.requests) == 2

    def test_a_refusal_is_not_tried_again(self) -> None:
        with listening(Receiver(lambda request: (400, {"error": "no"}))) as receiver:
            (delivery,) = send_alerts(Receivers((Alertmanager(receiver.url),)), [alert()])
        assert isinstance(delivery.error, AlertRefusedError) and len(receiver.requests) == 1

    def test_a_redirect_is_not_followed(self) -> None:
        """Alerts, and the header that they are sent with, go where they were meant to go."""
        with listening(Receiver(lambda request: (307, {}))) as receiver:
            (delivery,) = send_alerts(Receivers((Alertmanager(receiver.url),)), [alert()])
        assert isinstance(delivery.error, AlertRefusedError) and "HTTP 307" in delivery.error.why

    def test_nothing_to_say_says_nothing(self) -> None:
        assert send_alerts(Receivers((Alertmanager("http://127.0.0.1:9"),)), []) == []


def test_the_header_is_sent() -> None:
    with listening(Receiver()) as receiver:
        Alertmanager(receiver.url, "Bearer abc").send([alert()])
    assert receiver.requests[0].headers["authorization"] == "Bearer abc"
