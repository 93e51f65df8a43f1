"""The whole way by command line: taken, proved, damaged, found out, restored; what programs read, what dry runs leave alone, exit codes."""

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from seawall.cli.site import Site
from seawall.errors import BusyError
from seawall.log.bodies import RETENTION
from seawall.log.verbs import take_lease, tombstone
from seawall.vault.header import HEADER_BYTES
from tests.protect.command_line import RUN, Desk, new_desk, seawall
from tests.protect.little_site import tree


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return new_desk(tmp_path)


def test_from_nothing_to_a_restored_checkpoint(tmp_path: Path) -> None:
    """Four commands, a flipped bit, and the day of the disaster."""
    options = [option for name in "ac" for option in ("--store", f"{name}=file://{tmp_path / name}")]
    begun = seawall("init", *options, "--folder", tmp_path / "site", "--json")
    assert begun.code == 0
    assert set(begun.json) == {"config", "created", "trust_root", "stores", "keys"}
    assert begun.json["created"] and set(begun.json["stores"]) == {"a", "c"}
    desk = Desk(tmp_path)
    desk.checkpoints.mkdir()
    opened = desk("run open", RUN, "--path", desk.checkpoints, "--json").json
    assert (set(opened), opened["epoch"], opened["run"]) == ({"run", "epoch", "entries", "coordination", "digest"}, 1, RUN)

    desk.save(100)
    source = desk.save(200, files={"weights.raw": os.urandom(9_000_000), "empty": b""})
    synced = desk("sync", RUN, "--json").json
    assert set(synced) == {
        "status", "run", "step", "sealing", "files", "plaintext_bytes", "adopted_files", "copies", "missing", "quarantine",
    }  # fmt: skip
    assert (synced["status"], synced["step"], synced["copies"], synced["missing"]) == ("committed", 200, ["a", "c"], {})
    assert synced["plaintext_bytes"] == str(sum(path.stat().st_size for path in source.iterdir()))
    again = desk("sync", RUN, "--json").json
    assert again["status"] == "unchanged" and set(again) == set(synced) and again["sealing"] == synced["sealing"]

    verified = desk("verify", RUN, "--json").json
    assert set(verified) == {"run", "signed", "copies", "failed"} and verified["signed"] and not verified["failed"]
    for copy in verified["copies"]:
        assert set(copy) == {"step", "sealing", "store", "result", "level", "levels", "damages", "why"}
        assert (copy["result"], copy["level"]) == ("ok", "L4")
        assert copy["levels"] == {"L0": "ok", "L1": "not attainable", "L2": "ok", "L3": "ok", "L4": "ok"}
    listed = desk("copies", RUN, "--json").json
    assert listed["recovery_point"]["step"] == 200 and listed["recovery_point"]["level"] == "L4"

    desk.damage("a", "file-2.sea", HEADER_BYTES + 8_400_000)
    found = desk("verify", RUN, "--json", code=4).json
    assert found["failed"] == 1
    bad = next(copy for copy in found["copies"] if copy["store"] == "a")
    assert (bad["result"], bad["level"]) == ("failed", None)
    (damage,) = bad["damages"]
    assert set(damage) == {"object", "file", "records", "tensors", "why"}
    assert (damage["object"], damage["file"], damage["records"]) == ("file-2.sea", "weights.raw", [1])
    said = desk("verify", RUN, "--unsigned", code=4)
    assert "weights.raw record 1" in said.out and "not count as proof" in said.err
    listed = desk("copies", RUN, "--json").json
    assert listed["checkpoints"][0]["copies"]["a"]["state"] == "failed" and listed["recovery_point"]["stores"] == ["c"]

    restored = desk("restore", RUN, tmp_path / "out", "--json").json
    assert set(restored) == {"run", "step", "sealing", "store", "files", "plaintext_bytes", "kept_files", "path", "freshness"}
    assert (restored["store"], restored["step"], restored["freshness"]) == ("c", 200, "proved")
    assert tree(tmp_path / "out") == tree(source)
    inspected = seawall("inspect", tmp_path / "out", "--json")
    assert (inspected.code, inspected.json["verdict"], inspected.json["step"]) == (0, "ok", 200)


def test_one_object_opened_with_a_key_and_nothing_else(desk: Desk) -> None:
    source = desk.save(100)
    desk("sync", RUN)
    sealed = desk.objects("a", "file-2.sea")[0]
    keys = desk.folder / "site" / "keys"
    opened = seawall("open", sealed, desk.folder / "out", "--keyring", keys / "keyring.json", "--json")
    assert opened.code == 0 and set(opened.json) == {"object", "name", "plaintext_bytes", "path", "signature"}
    assert opened.json["name"] == "weights.raw" and "not checked" in opened.err
    assert (desk.folder / "out").read_bytes() == (source / "weights.raw").read_bytes()
    piped = seawall("open", sealed, "-", "--recovery-key", keys / "recovery.key")
    assert piped.raw == (source / "weights.raw").read_bytes()
    desk.damage("a", "file-2.sea", HEADER_BYTES + 1)
    bad = seawall("open", sealed, desk.folder / "bad", "--keyring", keys / "keyring.json", "--json")
    assert bad.code == 4 and bad.json["exit_code"] == 4 and not (desk.folder / "bad").exists()
    assert seawall("open", sealed, desk.folder / "bad", "--json").code == 2


def test_everything_runs_twice(desk: Desk) -> None:
    desk.save(100)
    for _ in range(2):
        options = [option for name in "ac" for option in ("--store", f"{name}=file://{desk.store(name)}")]
        seawall("init", *options, "--folder", desk.folder / "site")
        desk("run open", RUN)
        desk("sync", RUN)
        desk("verify", RUN)
    assert len(desk.objects("a", "manifest.json")) == 1


def test_dry_runs_write_nothing(desk: Desk) -> None:
    desk.save(100)
    before = desk.stored()
    planned = desk("sync", RUN, "--dry-run", "--json").json
    assert set(planned) == {"status", "run", "root", "step", "files", "plaintext_bytes", "stores"}
    assert (planned["status"], planned["step"], planned["stores"]) == ("dry-run", 100, ["a", "c"])
    assert "would seal step 100" in desk("sync", RUN, "--dry-run").out
    assert desk.stored() == before
    desk("sync", RUN)
    desk("verify", RUN)
    before, beside = desk.stored(), sorted(os.listdir(desk.folder))
    planned = desk("restore", RUN, desk.folder / "out", "--dry-run", "--json").json
    assert set(planned) == {"status", "step", "sealing", "store", "level", "freshness"}
    assert (planned["status"], planned["step"], planned["store"], planned["level"]) == ("dry-run", 100, "a", "L4")
    assert "would restore step 100 from a" in desk("restore", RUN, desk.folder / "out", "--dry-run").out
    desk("verify", RUN, "--unsigned")
    assert desk.stored() == before and sorted(os.listdir(desk.folder)) == beside


def test_each_role_alone(desk: Desk) -> None:
    """A writer's host holds no verifier's key; a scrubber's holds no key that opens anything."""
    desk.save(100)
    text = desk.config.read_text()
    desk.config.write_text(text.replace('verifier = "keys/verifier.key"\n', ""))
    desk("sync", RUN)
    refused = desk("verify", RUN, "--json", code=8).json
    assert refused["error"] == "KeyMissingError" and "verifier" in refused["what"]
    desk.config.write_text(text.replace('writer = "keys/writer.key"\n', "").replace('[keys.keyring]\npath = "keys/keyring.json"\n', ""))
    assert desk("sync", RUN, "--json", code=8).json["error"] == "KeyMissingError"
    scrubbed = desk("verify", RUN, "--json").json
    assert [copy["level"] for copy in scrubbed["copies"]] == ["L2", "L2"] and scrubbed["signed"]
    desk.damage("c", "file-2.sea", HEADER_BYTES)
    bad = desk("verify", RUN, "--json", code=4).json["copies"][1]
    assert bad["damages"][0] | {"why": ""} == {"object": "file-2.sea", "file": None, "records": [0], "tensors": [], "why": ""}
    assert desk("verify", RUN, "--level", "L3", "--unsigned", "--store", "a", "--json", code=None).code == 8


class TestExitCodes:
    """From real situations; with --json the object says the same code."""

    def _code(self, desk: Desk, expected: int, error: str, command: str, *arguments: object) -> str:
        done = desk(command, *arguments, "--json", code=expected)
        assert (done.json["exit_code"], done.json["error"]) == (expected, error), done.json
        assert done.json["what"] and set(done.json) == {"error", "outcome", "what", "where", "why", "do", "exit_code"}
        plain = desk(command, *arguments, code=expected)
        assert not plain.out and plain.err.startswith("seawall: ")
        return " ".join(str(done.json[name]) for name in ("what", "where", "why", "do"))

    def test_2_usage(self, desk: Desk) -> None:
        assert "runs here: gpt" in self._code(desk, 2, "UsageError", "sync", "other-run")
        desk.save(100)
        self._code(desk, 2, "UsageError", "sync", RUN, "--codec", "lzma")
        self._code(desk, 2, "UsageError", "sync", RUN, "--no-such-option")
        desk.config.write_text(desk.config.read_text() + "\n[stores.a.nonsense]\nx = 1\n")
        assert "nonsense" in self._code(desk, 2, "ConfigurationError", "sync", RUN)

    def test_3_incomplete(self, desk: Desk) -> None:
        source = desk.save(100, files={"__0_0.distcp": b"half"})
        (source / "_COMMITTED").unlink()
        assert "sync again when the save is over" in self._code(desk, 3, "IncompleteError", "sync", RUN, "--path", source)

    def test_4_corrupt(self, desk: Desk) -> None:
        source = desk.save(100, files={"model.safetensors": (8).to_bytes(8, "little") + b"{}"})
        assert "model.safetensors" in self._code(desk, 4, "CorruptError", "sync", RUN, "--path", source)

    def test_5_hostile(self, desk: Desk) -> None:
        source = desk.save(100)
        (source / "passwd").symlink_to("/etc/passwd")
        assert "passwd" in self._code(desk, 5, "HostileError", "sync", RUN, "--path", source)

    def test_6_no_such_copy(self, desk: Desk) -> None:
        self._code(desk, 6, "NoSuchCopyError", "verify", RUN)
        desk.save(100)
        desk("sync", RUN)
        self._code(desk, 6, "NoSuchCopyError", "restore", RUN, desk.folder / "out")
        self._code(desk, 6, "NoSuchCopyError", "verify", RUN, "--step", 7)

    def test_8_key_missing(self, desk: Desk) -> None:
        desk.save(100)
        (desk.folder / "site" / "keys" / "writer.key").unlink()
        assert "writer.key" in self._code(desk, 8, "KeyMissingError", "sync", RUN)

    def test_10_a_log_that_was_put_back(self, desk: Desk) -> None:
        """The coordination store lost its newest entry: this host remembers it, and the mirror has it."""
        desk.save(100)
        desk("sync", RUN)
        newest = max(desk.store("c").glob(f"runs/{RUN}/log/*.json"))
        newest.unlink()
        assert "the log is shorter than it was" in self._code(desk, 10, "FreshnessError", "sync", RUN)
        shutil.rmtree(desk.folder / "site" / ".state")
        assert "mirror's log goes further" in self._code(desk, 10, "FreshnessError", "restore", RUN, desk.folder / "out", "--unproved")

    def test_10_a_stranger_signed(self, desk: Desk, tmp_path: Path) -> None:
        stranger = new_desk(tmp_path / "stranger")
        for name in "ac":
            shutil.rmtree(desk.store(name))
            shutil.copytree(stranger.store(name), desk.store(name))
        shutil.rmtree(desk.folder / "site" / ".state", ignore_errors=True)
        desk.save(100)
        self._code(desk, 10, "TrustError", "sync", RUN)

    def test_11_unknown_layout(self, desk: Desk) -> None:
        folder = desk.checkpoints / "odd"
        folder.mkdir()
        (folder / "weights.gguf").write_bytes(b"GGUF" + bytes(60))
        text = self._code(desk, 11, "UnknownLayoutError", "sync", RUN, "--path", folder)
        assert "--as-opaque" in text
        sealed = desk("sync", RUN, "--path", folder, "--as-opaque", "--step", 5, "--json").json
        assert sealed["status"] == "committed" and not sealed["quarantine"]
        verified = desk("verify", RUN, "--json").json
        assert [(copy["level"], copy["levels"]["L4"]) for copy in verified["copies"]] == [("L3", "not attainable")] * 2


def test_a_hostile_one_can_be_kept_and_is_no_recovery_point(desk: Desk) -> None:
    source = desk.save(100, files={"model.pt": b"\x80\x02cos\nsystem\nX\x01\x00\x00\x00a\x85R."})
    sealed = desk("sync", RUN, "--path", source, "--as-opaque", "--json").json
    assert sealed["quarantine"].startswith("sealed as opaque")
    desk("verify", RUN)
    assert "quarantined" in desk("restore", RUN, desk.folder / "out", "--json", code=6).json["why"]
    desk("restore", RUN, desk.folder / "out", "--step", 100, "--quarantined")
    assert tree(desk.folder / "out") == tree(source)


def unmounted(desk: Desk, name: str) -> None:
    """A file store whose disk is not there."""
    desk.store(name).rename(desk.folder / f"{name}-away")


def test_a_verify_goes_on_although_a_store_is_down(desk: Desk) -> None:
    desk.save(100)
    desk("sync", RUN)
    unmounted(desk, "a")
    done = desk("verify", RUN, "--json", code=7).json
    assert [(copy["store"], copy["result"], copy["level"]) for copy in done["copies"]] == [("a", "unknown", None), ("c", "ok", "L4")]
    assert "mount it" in done["copies"][0]["why"] and done["signed"] and not done["failed"]
    assert desk("copies", RUN, "--json").json["recovery_point"]["stores"] == ["c"]
    assert not desk.store("a").exists(), "no empty store is made where a disk belongs"
    desk.damage("c", "file-2.sea", HEADER_BYTES)
    both = desk("verify", RUN, code=4)
    assert "step 100 in a: unknown, the folder of the store is not there" in both.out


def test_a_sync_goes_on_although_a_second_store_is_down(tmp_path: Path) -> None:
    desk = new_desk(tmp_path, stores=("a", "b", "c"))
    source = desk.save(100)
    unmounted(desk, "b")
    done = desk("sync", RUN, "--json", code=7).json
    assert (done["status"], done["copies"]) == ("committed", ["a", "c"])
    assert list(done["missing"]) == ["b"] and "mount it" in done["missing"]["b"]
    again = desk("sync", RUN, code=7)
    assert "unchanged" in again.out and "b has no whole copy yet" in again.err
    (desk.folder / "b-away").rename(desk.store("b"))
    filled = desk("sync", RUN, "--json").json
    assert (filled["status"], sorted(filled["copies"]), filled["missing"]) == ("unchanged", ["a", "b", "c"], {})
    desk("restore", RUN, desk.folder / "out", "--unproved", "--store", "b")
    assert tree(desk.folder / "out") == tree(source)


@pytest.mark.parametrize("name", ["a", "c"])
def test_a_sync_needs_its_first_store_and_its_log(desk: Desk, name: str) -> None:
    desk.save(100)
    unmounted(desk, name)
    refused = desk("sync", RUN, "--json", code=7).json
    assert refused["error"] == "StoreRefusedError" and refused["where"].endswith(f"/{name}")
    (desk.folder / f"{name}-away").rename(desk.store(name))
    assert desk("sync", RUN, "--json").json["status"] == "committed"


def test_a_copy_that_was_deleted_is_not_missed(desk: Desk) -> None:
    desk.save(100)
    desk("sync", RUN)
    desk("verify", RUN)
    site = Site(desk.config)
    view, _ = site.view(RUN)
    (sealing,) = view.state.commits
    store, operator, now = site.coordination.store, site.signing_key("operator"), site.clock.now()
    view, lease = take_lease(store, view, "a test", RETENTION, now, now, operator, site.clock)
    with pytest.raises(BusyError, match="lease was lost"):
        tombstone(store, view, sealing, site.place("a").id, "00" * 32, lease.seq, operator, site.clock)
    view, lease = take_lease(store, view, "a test", RETENTION, now, now + timedelta(minutes=5), operator, site.clock)
    tombstone(store, view, sealing, site.place("a").id, "00" * 32, lease.seq, operator, site.clock)
    for path in desk.objects("a", "*"):
        path.unlink()
    done = desk("verify", RUN, "--json").json
    assert [(copy["store"], copy["result"], copy["level"]) for copy in done["copies"]] == [("a", "deleted", None), ("c", "ok", "L4")]
    assert "step 100 in a: deleted, the log has its tombstone" in desk("verify", RUN).out
    assert desk("restore", RUN, desk.folder / "out", "--json").json["store"] == "c"
    desk("restore", RUN, desk.folder / "from-a", "--step", 100, "--store", "a", code=6)
