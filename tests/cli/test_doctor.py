"""``seawall doctor``: every check has a case in which it must not say ok."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seawall.cli.store_checks import MAX_DRIFT
from seawall.testing.fake_clock import FakeClock
from seawall.vault.keyring import Keyring
from seawall.vault.signing import SigningKey
from tests.cli.conftest import Cli, DemoSite


def findings(site: DemoSite) -> tuple[int, dict[tuple[str, str, str], str]]:
    """Exit code, and what is not ok: (check, subject, outcome) → text."""
    said = site("doctor", "--json")
    assert said.document["exit_code"] == said.code
    return said.code, {
        (item["check"], item["subject"], item["outcome"]): item["text"] for item in said.document["checks"] if item["outcome"] != "ok"
    }


def test_a_fresh_site_has_warnings_only(site: DemoSite) -> None:
    site.commit(10)
    code, found = findings(site)
    assert code == 0
    assert set(found) == {("separation", "", "warn"), ("offline keys", "", "warn"), ("media", "gpt", "warn")}
    said = site("doctor")
    assert said.code == 0 and "0 failed, 3 warnings" in said.out and "next: move them to a safe" in said.out


def test_a_site_as_it_should_be_has_none(site: DemoSite) -> None:
    site.commit(10)
    for name in ("root.key", "recovery.key"):
        (site.folder / "keys" / name).unlink()
    site.edit('verifier = "keys/verifier.key"\n', "")
    site.edit('zone = "c"\nmedium = "disk"', 'zone = "c"\nmedium = "tape"')
    assert findings(site) == (0, {})


def unmounted(site: DemoSite) -> None:
    (site.folder / "a").rename(site.folder / "unmounted")


def another_store(site: DemoSite) -> None:
    path = site.folder / "a/seawall.json"
    other = site.cli("init", f"--store=x={(site.folder / 'x').as_uri()}", "--folder", site.folder / "elsewhere")
    assert other.code == 0
    path.chmod(0o644)
    path.write_bytes((site.folder / "x/seawall.json").read_bytes())


def two_names_of_one_place(site: DemoSite) -> None:
    (site.folder / "a").rename(site.folder / "elsewhere")
    (site.folder / "a").symlink_to(site.folder / "c")
    (site.folder / ".state/seawall/stores/ids.json").unlink()  # a host that saw both before notices that one has another id now


def open_keyring(site: DemoSite) -> None:
    (site.folder / "keys/keyring.json").chmod(0o640)


def foreign_keyring(site: DemoSite) -> None:
    path = site.folder / "keys/keyring.json"
    path.unlink()
    Keyring.generate().create(path)


def open_writer_key(site: DemoSite) -> None:
    (site.folder / "keys/writer.key").chmod(0o644)


def wrong_role(site: DemoSite) -> None:
    site.edit('writer = "keys/writer.key"', 'writer = "keys/verifier.key"')


def foreign_writer(site: DemoSite) -> None:
    SigningKey.generate("writer").save(site.folder / "keys/foreign.key")
    site.edit("keys/writer.key", "keys/foreign.key")


def fenced_writer(site: DemoSite) -> None:
    fresh = site.cli("keys", "new", "writer", site.folder / "b.key", "--json").document
    site.good("keys", "trust", "add", "writer", fresh["public"], "--root-key", site.folder / "keys/root.key")
    assert site("log", "epoch", "gpt", "--reason", "moved", "--writer", fresh["id"], "--yes").code == 0


def lost_source(site: DemoSite) -> None:
    site.source.rename(site.folder / "gone")


def put_back_log(site: DemoSite) -> None:
    max(site.log_folder("c").glob("*.json")).unlink()


def never_opened(site: DemoSite) -> None:
    site.config.write_text(site.config.read_text() + f'\n[runs.other]\npaths = {{ a = "{site.source}" }}\ncopies = ["a", "c"]\n')


def damaged_newest(site: DemoSite) -> None:
    for store in ("a", "c"):
        (manifest,) = (site.folder / store / "runs/gpt/sealings").glob("*/manifest.json")
        manifest.chmod(0o644)
        manifest.write_bytes(manifest.read_bytes()[:-1])


def lost_recovery_half(site: DemoSite) -> None:
    (site.folder / "keys/recovery.pub").unlink()


@pytest.mark.parametrize(
    ("harm", "code", "check"),
    [
        (unmounted, 7, ("store", "a")),
        (another_store, 10, ("store", "a")),
        (two_names_of_one_place, 2, ("own place", "c")),
        (open_keyring, 8, ("keyring", "")),
        (foreign_keyring, 8, ("decryption", "gpt")),
        (open_writer_key, 8, ("signing key", "writer")),
        (wrong_role, 8, ("signing key", "writer")),
        (foreign_writer, 8, ("role", "gpt")),
        (fenced_writer, 8, ("role", "gpt")),
        (lost_source, 2, ("source", "gpt")),
        (put_back_log, 10, ("log", "gpt")),
        (never_opened, 6, ("log", "other")),
        (damaged_newest, 4, ("decryption", "gpt")),
        (lost_recovery_half, 2, ("recovery key", "")),
    ],
)
def test_what_is_broken_fails_with_the_code_of_its_error(
    site: DemoSite, harm: Callable[[DemoSite], None], code: int, check: tuple[str, str]
) -> None:
    site.commit(10)
    assert site("doctor").code == 0
    harm(site)
    found_code, found = findings(site)
    assert (*check, "failed") in found, found
    assert found_code == code


def held(site: DemoSite) -> None:
    site.good("log", "hold", "gpt", "--reason", "audit")


def quarantined(site: DemoSite) -> None:
    site.good("log", "quarantine", "gpt", 10, "--reason", "loss spike")


def one_store(site: DemoSite) -> None:
    site.edit('copies = ["a", "c"]', 'copies = ["c"]')


def one_domain(site: DemoSite) -> None:
    site.edit('fault_domain = "c-1"', 'fault_domain = "a-0"')


def no_domain(site: DemoSite) -> None:
    site.edit('fault_domain = "c-1"', 'fault_domain = ""')


def no_recovery_key(site: DemoSite) -> None:
    site.edit('[keys.recovery]\npublic = "keys/recovery.pub"\n', "")


def world_writable(site: DemoSite) -> None:
    site.config.chmod(0o666)


def behind(site: DemoSite) -> None:
    max(site.log_folder("a").glob("*.json")).unlink()


def leftover(site: DemoSite) -> None:
    """An upload that a killed command left: a temporary file, older than a day."""
    from seawall.stores.file import FileStore

    store = FileStore((site.folder / "a").as_uri())
    store.begin("runs/gpt/sealings/x/file-0.sea").part(1, 0, b"part", _crc(b"part"))
    (temporary,) = [path for path in (site.folder / "a/.seawall-tmp").rglob("*") if path.is_file()]
    old = time.time() - 2 * 86400
    os.utime(temporary, (old, old))


def _crc(data: bytes) -> int:
    from seawall.kernels.crc64 import crc64

    return crc64(data)


@pytest.mark.parametrize(
    ("state", "check"),
    [
        (held, ("hold", "gpt")),
        (quarantined, ("quarantine", "gpt")),
        (one_store, ("independence", "gpt")),
        (one_domain, ("independence", "gpt")),
        (no_domain, ("independence", "gpt")),
        (no_recovery_key, ("recovery key", "")),
        (world_writable, ("configuration", "")),
        (behind, ("mirrors", "gpt")),
        (leftover, ("leftovers", "a")),
    ],
)
def test_what_should_not_stay_so_is_a_warning(site: DemoSite, state: Callable[[DemoSite], None], check: tuple[str, str]) -> None:
    site.commit(10)
    state(site)
    code, found = findings(site)
    assert (*check, "warn") in found, found
    assert code == 0


def test_a_missed_rpo_and_no_checkpoint_at_all_are_warnings(site: DemoSite, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("newest", "gpt", "warn") in findings(site)[1]
    site.commit(10)
    assert ("newest", "gpt", "warn") not in findings(site)[1]
    later = FakeClock(datetime.now(UTC) + timedelta(minutes=61))
    monkeypatch.setattr("seawall.cli.site.SystemClock", lambda: later)
    assert ("newest", "gpt", "warn") in findings(site)[1]


@pytest.mark.parametrize(("off", "outcome"), [(MAX_DRIFT - timedelta(seconds=30), "ok"), (MAX_DRIFT + timedelta(seconds=30), "failed")])
def test_a_clock_that_drifts_from_the_stores_is_bad(off: timedelta, outcome: str, tmp_path: Path) -> None:
    from seawall.cli.site import Site
    from seawall.cli.store_checks import _clock
    from seawall.testing.memory import MemoryStore

    store = MemoryStore("m", clock=FakeClock(datetime(2026, 1, 1, tzinfo=UTC) + off))
    site = Site(tmp_path / "seawall.toml", clock=FakeClock(datetime(2026, 1, 1, tzinfo=UTC)))
    assert store.capabilities.server_time
    assert _clock(site, "m", store).outcome == outcome


def test_a_configuration_that_does_not_load_is_the_only_line(site: DemoSite, cli: Cli) -> None:
    site.edit("[coordination]", "[coordination]\nspare = 1")
    code, found = findings(site)
    assert (code, list(found)) == (2, [("configuration", "", "failed")])
    assert cli("doctor", "--config", site.folder / "none.toml").code == 2


def test_it_changes_nothing_in_the_stores(site: DemoSite) -> None:
    site.commit(10)

    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for store in ("a", "c") for path in (site.folder / store).rglob("*") if path.is_file()}

    before = files()
    site("doctor")
    assert files() == before
