"""Retention and the score by command line, on two folders: what a person types and a program reads."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from seawall.cli.site import Site
from seawall.clock import SystemClock
from seawall.log.verbs import change_trust
from seawall.vault.signing import ROOT, SigningKey
from seawall.vault.trust import sign_list
from tests.protect.command_line import RUN, Desk, new_desk, seawall

LAX = "\n[retention]\nkeep_last = 1\ndaily = 0\nweekly = 0\nmonthly = 0\nlocal_clock = true\n"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Two stores that one event cannot take, three checkpoints, all of them proved."""
    desk = new_desk(tmp_path)
    desk.config.write_text(desk.config.read_text() + LAX)
    for step in (100, 200, 300):
        desk.save(step)
        desk("sync", RUN)
    desk("verify", RUN, "--all")
    return desk


def test_a_young_run_keeps_its_oldest_and_its_newest(desk: Desk) -> None:
    dry = desk("retention plan", RUN, "--dry-run", "--json").json
    assert dry["status"] == "dry-run" and dry["plan"] is None and dry["stopped"] == []
    assert {(item["step"], item["store"]) for item in dry["delete"]} == {(200, "a"), (200, "c")}
    assert {item["step"]: item["protected"] for item in dry["keep"]} == {100: True, 300: True}
    assert not list(desk.store("c").glob("runs/*/records/*"))
    before = desk.stored()
    planned = desk("retention plan", RUN, "--json").json
    assert planned["status"] == "planned" and planned["clock"] == "this host"
    assert desk("retention plan", RUN, "--json").json["status"] == "unchanged"
    name = planned["plan"]["name"]
    desk("retention run", RUN, name, code=3)
    assert desk("retention approve", RUN, name, "--json").json["plan"]["approved"]
    shown = desk("retention show", RUN).out
    assert f"plan {name}" in shown and "step 200 in a" in shown and "approve it" not in shown
    refused = desk("retention run", RUN, name, "--json", code=3).json
    assert "not cooled off" in refused["what"]
    assert desk("retention run", RUN, "--json").json["copies"] == []
    sealed = {key: data for key, data in desk.stored().items() if "/sealings/" in key}
    assert sealed == {key: data for key, data in before.items() if "/sealings/" in key}
    desk("retention show", RUN, "20200101T000000Z-0000000000000000", code=6)


def test_a_run_deletes_the_list_and_no_more(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    name = desk("retention plan", RUN, "--json").json["plan"]["name"]
    desk("retention approve", RUN, name)
    real = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda self: real(self) + timedelta(hours=25))
    done = desk("retention run", RUN, "--json").json
    assert done["exit_code"] == 0 and done["stopped"] == []
    assert {(copy["step"], copy["store"], copy["outcome"]) for copy in done["copies"]} == {(200, "a", "deleted"), (200, "c", "deleted")}
    left = {path.parent.name for path in desk.objects("a", "manifest.json")}
    state = Site(desk.config).view(RUN)[0].state
    assert left == {sealing for sealing, commit in state.commits.items() if commit.step != 200}
    assert "deleted" in desk("copies", RUN).out and "retention" in desk("log show", RUN).out
    desk("restore", RUN, desk.folder / "out", "--step", 300)


def test_two_folders_in_one_room_are_one_copy_and_nothing_goes(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    desk.config.write_text(desk.config.read_text().replace('"a-0"', '"one room"').replace('"c-1"', '"one room"') + LAX)
    for step in (100, 200, 300):
        desk.save(step)
        desk("sync", RUN)
    desk("verify", RUN, "--all")
    plan = desk("retention plan", RUN, "--json").json
    assert plan["status"] == "nothing" and plan["delete"] == []
    assert all("not proved well enough" in " ".join(item["reasons"]) for item in plan["keep"])


def test_without_a_clock_nothing_goes(desk: Desk) -> None:
    desk.config.write_text(desk.config.read_text().replace("local_clock = true", "local_clock = false"))
    assert "nobody can say what time it is" in desk("retention plan", RUN, code=7).err


def test_the_lowest_recorded_loss_is_kept(desk: Desk) -> None:
    for step, loss in ((400, "0.25"), (500, "nan"), (600, "1.5")):
        folder = desk.save(step)
        (folder / "_COMMITTED").write_text(json.dumps({"step": step, "loss": loss}))
        desk("sync", RUN)
    desk("verify", RUN, "--all")
    kept = {item["step"]: " ".join(item["reasons"]) for item in desk("retention plan", RUN, "--dry-run", "--json").json["keep"]}
    assert set(kept) == {100, 400, 600} and "the lowest loss" in kept[400]
    (cache,) = (desk.config.parent / ".state/seawall/losses").glob("*.json")
    assert cache.stat().st_mode & 0o777 == 0o600
    assert b"0.25" not in b"".join(data for key, data in desk.stored().items())
    # A second look opens nothing again.
    for path in desk.objects("a", "inventory.sea") + desk.objects("c", "inventory.sea"):
        path.rename(path.with_suffix(".away"))
    again = {item["step"] for item in desk("retention plan", RUN, "--dry-run", "--json").json["keep"]}
    assert again == {100, 400, 600}


def test_a_hold_is_said(desk: Desk) -> None:
    desk("log hold", RUN, "--reason", "an audit")
    done = desk("retention plan", RUN)
    assert "nothing is deleted: the run is on hold: an audit" in done.err


def test_writing_off_takes_two_people(desk: Desk) -> None:
    keys = desk.config.parent / "keys"
    root, second = SigningKey.load(keys / "root.key", ROOT), SigningKey.generate("operator")
    second.save(keys / "second.key")
    site = Site(desk.config)
    view, _ = site.view(RUN)
    assert view.state.trust is not None
    listed = sign_list(view.state.trust.with_key(second.public, "operator", SystemClock()), root)
    change_trust(site.coordination.store, view, listed, site.signing_key("operator"), site.clock)
    words = ("write-off", RUN, 200, "--reason", "its disk is gone", "--json")
    assert desk("retention", *words).json["status"] == "waiting"
    assert desk("retention", *words).json["status"] == "waiting"
    other = desk.config.with_name("other.toml")
    other.write_text(desk.config.read_text().replace("keys/operator.key", "keys/second.key"))
    done = seawall("retention", *words, "--config", other)
    assert done.code == 0 and done.json["status"] == "written off" and len(done.json["signers"]) == 2
    assert "written off by two people" in desk("copies", RUN).out
    plan = desk("retention plan", RUN, "--dry-run", "--json").json
    assert {item["reason"] for item in plan["delete"]} == {"written off by two people"}


def test_the_score_says_what_is_missing(desk: Desk) -> None:
    scored = desk("score", RUN, "--step", 300, "--json").json["checkpoints"]
    assert [(digit["have"], digit["ok"]) for digit in scored[0]["digits"]] == [(2, False), (1, False), (1, True), (0, False), (0, True)]
    assert scored[0]["score"] == "2-1-1-0-0" and not scored[0]["ok"]
    text = desk("score", RUN).out
    assert "NOT copies: 2 of 3" in text and "ok  errors in recovery verification: 0 of 0" in text
    desk("score", RUN, "--step", 7, code=6)
