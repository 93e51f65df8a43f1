"""``seawall keys``: rotation locks nobody out, a rewrap goes on where it stopped, trust changes reach every log."""

import json
import stat
from pathlib import Path
from typing import Any

from seawall.vault.keyring import Keyring
from seawall.vault.signing import SigningKey
from tests.cli.conftest import DemoSite


def recipients(site: DemoSite) -> dict[str, Any]:
    stores = site.good("keys", "show", "gpt")["newest_sealing"]["stores"]
    return {name: (facts["version"], [wrap["id"] for wrap in facts["recipients"]]) for name, facts in stores.items()}


def test_show_lists_this_hosts_keys_and_problems(site: DemoSite) -> None:
    said = site.good("keys", "show")
    assert [key["kind"] for key in said["host"]] == ["keyring", "recovery", "writer", "verifier", "operator", "coordinator"]
    assert all(key["problem"] is None for key in said["host"]) and said["trust_version"] == 1
    (site.folder / "keys/verifier.key").unlink()
    broken = {key["kind"]: key["problem"] for key in site.good("keys", "show")["host"]}
    assert "not on this host" in broken["verifier"] and broken["writer"] is None
    assert "PROBLEM" in site("keys", "show").out


def test_rotate_adds_a_key_and_keeps_the_old_ones(site: DemoSite) -> None:
    path = site.folder / "keys/keyring.json"
    before = Keyring.load(path)
    assert site.good("keys", "rotate", "--dry-run")["status"] == "dry-run" and len(Keyring.load(path).keys) == 1
    said = site.good("keys", "rotate")
    after = Keyring.load(path)
    assert [key.id for key in after.keys] == [before.current.id, said["current"]]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_rewrap_gives_the_new_key_to_every_copy_and_takes_none_away(site: DemoSite) -> None:
    sealing = site.commit(10)
    site.commit(20)
    old = recipients(site)["a"]
    fresh = site.good("keys", "rotate")["current"]
    dry = site.good("keys", "rewrap", "gpt", "--dry-run")
    assert dry["added"] == 4 and recipients(site)["a"] == old
    done = site.good("keys", "rewrap", "gpt")
    assert done["added"] == 4 and done["problems"] == {}
    assert recipients(site) == {"a": (2, [*old[1], fresh]), "c": (2, [*old[1], fresh])}
    a, c = (site.sealing_folder(store, sealing) / "keys-2.json" for store in ("a", "c"))
    assert a.read_bytes() == c.read_bytes()
    assert site.good("keys", "rewrap", "gpt")["added"] == 0


def test_the_new_key_alone_opens_what_was_rewrapped(site: DemoSite) -> None:
    site.commit(10)
    site.good("keys", "rotate")
    path = site.folder / "keys/keyring.json"
    both = Keyring.load(path)
    Keyring([both.current]).replace(path)
    assert site("copies", "gpt", "--step", 10, "--files").code == 8
    both.replace(path)
    site.good("keys", "rewrap", "gpt")
    Keyring([both.current]).replace(path)
    assert site("copies", "gpt", "--step", 10, "--files").code == 0


def test_an_interrupted_rewrap_goes_on_with_the_same_bytes(site: DemoSite) -> None:
    sealing = site.commit(10)
    site.good("keys", "rotate")
    site.good("keys", "rewrap", "gpt")
    a, c = (site.sealing_folder(store, sealing) / "keys-2.json" for store in ("a", "c"))
    c.unlink()
    done = site.good("keys", "rewrap", "gpt")
    assert done["sealings"][0]["added"] == {"c": 2} and done["sealings"][0]["current"] == ["a"]
    assert a.read_bytes() == c.read_bytes()


def test_a_planted_version_is_passed_over_and_keeps_its_number(site: DemoSite) -> None:
    sealing = site.commit(10)
    (site.sealing_folder("c", sealing) / "keys-2.json").write_text("{}")
    site.good("keys", "rotate")
    assert site.good("keys", "rewrap", "gpt")["sealings"][0]["added"] == {"a": 3, "c": 3}
    assert {version for version, _ in recipients(site).values()} == {3}


def test_what_a_revoked_operator_wrapped_counts_no_more_and_is_wrapped_again(site: DemoSite) -> None:
    site.commit(10)
    site.good("keys", "rotate")
    site.good("keys", "rewrap", "gpt")
    root = site.folder / "keys/root.key"
    fresh = site.cli("keys", "new", "operator", site.folder / "keys/op2.key", "--json").document
    site.good("keys", "trust", "add", "operator", fresh["public"], "--root-key", root)
    site.good("keys", "trust", "revoke", site.key_id("operator"), "--reason", "stolen", "--root-key", root)
    refused = site("keys", "rewrap", "gpt", "--json")
    assert refused.code == 8 and refused.document["added"] == 0
    site.edit("keys/operator.key", "keys/op2.key")
    assert site.good("keys", "rewrap", "gpt")["sealings"][0]["added"] == {"a": 3, "c": 3}


def test_rewrap_without_a_key_that_opens_names_every_sealing(site: DemoSite) -> None:
    sealing = site.commit(10)
    path = site.folder / "keys/keyring.json"
    path.unlink()
    Keyring.generate().create(path)
    said = site("keys", "rewrap", "gpt", "--json")
    assert said.code == 8 and list(said.document["problems"]) == [sealing]
    recovered = site("keys", "rewrap", "gpt", "--recovery-key", site.folder / "keys/recovery.key", "--json")
    assert recovered.code == 0 and recovered.document["added"] == 2


def test_a_store_that_is_away_is_rewrapped_later(site: DemoSite) -> None:
    site.commit(10)
    site.good("keys", "rotate")
    (site.folder / "a").rename(site.folder / "away")
    said = site("keys", "rewrap", "gpt", "--json")
    assert said.code == 7 and said.document["sealings"][0]["added"] == {"c": 2}
    (site.folder / "away").rename(site.folder / "a")
    assert site.good("keys", "rewrap", "gpt")["sealings"][0]["added"] == {"a": 2}


def test_new_makes_a_private_file_and_overwrites_nothing(site: DemoSite) -> None:
    path = site.folder / "w2.key"
    said = site.cli("keys", "new", "writer", path, "--json").document
    assert SigningKey.load(path, "writer").key_id == said["id"]
    assert site.cli("keys", "new", "writer", path).code == 2
    assert site.cli("keys", "new", "root", site.folder / "r.key").code == 2


def test_trust_add_and_revoke_reach_stores_and_logs(site: DemoSite) -> None:
    root = site.folder / "keys/root.key"
    fresh = site.cli("keys", "new", "writer", site.folder / "w2.key", "--json").document
    public = site.folder / "w2.pub"
    public.write_text(fresh["public"] + "\n")
    assert site.good("keys", "trust", "add", "writer", public, "--root-key", root, "--dry-run")["version"] == 2
    assert not (site.folder / "a/trust/2.json").exists()
    added = site.good("keys", "trust", "add", "writer", public, "--root-key", root)
    assert (added["status"], added["version"], added["stores"], added["runs"]) == ("changed", 2, {"a": 2, "c": 2}, {"gpt": 2})
    assert site.good("keys", "trust", "add", "writer", public, "--root-key", root)["status"] == "unchanged"
    site.good("keys", "trust", "revoke", fresh["id"], "--reason", "lost", "--root-key", root)
    shown = site.good("keys", "trust", "show")
    assert (shown["version"], shown["stores"], shown["runs"]) == (3, {"a": 3, "c": 3}, {"gpt": 3})
    assert next(key for key in shown["keys"] if key["id"] == fresh["id"])["revoked"] == "lost"
    assert site.good("log", "show", "gpt", "--last", 1)["shown"][0]["kind"] == "trust"


def test_a_trust_change_that_missed_a_store_is_finished_by_the_same_command(site: DemoSite) -> None:
    root = site.folder / "keys/root.key"
    fresh = site.cli("keys", "new", "writer", site.folder / "w2.key", "--json").document
    words = ("keys", "trust", "add", "writer", fresh["public"], "--root-key", root)
    (site.folder / "a").rename(site.folder / "away")
    missed = site(*words, "--json")
    assert missed.code == 7 and missed.document["runs"] == {"gpt": 2} and list(missed.document["problems"]) == ["store a"]
    (site.folder / "away").rename(site.folder / "a")
    finished = site.good(*words)
    assert (finished["status"], finished["stores"]) == ("unchanged", {"a": 2, "c": 2})


def test_only_this_sites_root_key_changes_trust(site: DemoSite) -> None:
    other = site.folder / "other-root.key"
    SigningKey.generate("root").save(other)
    public = SigningKey.generate("writer").public.text()
    assert site("keys", "trust", "add", "writer", public, "--root-key", other).code == 8
    assert site("keys", "trust", "add", "writer", public, "--root-key", site.folder / "keys/operator.key").code == 8
    assert site("keys", "trust", "add", "nobody", public, "--root-key", other).code == 2
    assert site("keys", "trust", "add", "writer", "nonsense", "--root-key", other).code == 2
    assert site.good("keys", "trust", "show")["version"] == 1


def test_two_lists_of_one_number_are_an_incident(site: DemoSite) -> None:
    root = site.folder / "keys/root.key"
    public = SigningKey.generate("writer").public.text()
    site.good("keys", "trust", "add", "writer", public, "--root-key", root)
    path = site.folder / "a/trust/2.json"
    forged = json.loads(path.read_bytes())
    forged["signatures"][0]["sig"] = forged["signatures"][0]["sig"][::-1]
    path.chmod(0o644)
    path.write_text(json.dumps(forged, separators=(",", ":"), sort_keys=True))
    assert site("keys", "trust", "show").code in (4, 10)


def test_a_new_run_begins_with_the_newest_list(site: DemoSite) -> None:
    root = site.folder / "keys/root.key"
    fresh = site.cli("keys", "new", "writer", site.folder / "w2.key", "--json").document
    site.good("keys", "trust", "add", "writer", fresh["public"], "--root-key", root)
    site.good("keys", "trust", "revoke", fresh["id"], "--reason", "lost", "--root-key", root)
    other = site.folder / "other"
    other.mkdir()
    site.good("run", "open", "next", "--path", other)
    assert site.good("keys", "trust", "show")["runs"] == {"gpt": 3, "next": 3}


def test_a_revoked_writer_that_is_still_admitted_is_said(site: DemoSite) -> None:
    said = site("keys", "trust", "revoke", site.key_id("writer"), "--reason", "x", "--root-key", site.folder / "keys/root.key", "--json")
    assert said.code == 0 and "still admitted" in said.err


def test_paths_of_keys_are_private(site: DemoSite) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in Path(site.folder / "keys").iterdir() if path.suffix == ".key"}
    assert set(modes.values()) == {0o600}
