"""``seawall copies``: levels as they are now, the recovery point, and what it costs."""

from datetime import UTC, datetime, timedelta

import pytest

from seawall.testing.fake_clock import FakeClock
from tests.cli.conftest import DemoSite


def test_a_run_without_checkpoints(site: DemoSite) -> None:
    said = site.good("copies", "gpt")
    assert (said["checkpoints"], said["recovery_point"], said["total"]) == ([], None, 0)
    assert "no checkpoint yet" in site("copies", "gpt").out


def test_levels_and_the_recovery_point(site: DemoSite) -> None:
    site.commit(10)
    site.good("verify", "gpt", "--all", "--level", "L3")
    site.commit(20)
    said = site.good("copies", "gpt")
    newer, older = said["checkpoints"]
    assert said["recovery_point"] == {"step": 10, "sealing": older["sealing"], "level": "L3", "stores": ["a", "c"]} or (
        set(said["recovery_point"]["stores"]) == {"a", "c"} and said["recovery_point"]["step"] == 10
    )
    assert (older["recovery_point"], newer["recovery_point"]) == (True, False)
    assert newer["why_not"] == "no copy was ever proved"
    assert {name: copy["state"] for name, copy in newer["copies"].items()} == {"a": "never proved", "c": "never proved"}
    assert {name: copy["level"] for name, copy in older["copies"].items()} == {"a": "L3", "c": "L3"}
    text = site("copies", "gpt").out
    assert "* step        10" in text and "not the recovery point: no copy was ever proved" in text


def test_a_failed_copy_is_named(site: DemoSite) -> None:
    sealing = site.commit(10)
    site.good("verify", "gpt", "--level", "L3")
    damaged = max(site.sealing_folder("a", sealing).glob("file-*.sea"), key=lambda path: path.stat().st_size)
    damaged.chmod(0o644)
    raw = bytearray(damaged.read_bytes())
    raw[200] ^= 1
    damaged.write_bytes(raw)
    assert site("verify", "gpt", "--store", "a").code == 4
    said = site.good("copies", "gpt")
    (row,) = said["checkpoints"]
    assert row["copies"]["a"]["state"] == "failed" and row["copies"]["a"]["failed"]["level"] == "L2"
    assert said["recovery_point"]["stores"] == ["c"]
    assert "a FAILED L2" in site("copies", "gpt").out


def test_a_level_lapses(site: DemoSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site.commit(10)
    site.good("verify", "gpt", "--level", "L3")
    later = FakeClock(datetime.now(UTC) + timedelta(days=8))
    monkeypatch.setattr("seawall.cli.site.SystemClock", lambda: later)
    said = site.good("copies", "gpt")
    assert {copy["state"] for copy in said["checkpoints"][0]["copies"].values()} == {"lapsed"}
    assert said["recovery_point"] is None


def test_quarantined_ones_are_passed_over_and_said(site: DemoSite) -> None:
    site.commit(10)
    site.commit(20)
    site.good("verify", "gpt", "--all", "--level", "L3")
    site.good("log", "quarantine", "gpt", 20, "--reason", "loss spike")
    said = site.good("copies", "gpt")
    assert said["recovery_point"]["step"] == 10
    assert said["checkpoints"][0]["why_not"] == "quarantined: loss spike"


@pytest.mark.slow
def test_the_newest_twenty_unless_all_are_asked_for(site: DemoSite) -> None:
    for step in range(1, 23):
        site.commit(step)
    said = site.good("copies", "gpt")
    assert [row["step"] for row in said["checkpoints"]] == list(range(22, 2, -1)) and said["total"] == 22
    assert "2 older ones" in site("copies", "gpt").out
    assert len(site.good("copies", "gpt", "--all")["checkpoints"]) == 22


def test_files_come_from_the_inventory(site: DemoSite) -> None:
    site.commit(10)
    said = site.good("copies", "gpt", "--step", 10, "--files")
    assert {file["name"]: file["size"] for file in said["files"]} == {
        "_COMMITTED": "0",
        "model.safetensors": str((site.source / "step_10/model.safetensors").stat().st_size),
    }
    assert site("copies", "gpt", "--files").code == 2
    (site.folder / "keys/keyring.json").unlink()
    assert site("copies", "gpt", "--step", 10, "--files").code == 8
    assert site.good("copies", "gpt", "--step", 10)["total"] == 1
    recovery = site.folder / "keys/recovery.key"
    assert site.good("copies", "gpt", "--step", 10, "--files", "--recovery-key", recovery)["files"] == said["files"]


def test_a_store_that_is_away_keeps_its_name(site: DemoSite) -> None:
    site.commit(10)
    site.good("verify", "gpt", "--level", "L3")
    assert list(site.good("copies", "gpt")["checkpoints"][0]["copies"]) == ["a", "c"]
    (site.folder / "a").rename(site.folder / "unmounted")
    said = site("copies", "gpt", "--json")
    assert said.code == 0 and "store a cannot be asked" in said.err
    assert {name: copy["level"] for name, copy in said.document["checkpoints"][0]["copies"].items()} == {"a": "L3", "c": "L3"}


def test_what_it_reads_does_not_grow_with_the_checkpoints_shown(site: DemoSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted at the file system: opens of stored objects."""
    for step in (1, 2):
        site.commit(step)
    site.good("verify", "gpt", "--all", "--level", "L2")
    site.good("copies", "gpt")

    def opened() -> int:
        count = 0
        real = FileStore.get

        def counted(self: FileStore, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
            nonlocal count
            count += 1
            return real(self, key, start, length, version)

        with monkeypatch.context() as patch:
            patch.setattr(FileStore, "get", counted)
            site.good("copies", "gpt", "--all")
        return count

    from seawall.stores.file import FileStore

    before = opened()
    for step in range(3, 9):
        site.commit(step)
    site.good("copies", "gpt")
    assert opened() <= before
