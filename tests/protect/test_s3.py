"""Copies on real S3 servers: proved to the last level, cheap in requests, and refused with a reason where a server is too weak."""

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seawall.protect.checkpoint_source import read_source
from seawall.protect.restore import restore
from seawall.stores.file import FileStore
from seawall.stores.locate import open_store
from seawall.stores.retry import RetryStore
from seawall.stores.s3_signing import AwsKeys
from seawall.testing.counting import RequestCounter
from seawall.testing.local_server import free_port
from seawall.testing.seaweedfs import SeaweedFS, client_of
from seawall.testing.weak_s3 import RcloneS3
from seawall.vault.header import HEADER_BYTES
from seawall.vault.identity import sealing_folder
from seawall.verify.check import FAILED, NOT_ATTAINABLE, OK, Finding, Unlocked, check_copy
from seawall.verify.levels import Level
from tests.protect.command_line import Desk, seawall
from tests.protect.little_site import RUN, LittleSite, tree, write_checkpoint
from tests.servers import BUCKET

MIB = 1 << 20
L0, L1, L2, L3, L4 = Level.L0, Level.L1, Level.L2, Level.L3, Level.L4


@dataclass
class S3Site:
    """A site whose store ``a`` is on S3 and counts requests."""

    site: LittleSite
    requests: RequestCounter
    url: str


@pytest.fixture
def on_s3(tmp_path: Path, s3_url: str, s3_settings: dict[str, Any]) -> Iterator[S3Site]:
    counter = RequestCounter()
    store = open_store(s3_url, on_request=counter, **s3_settings)
    site = LittleSite({"a": store, "c": FileStore(f"file://{tmp_path}/c", create=True)}, state=tmp_path / "state")
    # Probing is no part of a sync, and its result is remembered.
    assert store.capabilities.conditional_put and store.capabilities.full_object_crc
    site.open()
    yield S3Site(site, counter, s3_url)
    store.close()


def findings_of(site: LittleSite, store: str, sealing: str) -> dict[Level, Finding]:
    state = site.view().state
    commit = state.commit_of(sealing)

    def open_up(_: object) -> Unlocked:
        _, inventory, data_key = site.opened(store, sealing)
        return Unlocked(data_key, inventory)

    findings = check_copy(
        site.stores[store],
        RUN,
        bytes.fromhex(sealing),
        commit.manifest,
        state.writer_of(commit),
        state.resolver("operator"),
        L4,
        unlock=open_up,
    )
    return {finding.level: finding for finding in findings}


def test_out_proved_and_back(on_s3: S3Site, tmp_path: Path) -> None:
    """One file goes in parts, one in one request, one is empty."""
    source = write_checkpoint(tmp_path / "ck", files={"large": os.urandom(40 * MIB), "small": os.urandom(5000), "empty": b""})
    done = on_s3.site.sync(source, transfers=8)
    assert done.copies == ["a", "c"] and not done.missing
    found = findings_of(on_s3.site, "a", done.sealing)
    assert {level: finding.result for level, finding in found.items()} == dict.fromkeys((L0, L1, L2, L3, L4), OK)
    restore(*on_s3.site.opened("a", done.sealing), tmp_path / "out")
    assert tree(tmp_path / "out") == tree(source)


def test_rot_on_s3_is_found_by_record(on_s3: S3Site, seaweed: SeaweedFS, tmp_path: Path) -> None:
    """Somebody with rights put other bytes of the same length there, with a checksum that fits them."""
    done = on_s3.site.sync(write_checkpoint(tmp_path / "ck", files={"large": os.urandom(17 * MIB), "other": b"1"}))
    prefix = on_s3.url.removeprefix(f"s3://{BUCKET}/")
    key = f"{prefix}/{sealing_folder(RUN, bytes.fromhex(done.sealing))}file-1.sea"
    client = client_of(seaweed.endpoint, seaweed.keys)
    raw = bytearray(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    raw[HEADER_BYTES + 8 * MIB + 100] ^= 1
    client.put_object(Bucket=BUCKET, Key=key, Body=bytes(raw))
    client.close()
    found = findings_of(on_s3.site, "a", done.sealing)
    assert found[L0].result == OK and found[L1].result in (FAILED, NOT_ATTAINABLE) and found[L2].result == FAILED
    assert [(damage.object, damage.records) for damage in found[L2].damages] == [("file-1.sea", (1,))]
    assert L3 not in found


def test_an_unchanged_rerun_costs_ten_requests(on_s3: S3Site, tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck", files={f"f{number}": os.urandom(100) for number in range(50)})
    on_s3.site.sync(source)
    on_s3.requests.requests.clear()
    assert on_s3.site.sync(source).status == "unchanged"
    assert 0 < on_s3.requests.total <= 10, dict(on_s3.requests.requests)


def test_a_thousand_small_files_cost_little_more_than_a_request_each(on_s3: S3Site, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_bytes(os.urandom(64 << 10))
    source = write_checkpoint(tmp_path / "ck", files={})
    for number in range(1000):
        # Hard links: a thousand files to read, one to write.
        os.link(first, source / f"f{number:04d}")
    on_s3.requests.requests.clear()
    done = on_s3.site.sync(read_source(str(source)), places=("a",), transfers=16)
    assert done.files == 1001 and done.copies == ["a"]
    assert 1001 <= on_s3.requests.total <= 1.2 * done.files + 200, dict(on_s3.requests.requests)


class TestWeakServer:
    """``rclone serve s3`` lets two create one object: good for a further copy, not for what decides."""

    @pytest.fixture
    def bucket(self, rclone_s3: RcloneS3) -> str:
        name = f"weak-{uuid.uuid4().hex[:8]}"
        rclone_s3.create_bucket(name)
        return f"s3://{name}/p"

    @pytest.fixture
    def keys(self, rclone_s3: RcloneS3, monkeypatch: pytest.MonkeyPatch) -> AwsKeys:
        use(rclone_s3.keys, monkeypatch)
        return rclone_s3.keys

    def _desk(self, folder: Path, url: str, endpoint: str, coordination: str, code: int = 0) -> tuple[Desk, Any]:
        options = ("--store", f"a=file://{folder / 'a'}", "--store", f"weak={url}", "--endpoint", f"weak={endpoint}")
        done = seawall("init", *options, "--coordination", coordination, "--folder", folder / "site", "--json")
        assert done.code == 0, (done.out, done.err)
        desk = Desk(folder)
        desk.checkpoints.mkdir()
        return desk, desk("run open", RUN, "--path", desk.checkpoints, "--json", code=code)

    def test_a_further_copy_works(self, tmp_path: Path, bucket: str, keys: AwsKeys, rclone_s3: RcloneS3) -> None:
        desk, _ = self._desk(tmp_path, bucket, rclone_s3.endpoint, "a")
        source = desk.save(100, files={"large": os.urandom(17 * MIB), "small": b"1"})
        assert desk("sync", RUN, "--json").json["copies"] == ["a", "weak"]
        verified = desk("verify", RUN, "--store", "weak", "--json").json["copies"][0]
        assert (verified["level"], verified["levels"]["L1"]) == ("L4", "not attainable")
        desk("restore", RUN, tmp_path / "out", "--store", "weak")
        assert tree(tmp_path / "out") == tree(source)
        assert desk("sync", RUN, "--json").json["status"] == "unchanged"

    def test_the_first_copy_is_refused_with_the_reason(self, tmp_path: Path, bucket: str, keys: AwsKeys, rclone_s3: RcloneS3) -> None:
        desk, _ = self._desk(tmp_path, bucket, rclone_s3.endpoint, "a")
        desk.config.write_text(desk.config.read_text().replace('copies = ["a", "weak"]', 'copies = ["weak", "a"]'))
        desk.save(100)
        refused = desk("sync", RUN, "--json", code=7).json
        assert refused["what"] == "this store can only hold further copies" and "If-None-Match was not refused" in refused["why"]
        assert not list(desk.store("a").glob("runs/*/sealings")), "nothing was begun"

    def test_authority_is_refused_with_the_reason(self, tmp_path: Path, bucket: str, keys: AwsKeys, rclone_s3: RcloneS3) -> None:
        _, refused = self._desk(tmp_path, bucket, rclone_s3.endpoint, "weak", code=7)
        assert refused.json["error"] == "StoreRefusedError"
        assert "single winner" in refused.json["why"] and "If-None-Match was not refused" in refused.json["why"]
        assert "another store under [coordination]" in refused.json["do"]


def use(keys: AwsKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials as a person has them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys.secret_access_key)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)


@pytest.mark.parametrize("wrong", ["secret", "unknown key"])
def test_wrong_credentials(tmp_path: Path, seaweed: SeaweedFS, s3_url: str, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    use(seaweed.keys, monkeypatch)
    options = ("--store", f"a={s3_url}", "--endpoint", f"a={seaweed.endpoint}", "--store", f"c=file://{tmp_path / 'c'}")
    assert seawall("init", *options, "--folder", tmp_path / "site").code == 0
    desk = Desk(tmp_path)
    desk.checkpoints.mkdir()
    desk("run open", RUN, "--path", desk.checkpoints)
    desk.save(100)
    right = seaweed.keys
    bad = {"secret": AwsKeys(right.access_key_id, "x" * 40), "unknown key": AwsKeys("nobody", "x" * 40)}[wrong]
    use(bad, monkeypatch)
    refused = desk("sync", RUN, "--json", code=7).json
    assert refused["error"] == "StoreRefusedError" and s3_url.split("/")[2] in refused["where"]
    assert refused["what"] == "the store does not accept these credentials" and "403" in refused["why"]
    assert "access key" in refused["do"]
    assert bad.secret_access_key not in str(refused)
    use(right, monkeypatch)
    assert desk("sync", RUN, "--json").json["copies"] == ["a", "c"]


def test_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens at the endpoint."""
    use(AwsKeys("nobody", "x" * 40), monkeypatch)
    patient = {"attempts": 2, "seconds": 2.0, "first_wait": 0.01, "longest_wait": 0.02}
    monkeypatch.setattr(RetryStore.__init__, "__kwdefaults__", patient)
    endpoint = f"http://127.0.0.1:{free_port()}"
    done = seawall("init", "--store", "a=s3://bucket/p", "--endpoint", f"a={endpoint}", "--folder", tmp_path / "site", "--json")
    assert done.code == 7 and done.json["error"] == "StoreUnavailableError"
    assert done.json["outcome"] == "transient" and str(endpoint.rsplit(":", 1)[1]) in str(done.json)
