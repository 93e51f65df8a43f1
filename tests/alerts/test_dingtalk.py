"""A robot that checks what DingTalk checks takes our messages; neither its token nor its secret is ever said."""

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from seawall.alerts.alert import Message
from seawall.alerts.dingtalk import MAX_TEXT_BYTES, DingTalk, signature
from seawall.alerts.send import Receivers, send_message
from seawall.errors import AlertAmbiguousError, AlertError, AlertRefusedError, AlertUnavailableError
from seawall.testing.local_server import free_port
from tests.alerts.receivers import Robot, listening

NOW = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
TOKEN = "7f3c" * 16
KEY = "SEC" + "0a1b" * 16
MESSAGE = Message("gpt: a copy was healed", ("step 100 in a: 1 object", "record 1 from c"), "http://127.0.0.1:18080/dags/x")


@pytest.fixture
def robot() -> Iterator[Robot]:
    made = Robot(TOKEN, KEY, NOW.timestamp())
    with listening(made.receiver):
        yield made


def ours(robot: Robot, secret: str = KEY) -> DingTalk:
    return DingTalk(robot.webhook, secret)


def test_the_signature_is_that_of_the_documentation() -> None:
    """HMAC-SHA256 under the secret over the timestamp, a line break and the secret, in base64; computed with openssl."""
    assert signature("this is secret", "1577262236757") == "hmPWwU+7lVdm3ZZz0r9tSfx0L4Q26jWOZr9+Gs6EZQM="


def test_a_message_is_taken(robot: Robot) -> None:
    ours(robot).send(MESSAGE, NOW)
    (text,) = robot.texts
    assert text.splitlines()[0] == "### gpt: a copy was healed"
    assert "step 100 in a: 1 object\n\nrecord 1 from c" in text
    assert text.endswith("[open in Airflow](http://127.0.0.1:18080/dags/x)")


@pytest.mark.parametrize("wrong", ["secret", "no secret", "token", "clock"])
def test_what_the_robot_refuses(robot: Robot, wrong: str) -> None:
    made = ours(robot, {"secret": KEY[:-1] + "0", "no secret": ""}.get(wrong, KEY))
    if wrong == "token":
        made = DingTalk(robot.webhook[:-1] + "0", KEY)
    with pytest.raises(AlertRefusedError, match="300001" if wrong == "token" else "310000") as caught:
        made.send(MESSAGE, NOW + timedelta(hours=2) if wrong == "clock" else NOW)
    assert not robot.texts and len(robot.receiver.requests) == 1
    assert TOKEN[:60] not in str(caught.value) and KEY[:60] not in str(caught.value)


def test_too_many_messages_may_be_sent_later(robot: Robot) -> None:
    robot.receiver.answer = lambda request: (200, {"errcode": 130101, "errmsg": "send too fast"})
    with pytest.raises(AlertUnavailableError, match="130101"):
        ours(robot).send(MESSAGE, NOW)


def test_a_lost_answer_is_ambiguous_and_not_repeated(robot: Robot) -> None:
    robot.receiver.answer = lambda request: (0, None)
    (delivery,) = send_message(Receivers(dingtalk=ours(robot)), MESSAGE, NOW)
    assert isinstance(delivery.error, AlertAmbiguousError) and len(robot.receiver.requests) == 1


@pytest.mark.parametrize("answer", [(200, {}), (200, []), (200, {"errcode": "0"}), (404, {})])
def test_an_answer_without_a_code_is_no_success(robot: Robot, answer: tuple[int, object]) -> None:
    robot.receiver.answer = lambda request: answer
    with pytest.raises(AlertRefusedError):
        ours(robot).send(MESSAGE, NOW)


def test_a_long_message_is_cut(robot: Robot) -> None:
    ours(robot).send(Message("t", ("é" * 30_000,)), NOW)
    (text,) = robot.texts
    assert len(text.encode()) <= MAX_TEXT_BYTES + 3 and text.endswith("…")


def _log_everything(caplog: pytest.LogCaptureFixture) -> None:
    """Also what others quieted in this process: Airflow does it with httpx."""
    for name in ("", "httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=name or None)
    logging.getLogger("httpx").disabled = False


class TestSecrets:
    """Whatever happens, and however much is logged."""

    def _unsaid(self, caplog: pytest.LogCaptureFixture, *texts: object) -> None:
        said = "\n".join([*(record.getMessage() for record in caplog.records), *map(repr, texts), *map(str, texts)])
        assert TOKEN not in said and KEY not in said and "access_token" not in said

    @pytest.mark.parametrize("answer", [(200, {"errcode": 0}), (500, {}), (400, {}), (0, None)])
    def test_in_no_log_and_no_error(self, robot: Robot, caplog: pytest.LogCaptureFixture, answer: tuple[int, object]) -> None:
        _log_everything(caplog)
        robot.receiver.answer = lambda request: answer
        deliveries = send_message(Receivers(dingtalk=ours(robot)), MESSAGE, NOW)
        errors = [delivery.error for delivery in deliveries if delivery.error is not None]
        self._unsaid(caplog, deliveries, *errors, *(error.as_json() for error in errors), *(error.__cause__ for error in errors))

    def test_with_nobody_there(self, caplog: pytest.LogCaptureFixture) -> None:
        _log_everything(caplog)
        robot = DingTalk(f"http://127.0.0.1:{free_port()}/robot/send?access_token={TOKEN}", KEY)
        with pytest.raises(AlertError) as caught:
            robot.send(MESSAGE, NOW)
        self._unsaid(caplog, caught.value, robot)

    def test_the_control(self, robot: Robot, caplog: pytest.LogCaptureFixture) -> None:
        """Without the filter the library's own line holds the token."""
        import httpx

        _log_everything(caplog)
        httpx.post(robot.webhook, json={})
        assert TOKEN in "\n".join(record.getMessage() for record in caplog.records)
        with pytest.raises(AssertionError):
            self._unsaid(caplog)


def test_no_robot_is_no_failure() -> None:
    assert send_message(Receivers(), MESSAGE, NOW) == []


def test_a_receiver_that_answers_late_is_given_up(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.alerts.http.TIMEOUT_SECONDS", 0.2)
    go_on = threading.Event()

    def late(request: object) -> tuple[int, object]:
        go_on.wait(30)
        return 200, {"errcode": 0}

    robot.receiver.answer = late
    try:
        (delivery,) = send_message(Receivers(dingtalk=ours(robot)), MESSAGE, NOW)
    finally:
        go_on.set()
    assert isinstance(delivery.error, AlertAmbiguousError)
