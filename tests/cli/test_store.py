"""``seawall store``: the conformance kit from the command line, and sweeping what killed commands left."""

import contextlib
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from seawall.kernels.crc64 import crc64
from seawall.stores.file import FileStore
from tests.cli.conftest import Cli, DemoSite


def test_validate_proves_a_configured_store_and_leaves_nothing(site: DemoSite) -> None:
    before = sorted(path for path in (site.folder / "c").rglob("*") if path.is_file())
    said = site.good("store", "validate", "c", "--objects", 10)
    assert said["ok"] and said["may_be_first"] and said["exit_code"] == 0
    assert said["capabilities"]["conditional_put"] and said["capabilities"]["reasons"]
    assert sorted(path for path in (site.folder / "c").rglob("*") if path.is_file()) == before


def test_validate_a_url_needs_no_configuration(site: DemoSite, cli: Cli) -> None:
    said = cli("store", "validate", (site.folder / "a").as_uri(), "--objects", 0)
    assert said.code == 0
    assert "passed         put_and_get" in said.out and "may hold first copies and the log" in said.out


def test_validate_refuses_a_folder_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    said = cli("store", "validate", (tmp_path / "none").as_uri(), "--json")
    assert said.code == 7 and not (tmp_path / "none").exists()


def test_validate_fails_a_store_that_breaks_its_word(site: DemoSite, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a store that overwrites what is there must not pass."""
    real = FileStore.put

    def overwriting(self: FileStore, key: str, data: Any, crc64: int | None = None, **more: Any) -> Any:
        with contextlib.suppress(OSError, ValueError):
            (self.root / key).unlink()
        return real(self, key, data, crc64, **more)

    monkeypatch.setattr(FileStore, "put", overwriting)
    said = cli("store", "validate", (site.folder / "a").as_uri(), "--objects", 0, "--json")
    assert said.code == 7 and not said.document["ok"]
    assert "second_create" in [check["name"] for check in said.document["checks"] if check["outcome"] == "failed"]


@pytest.mark.slow
def test_a_weak_server_may_hold_second_copies_only(cli: Cli, rclone_s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", rclone_s3.keys.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", rclone_s3.keys.secret_access_key)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    rclone_s3.create_bucket("validated")
    said = cli("store", "validate", "s3://validated/x", "--endpoint", rclone_s3.endpoint, "--objects", 0, "--json")
    assert not said.document["may_be_first"]
    assert any("conditional_put" in reason for reason in said.document["capabilities"]["reasons"])


@pytest.mark.parametrize("words", [["nope"], ["c", "--endpoint", "http://127.0.0.1:1"], ["ftp://x/y"]], ids=" ".join)
def test_validate_refuses_what_names_no_store(site: DemoSite, words: list[str]) -> None:
    assert site("store", "validate", *words).code == 2


def leave_upload(site: DemoSite, key: str, age_hours: float) -> Path:
    """What a killed sync leaves in a file store: a temporary file of that age."""
    folder = site.folder / "a/.seawall-tmp"
    before = set(folder.rglob("*"))
    FileStore((site.folder / "a").as_uri()).begin(key).part(1, 0, b"part", crc64(b"part"))
    (path,) = [path for path in set(folder.rglob("*")) - before if stat.S_ISREG(path.stat().st_mode)]
    moment = time.time() - age_hours * 3600
    os.utime(path, (moment, moment))
    return path


def test_sweep_removes_old_uploads_only(site: DemoSite) -> None:
    sealing = site.commit(10)
    old = leave_upload(site, "runs/gpt/sealings/x/file-0.sea", 30)
    young = leave_upload(site, "runs/gpt/sealings/x/file-1.sea", 1)
    dry = site.good("store", "sweep", "a", "--dry-run")
    assert [item["key"] for item in dry["uploads"]] == ["runs/gpt/sealings/x/file-0.sea"] and dry["kept"] == 1
    assert old.exists()
    said = site.good("store", "sweep", "a")
    assert (said["status"], said["clock"], len(said["uploads"])) == ("swept", "a", 1)
    assert not old.exists() and young.exists()
    assert (site.sealing_folder("a", sealing) / "manifest.json").exists()
    assert site.good("store", "sweep", "a")["uploads"] == []
    assert "removed runs/gpt/sealings/x/file-1.sea" in site("store", "sweep", "a", "--older-than-hours", 0.5).out


def test_sweep_of_an_unknown_store(site: DemoSite) -> None:
    assert site("store", "sweep", "nope").code == 2
