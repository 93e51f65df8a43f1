"""``seawall log``: reading, comparing, mirroring, and what people append."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import DemoSite


def entry(folder: Path, seq: int) -> Path:
    return folder / f"{seq:016d}.json"


def test_show_prints_the_newest_entries_with_signers(site: DemoSite) -> None:
    said = site.good("log", "show", "gpt")
    assert [item["kind"] for item in said["shown"]] == ["genesis", "epoch"]
    assert [item["role"] for item in said["shown"]] == ["coordinator", "coordinator"]
    assert said["freshness"] == "proved"
    site.commit(10)
    last = site.good("log", "show", "gpt", "--last", 1)
    assert [item["kind"] for item in last["shown"]] == ["commit"] and last["entries"] == 3
    assert last["shown"][0]["body"]["step"] == "10"
    assert len(site.good("log", "show", "gpt", "--last", 0)["shown"]) == 3
    text = site("log", "show", "gpt")
    assert text.code == 0 and "step 10" in text.out and "3 entries, epoch 1" in text.out


def test_hold_and_lift(site: DemoSite) -> None:
    assert site.good("log", "hold", "gpt", "--reason", "audit", "--dry-run")["status"] == "dry-run"
    assert site.good("log", "show", "gpt")["entries"] == 2
    held = site.good("log", "hold", "gpt", "--reason", "audit")
    assert (held["status"], held["entries"]) == ("appended", 3)
    again = site.good("log", "hold", "gpt", "--reason", "audit")
    assert (again["status"], again["operation"], again["entries"]) == ("unchanged", held["operation"], 3)
    lifted = site.good("log", "lift", "gpt", held["operation"][:8], "--reason", "done")
    assert lifted["status"] == "appended"
    assert site.good("log", "lift", "gpt", held["operation"], "--reason", "done")["status"] == "unchanged"
    anew = site.good("log", "hold", "gpt", "--reason", "audit")
    assert anew["status"] == "appended" and anew["operation"] != held["operation"]
    assert site("log", "lift", "gpt", "0" * 8, "--reason", "x").code == 6
    assert site("log", "lift", "gpt", "7", "--reason", "x").code == 2


def test_marks_reach_the_mirror(site: DemoSite) -> None:
    held = site.good("log", "hold", "gpt", "--reason", "audit")
    assert held["mirrors_behind"] == {}
    assert entry(site.log_folder("a"), 3).read_bytes() == entry(site.log_folder("c"), 3).read_bytes()


def test_quarantine_by_step_and_by_sealing(site: DemoSite) -> None:
    first, second = site.commit(10), site.commit(20)
    assert site.good("log", "quarantine", "gpt", 20, "--reason", "loss spike")["status"] == "appended"
    assert site.good("log", "quarantine", "gpt", first[:8], "--reason", "bad gpu")["status"] == "appended"
    rows = {row["sealing"]: row["quarantine"] for row in site.good("copies", "gpt")["checkpoints"]}
    assert rows == {first: ["bad gpu"], second: ["loss spike"]}
    assert site("log", "quarantine", "gpt", 30, "--reason", "x").code == 6
    assert site("log", "quarantine", "gpt", 20, "--reason", "").code == 2
    assert site("log", "quarantine", "gpt", "not-an-id", "--reason", "x").code == 2


def test_a_step_that_was_sealed_twice_must_be_named_by_its_sealing(site: DemoSite) -> None:
    first = site.commit(10)
    source = site.source / "step_10" / "model.safetensors"
    source.write_bytes(source.read_bytes()[:-4] + b"\0\0\0\0")
    second = site.good("sync", "gpt", "--path", source.parent, "--step", 10)["sealing"]
    assert first != second
    said = site("log", "quarantine", "gpt", 10, "--reason", "x")
    assert said.code == 2 and first in said.err and second in said.err


def test_a_verifier_may_quarantine_and_not_lift(site: DemoSite) -> None:
    site.commit(10)
    site.edit('operator = "keys/operator.key"\n', "")
    marked = site.good("log", "quarantine", "gpt", 10, "--reason", "checksums differ")
    assert site.good("log", "show", "gpt", "--last", 1)["shown"][0]["role"] == "verifier"
    assert site("log", "lift", "gpt", marked["operation"], "--reason", "x").code == 8


def test_a_new_epoch_needs_a_yes(site: DemoSite) -> None:
    asked = site("log", "epoch", "gpt", "--reason", "zone a is lost", "--json")
    assert asked.code == 2 and "--yes" in asked.document["what"]
    plan = site.good("log", "epoch", "gpt", "--reason", "zone a is lost", "--dry-run")
    assert (plan["closes"], plan["opens"], plan["stay"]) == (1, 2, [site.key_id("writer")])
    assert site.good("log", "show", "gpt")["epoch"] == 1


def test_a_new_epoch_fences_the_old_writer(site: DemoSite) -> None:
    old = site.key_id("writer")
    fresh = site.cli("keys", "new", "writer", site.folder / "b.key", "--json").document
    site.good("keys", "trust", "add", "writer", fresh["public"], "--root-key", site.folder / "keys/root.key")
    plan = site("log", "epoch", "gpt", "--reason", "moved", "--writer", fresh["id"], "--yes", "--json")
    assert plan.code == 0
    assert (plan.document["fenced"], plan.document["admitted"]) == ([old], [fresh["id"]])
    assert plan.document["epoch"] == 2
    again = site.good("log", "epoch", "gpt", "--reason", "moved", "--writer", fresh["id"], "--operation", plan.document["operation"])
    assert (again["status"], again["epoch"]) == ("unchanged", 2)
    fenced = site("sync", "gpt", "--path", site.source, "--step", 1, "--json")
    assert fenced.code != 0


@pytest.mark.parametrize("arguments", [["--writer", "0" * 32, "--yes"], ["--operation", "x", "--yes"]])
def test_an_epoch_refuses_what_cannot_be_meant(site: DemoSite, arguments: list[str]) -> None:
    assert site("log", "epoch", "gpt", "--reason", "x", *arguments).code == 2
    assert site.good("log", "show", "gpt")["epoch"] == 1


def test_an_epoch_admits_no_key_of_another_role(site: DemoSite) -> None:
    said = site("log", "epoch", "gpt", "--reason", "x", "--writer", site.key_id("verifier"), "--yes")
    assert said.code == 2 and "verifier" in said.err


def test_mirror_catches_up_and_says_how_far_it_was(site: DemoSite) -> None:
    site.good("log", "hold", "gpt", "--reason", "audit")
    entry(site.log_folder("a"), 3).unlink()
    assert site.good("log", "mirror", "gpt", "--dry-run")["mirrors"]["a"] == {"before": 2, "now": 2, "copied": 0, "proofs": 0}
    assert not entry(site.log_folder("a"), 3).exists()
    assert site.good("log", "mirror", "gpt")["mirrors"]["a"] == {"before": 2, "now": 3, "copied": 1, "proofs": 0}
    assert site.good("log", "mirror", "gpt")["mirrors"]["a"]["copied"] == 0


def test_an_unreachable_mirror_is_said_and_counts(site: DemoSite) -> None:
    (site.folder / "a").rename(site.folder / "unmounted")
    said = site("log", "mirror", "gpt", "--json")
    assert said.code == 7 and list(said.document["unreachable"]) == ["a"]
    verified = site("log", "verify", "gpt", "--json")
    assert verified.code == 7 and verified.document["incidents"] == []
    held = site.good("log", "hold", "gpt", "--reason", "audit")
    assert list(held["mirrors_behind"]) == ["a"]
    assert not (site.folder / "a").exists(), "a folder that is not mounted is never made anew"


def test_verify_compares_every_store(site: DemoSite) -> None:
    site.good("log", "hold", "gpt", "--reason", "audit")
    said = site.good("log", "verify", "gpt")
    assert said["stores"] == {
        "c": {"entries": 3, "behind": 0, "authority": True},
        "a": {"entries": 3, "behind": 0, "authority": False},
    }
    entry(site.log_folder("a"), 3).unlink()
    assert site.good("log", "verify", "gpt")["stores"]["a"]["behind"] == 1


def test_verify_counts_no_further_than_there_are_entries(site: DemoSite) -> None:
    """One object whose name is the highest number there can be: a set of all that lacks before it would fill the memory."""
    entry(site.log_folder("a"), 10**16 - 1).write_bytes(b"{}")
    said = site("log", "verify", "gpt", "--json")
    assert said.code == 10 and any("entries 3 to 9999999999999998 are missing" in text for text in said.document["incidents"])


def altered(site: DemoSite) -> None:
    path = entry(site.log_folder("a"), 2)
    document = json.loads(path.read_bytes())
    path.chmod(0o644)
    path.write_text(json.dumps(document))


def holed(site: DemoSite) -> None:
    entry(site.log_folder("a"), 2).unlink()


def put_back(site: DemoSite) -> None:
    entry(site.log_folder("c"), 3).unlink()


def mirror_ahead(site: DemoSite) -> None:
    entry(site.log_folder("a"), 4).write_bytes(entry(site.log_folder("a"), 3).read_bytes())


@pytest.mark.parametrize(
    ("damage", "word"),
    [(altered, "other bytes"), (holed, "is missing"), (put_back, "older than"), (mirror_ahead, "entry 4 is not in")],
)
def test_verify_finds_what_was_changed_after_the_fact(site: DemoSite, damage: object, word: str) -> None:
    site.good("log", "hold", "gpt", "--reason", "audit")
    assert callable(damage)
    damage(site)
    said = site("log", "verify", "gpt", "--json")
    assert said.code == 10
    assert any(word in incident for incident in said.document["incidents"]), said.document
    assert "incident" in site("log", "verify", "gpt").out


def test_verify_reads_a_log_that_has_a_hole_as_an_incident(site: DemoSite) -> None:
    entry(site.log_folder("c"), 1).unlink()
    assert site("log", "verify", "gpt", "--json").code == 10


def test_an_unknown_run_is_a_usage_error(site: DemoSite) -> None:
    for command in (("show",), ("verify",), ("mirror",), ("hold", "--reason", "x"), ("epoch", "--reason", "x")):
        assert site("log", command[0], "nope", *command[1:]).code == 2
