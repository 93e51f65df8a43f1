"""``seawall alerts test``: to each receiver one, and what is said when one does not take it."""

from datetime import UTC, datetime

import pytest

from seawall.alerts.configuration import SECRET, WEBHOOK
from seawall.testing.local_server import free_port
from tests.alerts.receivers import Receiver, Robot, listening
from tests.cli.conftest import DemoSite

TOKEN, KEY = "5e" * 32, "SEC" + "77" * 32


def test_each_receiver_is_told(site: DemoSite, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot(TOKEN, KEY, datetime.now(UTC).timestamp())
    with listening(Receiver()) as manager, listening(robot.receiver):
        site.config.write_text(site.config.read_text() + f'\n[alerts]\nalertmanager = ["{manager.url}"]\n')
        monkeypatch.setenv(WEBHOOK, robot.webhook)
        monkeypatch.setenv(SECRET, KEY)
        done = site.good("alerts", "test")
    assert [delivery["sent"] for delivery in done["deliveries"]] == [True, True]
    (alert,) = manager.requests[0].body
    assert alert["labels"]["alertname"] == "SeawallTest" and alert["endsAt"] > alert["startsAt"]
    assert "a test" in robot.texts[0]
    assert TOKEN not in str(done) and KEY not in str(done)


def test_one_that_is_away(site: DemoSite) -> None:
    site.config.write_text(site.config.read_text() + f'\n[alerts]\nalertmanager = ["http://127.0.0.1:{free_port()}"]\n')
    said = site("alerts", "test")
    assert said.code == 7 and "was not told" in said.err and "cannot be reached" in said.err


def test_nobody_to_tell(site: DemoSite) -> None:
    said = site("alerts", "test", "--json")
    assert said.code == 2 and said.document["what"] == "nobody is to be told"


def test_credentials_in_the_file_are_refused(site: DemoSite) -> None:
    site.config.write_text(site.config.read_text() + '\n[alerts]\nalertmanager = ["http://u:word@h:1"]\n')  # pragma: allowlist secret
    said = site("alerts", "test", "--json")
    assert said.code == 2 and "credentials do not stand in this file" in said.document["why"] and "word" not in said.document["why"]
