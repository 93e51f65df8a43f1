"""``seawall respond``: from a damaged record to a healed and proved copy, with everybody told; and what is done about the rest."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from seawall.alerts.configuration import SECRET, WEBHOOK
from seawall.testing.local_server import free_port
from seawall.vault.header import HEADER_BYTES
from tests.alerts.receivers import Receiver, Robot, listening
from tests.protect.command_line import RUN, Desk, new_desk

TOKEN, KEY = "5e" * 32, "SEC" + "77" * 32


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = new_desk(tmp_path)
    desk.save(100, files={"small": os.urandom(3000)})
    desk("sync", RUN)
    desk("verify", RUN)
    return desk


@pytest.fixture
def manager(desk: Desk) -> Iterator[Receiver]:
    with listening(Receiver()) as receiver:
        desk.config.write_text(desk.config.read_text() + f'\n[alerts]\nalertmanager = ["{receiver.url}"]\n')
        yield receiver


@pytest.fixture
def robot(monkeypatch: pytest.MonkeyPatch) -> Iterator[Robot]:
    made = Robot(TOKEN, KEY, datetime.now(UTC).timestamp())
    with listening(made.receiver):
        monkeypatch.setenv(WEBHOOK, made.webhook)
        monkeypatch.setenv(SECRET, KEY)
        yield made


def damage(desk: Desk, *names: str) -> None:
    for name in names or ("a",):
        desk.damage(name, "file-1.sea", HEADER_BYTES + 5)
    desk("verify", RUN, code=4)


def answers(document: dict[str, Any], response: str) -> list[tuple[str, str]]:
    return [(answer["store"], answer["status"]) for answer in document["answers"] if answer["response"] == response]


def standing(manager: Receiver) -> set[tuple[str, str]]:
    """Name and store of the alerts of the last request that are not over."""
    return {
        (alert["labels"]["alertname"], alert["labels"].get("store", "")) for alert in manager.requests[-1].body if "endsAt" not in alert
    }


def test_from_damage_to_a_proved_copy_with_everybody_told(desk: Desk, manager: Receiver, robot: Robot) -> None:
    damage(desk)
    done = desk("respond", RUN, "--json").json
    assert answers(done, "heal") == [("a", "done")] and not done["incidents"]
    assert all(delivery["sent"] for delivery in done["deliveries"])
    assert standing(manager) == {("SeawallCopyDamaged", "a")}
    (text,) = robot.texts
    assert "**heal** step 100 in a: done" in text and "- file-1.sea record 0 from c" in text
    assert TOKEN not in str(done) and KEY not in str(done)
    assert desk("verify", RUN, "--store", "a", "--json").json["copies"][0]["level"] == "L4"
    again = desk("respond", RUN, "--json").json
    assert again["verdict"] != "failed" and not answers(again, "heal")
    assert standing(manager) == set(), "resolved once it is proved"
    assert len(robot.texts) == 1, "nothing happened, so nothing is told"


def test_a_healed_copy_that_is_not_proved_yet_is_not_healed_twice(desk: Desk) -> None:
    damage(desk)
    desk("respond", RUN)
    done = desk("respond", RUN, "--json").json
    assert answers(done, "heal") == [("a", "nothing to do")]


def test_a_dry_run_tells_nobody(desk: Desk, manager: Receiver, robot: Robot) -> None:
    damage(desk)
    before = desk.stored()
    done = desk("respond", RUN, "--dry-run", "--json").json
    assert answers(done, "heal") == [("a", "would do")]
    assert desk.stored() == before and not manager.requests and not robot.receiver.requests


def test_no_alerts(desk: Desk, manager: Receiver) -> None:
    damage(desk)
    assert desk("respond", RUN, "--no-alerts", "--json").json["deliveries"] == []
    assert not manager.requests


def test_no_good_copy_is_an_incident(desk: Desk, manager: Receiver) -> None:
    damage(desk, "a", "c")
    before = desk.stored()
    done = desk("respond", RUN, "--json", code=4).json
    assert [answer["status"] for answer in done["answers"] if answer["response"] == "incident"] == ["done"]
    after = desk.stored()
    new = {name for name in after if after[name] != before.get(name)}
    assert new and all("/records/incident/" in name for name in new), "nothing was overwritten"
    assert ("SeawallNoGoodCopy", "") in standing(manager)


def test_a_receiver_that_is_away_breaks_nothing(desk: Desk) -> None:
    desk.config.write_text(desk.config.read_text() + f'\n[alerts]\nalertmanager = ["http://127.0.0.1:{free_port()}"]\n')
    damage(desk)
    said = desk("respond", RUN)
    assert "heal step 100 in a: done" in said.out and "was not told" in said.err


def test_a_checkpoint_that_is_not_committed_in_time_calls_for_a_sync(desk: Desk) -> None:
    late = desk.save(200, files={"small": b"2"})
    for path in (*late.iterdir(), late):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    done = desk("respond", RUN, "--json").json
    assert done["catch_up"] and [answer["status"] for answer in done["answers"] if answer["response"] == "catch_up"] == ["handed on"]
    desk("sync", RUN)
    assert not desk("respond", RUN, "--json").json["catch_up"]


def test_nothing_to_do(desk: Desk) -> None:
    assert desk("respond", RUN, "--json").json["incidents"] == []
