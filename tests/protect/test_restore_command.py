"""``seawall restore``: which checkpoint it takes, from which copy, and what is left when everything else is lost."""

import fcntl
import json
import os
import resource
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seawall.clock import SystemClock
from seawall.vault.header import HEADER_BYTES
from tests.protect.command_line import RUN, Desk, new_desk, seawall
from tests.protect.little_site import tree

MIB = 1 << 20


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return new_desk(tmp_path)


def synced(desk: Desk, step: int, level: str | None = "L3", files: dict[str, bytes] | None = None) -> Path:
    """Save, sync, and verify the copies of one step."""
    source = desk.save(step, files)
    desk("sync", RUN, "--path", source)
    if level is not None:
        desk("verify", RUN, "--step", step, "--level", level)
    return source


def test_the_recovery_point_comes_back(desk: Desk) -> None:
    synced(desk, 100)
    source = synced(desk, 200)
    done = desk("restore", RUN, desk.folder / "out", "--json").json
    assert done["step"] == 200 and done["freshness"] == "proved"
    assert tree(desk.folder / "out") == tree(source)


def test_what_is_not_proved_is_refused_until_somebody_says_so(desk: Desk) -> None:
    source = synced(desk, 100, level=None)
    refused = desk("restore", RUN, desk.folder / "out", "--json", code=6).json
    assert refused["error"] == "NoSuchCopyError" and "step 100: no copy was ever proved" in refused["why"]
    assert "--unproved" in refused["do"] and not (desk.folder / "out").exists()
    synced(desk, 200, level="L2")
    assert "L3" in desk("restore", RUN, desk.folder / "out", "--json", code=6).json["what"]
    done = desk("restore", RUN, desk.folder / "unproved", "--unproved", "--json")
    assert done.json["step"] == 200
    done = desk("restore", RUN, desk.folder / "step", "--step", 100, "--json")
    assert "nothing is proved" in done.err and tree(desk.folder / "step") == tree(source)


def test_newer_ones_that_are_not_proved_are_passed_over_aloud(desk: Desk) -> None:
    synced(desk, 100)
    synced(desk, 200, level="L2")
    done = desk("restore", RUN, desk.folder / "out", "--json")
    assert done.json["step"] == 100 and "step 200 is newer and was passed over" in done.err
    assert desk("restore", RUN, desk.folder / "l2", "--level", "L2", "--json").json["step"] == 200


def test_by_step(desk: Desk) -> None:
    for step in (100, 200, 300):
        synced(desk, step, level="L3" if step != 200 else None)
    restored = [
        desk("restore", RUN, desk.folder / f"out-{number}", *options, "--json").json["step"]
        for number, options in enumerate(
            [
                ("--step", 200),
                ("--nearest", 299),
                ("--nearest", 300),
                ("--nearest", 10**9),
                ("--nearest", 299, "--unproved"),
                ("--level", "L2", "--nearest", 150),
            ]
        )
    ]
    assert restored == [200, 100, 300, 300, 200, 100]
    for options in (("--step", 150), ("--nearest", 99), ("--nearest", 99, "--unproved")):
        desk("restore", RUN, desk.folder / "none", *options, code=6)
    assert desk("restore", RUN, desk.folder / "none", "--level", "L9", code=2).err
    assert not (desk.folder / "none").exists()


def test_a_quarantined_one_is_refused_until_somebody_insists(desk: Desk) -> None:
    synced(desk, 100)
    source = synced(desk, 200)
    sealing = desk("copies", RUN, "--json").json["checkpoints"][0]["sealing"]
    desk("log quarantine", RUN, sealing, "--reason", "loss spike")
    assert desk("restore", RUN, desk.folder / "older", "--json").json["step"] == 100
    refused = desk("restore", RUN, desk.folder / "out", "--step", 200, "--json", code=6).json
    assert "quarantined: loss spike" in refused["why"] and "--quarantined" in refused["do"]
    done = desk("restore", RUN, desk.folder / "out", "--step", 200, "--quarantined", "--json")
    assert "quarantined" in done.err and tree(desk.folder / "out") == tree(source)


@pytest.mark.parametrize("at", [HEADER_BYTES + 10, 14, -1, -100], ids=["record", "key id", "trailer", "tail"])
def test_a_damaged_copy_gives_way_to_the_next(desk: Desk, at: int) -> None:
    source = synced(desk, 100)
    desk.damage("a", "file-2.sea", at)
    done = desk("restore", RUN, desk.folder / "out", "--json")
    assert done.json["store"] == "c" and tree(desk.folder / "out") == tree(source)
    assert "the copy in a cannot be used" in done.err and "weights.raw" in done.err


def test_a_copy_that_nothing_is_proved_about_is_the_last_resort(desk: Desk) -> None:
    source = desk.save(100)
    desk("sync", RUN, "--path", source)
    desk("verify", RUN, "--level", "L3", "--store", "a")
    desk.damage("a", "file-2.sea", HEADER_BYTES)
    done = desk("restore", RUN, desk.folder / "out", "--json")
    assert done.json["store"] == "c" and tree(desk.folder / "out") == tree(source)


def test_both_copies_damaged(desk: Desk) -> None:
    synced(desk, 100)
    for name in "ac":
        desk.damage(name, "file-2.sea", HEADER_BYTES)
    refused = desk("restore", RUN, desk.folder / "out", "--json", code=4).json
    assert refused["error"] == "CorruptError" or refused["error"] == "DamagedRecordError"
    assert "weights.raw" in refused["where"] and "record 0" in refused["what"]
    assert not (desk.folder / "out").exists()


def test_a_named_store_gives_the_newest_that_is_proved_there(desk: Desk) -> None:
    synced(desk, 100)
    desk("sync", RUN, "--path", desk.save(200))
    desk("verify", RUN, "--step", 200, "--level", "L3", "--store", "a")
    assert desk("restore", RUN, desk.folder / "from-a", "--store", "a", "--json").json["step"] == 200
    done = desk("restore", RUN, desk.folder / "from-c", "--store", "c", "--json")
    assert (done.json["step"], done.json["store"]) == (100, "c")
    assert "proved copies are in other stores" in done.err


def test_one_file_and_one_range(desk: Desk) -> None:
    content = os.urandom(8 * MIB + 100)
    synced(desk, 100, files={"deep/large": content, "v": b"small"})
    whole = desk("restore", RUN, desk.folder / "file", "--file", "deep/large", "--json").json
    assert (desk.folder / "file").read_bytes() == content
    assert (whole["files"], whole["plaintext_bytes"]) == (1, str(len(content)))
    for text, expected in {
        "0:0": b"",
        "0:1": content[:1],
        f"{8 * MIB - 1}:2": content[8 * MIB - 1 : 8 * MIB + 1],
        f"{8 * MIB + 99}:500": content[-1:],
        f"{9 * MIB}:5": b"",
    }.items():
        done = desk("restore", RUN, "-", "--file", "deep/large", "--range", text)
        assert done.raw == expected, text
    for text in ("5", "a:b", "-1:5", "1:", ":1", "1:2:3"):
        desk("restore", RUN, "-", "--file", "deep/large", "--range", text, code=2)
    assert desk("restore", RUN, desk.folder / "none", "--file", "large", "--json", code=6).json["where"] == "large"
    desk("restore", RUN, desk.folder / "file", "--file", "v", code=2)
    assert (desk.folder / "file").read_bytes() == content


class TestAlone:
    """Everything is lost but one store, the trust root and a key."""

    @pytest.fixture
    def lost(self, desk: Desk) -> tuple[Desk, str, Path]:
        source = synced(desk, 100)
        root = next(line.split('"')[1] for line in desk.config.read_text().splitlines() if line.startswith("trust_root"))
        keys = desk.folder / "safe"
        (desk.folder / "site" / "keys").rename(keys)
        shutil.rmtree(desk.folder / "site")
        return desk, root, source

    def _restore(self, desk: Desk, root: str, store: str, *options: object) -> tuple[int, dict[str, str], str]:
        url = f"file://{desk.store(store)}"
        done = seawall("restore", RUN, desk.folder / "out", "--trust-root", root, "--store", url, *options, "--json")
        return done.code, done.json, done.err

    @pytest.mark.parametrize("option", [("--keyring", "keyring.json"), ("--recovery-key", "recovery.key")])
    def test_from_the_coordination_store(self, lost: tuple[Desk, str, Path], option: tuple[str, str]) -> None:
        desk, root, source = lost
        shutil.rmtree(desk.store("a"))
        code, done, err = self._restore(desk, root, "c", option[0], desk.folder / "safe" / option[1])
        assert (code, done["freshness"]) == (0, "unproved"), err
        assert "freshness unproved" in err
        assert tree(desk.folder / "out") == tree(source)

    def test_from_a_mirror(self, lost: tuple[Desk, str, Path]) -> None:
        """A mirror has log and proofs, so nothing has to be taken on somebody's word."""
        desk, root, source = lost
        shutil.rmtree(desk.store("c"))
        key = ("--recovery-key", desk.folder / "safe" / "recovery.key")
        code, done, err = self._restore(desk, root, "a", *key)
        assert (code, done["freshness"]) == (0, "unproved"), err
        assert tree(desk.folder / "out") == tree(source)

    def test_another_trust_root_opens_nothing(self, lost: tuple[Desk, str, Path], tmp_path: Path) -> None:
        desk, _, _ = lost
        other = new_desk(tmp_path / "other")
        root = next(line.split('"')[1] for line in other.config.read_text().splitlines() if line.startswith("trust_root"))
        code, refused, _ = self._restore(desk, root, "c", "--recovery-key", desk.folder / "safe" / "recovery.key")
        assert code == 10 and refused["error"] == "TrustError"

    def test_another_key_opens_nothing(self, lost: tuple[Desk, str, Path], tmp_path: Path) -> None:
        desk, root, _ = lost
        other = new_desk(tmp_path / "other")
        keyring = other.folder / "site" / "keys" / "keyring.json"
        code, refused, _ = self._restore(desk, root, "c", "--keyring", keyring)
        assert code == 8 and refused["error"] == "KeyMissingError"
        assert not (desk.folder / "out").exists()

    def test_no_key_is_a_usage_error(self, lost: tuple[Desk, str, Path]) -> None:
        desk, root, _ = lost
        assert self._restore(desk, root, "c")[0] == 2


def test_a_lost_keyring_leaves_the_recovery_key(desk: Desk) -> None:
    source = synced(desk, 100)
    keys = desk.folder / "site" / "keys"
    (keys / "keyring.json").unlink()
    refused = desk("restore", RUN, desk.folder / "out", "--json", code=8).json
    assert refused["error"] == "KeyMissingError"
    desk("restore", RUN, desk.folder / "out", "--recovery-key", keys / "recovery.key")
    assert tree(desk.folder / "out") == tree(source)


def test_odd_names_links_and_modes(desk: Desk) -> None:
    source = desk.save(100, files={"plain": b"1", "é層\n": b"2", os.fsdecode(b"raw-\xff"): b"3"})
    (source / "plain").chmod(0o640)
    (source / "nothing").mkdir(mode=0o750)
    (source / "link").symlink_to("plain")
    with (source / "sparse").open("wb") as sparse:
        sparse.truncate(9 * MIB)
    desk("sync", RUN, "--path", source)
    done = desk("verify", RUN, "--level", "L4", "--json").json
    assert [copy["level"] for copy in done["copies"]] == ["L4", "L4"]
    desk("restore", RUN, desk.folder / "out")
    assert tree(desk.folder / "out") == tree(source)


def test_a_busy_target(desk: Desk) -> None:
    synced(desk, 100)
    sealing = desk("copies", RUN, "--json").json["checkpoints"][0]["sealing"]
    beside = desk.folder / f".out.seawall-restore-{sealing[:12]}"
    beside.mkdir()
    with (beside / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert desk("restore", RUN, desk.folder / "out", "--json", code=9).json["error"] == "BusyError"
    desk("restore", RUN, desk.folder / "out")


def test_a_full_disk(desk: Desk) -> None:
    """RLIMIT_FSIZE plays it: a write beyond the limit fails as it does on a full disk."""
    synced(desk, 100, files={"large": os.urandom(3 * MIB), "small": b"1"})
    command = [sys.executable, "-m", "seawall.cli.entry", "restore", RUN, str(desk.folder / "out"), "--json", "--config", str(desk.config)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB)),
    )
    refused = json.loads(done.stdout)
    assert done.returncode == refused["exit_code"] == 1
    assert refused["what"] == "a rebuilt file cannot be written" and refused["where"] == "large" and refused["why"]
    assert "Traceback" not in done.stderr and not (desk.folder / "out").exists()
    desk("restore", RUN, desk.folder / "out")


def test_proofs_lapse(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    synced(desk, 100)

    def later(days: float) -> None:
        moment = datetime.now(UTC) + timedelta(days=days)
        monkeypatch.setattr(SystemClock, "now", lambda self: moment)

    later(6)
    desk("restore", RUN, desk.folder / "out")
    later(8)
    assert "lapsed" in desk("restore", RUN, desk.folder / "late", "--json", code=6).json["why"]
    desk("verify", RUN, "--level", "L2")
    desk("restore", RUN, desk.folder / "late")
    later(-1)
    desk("restore", RUN, desk.folder / "before", "--json", code=6)


def test_a_store_that_is_down_is_passed_over(desk: Desk) -> None:
    source = synced(desk, 100)
    desk.store("a").rename(desk.folder / "a-away")
    done = desk("restore", RUN, desk.folder / "out", "--json")
    assert (done.json["store"], done.json["freshness"]) == ("c", "proved")
    assert "store a is passed over" in done.err and "mount it" in done.err
    assert tree(desk.folder / "out") == tree(source)


def test_proved_copies_that_are_all_down_leave_the_older_checkpoint(desk: Desk) -> None:
    """What is newer and was only proved where nobody can reach it now is said aloud, not taken on trust."""
    source = synced(desk, 100)
    desk("sync", RUN, "--path", desk.save(200))
    desk("verify", RUN, "--step", 200, "--level", "L3", "--store", "a")
    desk.store("a").rename(desk.folder / "a-away")
    done = desk("restore", RUN, desk.folder / "out", "--json")
    assert done.json["step"] == 100 and "step 200 is newer and was passed over: its proved copies are in other stores" in done.err
    assert tree(desk.folder / "out") == tree(source)
    assert desk("restore", RUN, desk.folder / "newer", "--unproved", "--json").json["step"] == 200
