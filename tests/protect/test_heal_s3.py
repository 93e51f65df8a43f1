"""Healing on a bucket that keeps versions: nothing is lost by it, and what the store still has below is a source, too."""

import os
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from seawall.clock import parse_utc
from seawall.protect.heal import Healed, heal
from seawall.protect.heal_receipt import read_receipts
from seawall.stores.file import FileStore
from seawall.stores.locate import open_store
from seawall.testing.seaweedfs import SeaweedFS, client_of
from seawall.vault.header import HEADER_BYTES
from seawall.vault.identity import sealing_folder
from seawall.verify.check import FAILED
from seawall.verify.committed import check_committed
from seawall.verify.levels import Level
from seawall.verify.receipts import receipt_signers
from tests.protect.little_site import RUN, LittleSite, write_checkpoint

LARGE, SMALL = "file-1.sea", "file-2.sea"
MIB = 1 << 20


class OnVersions:
    """A checkpoint in ``a``, a bucket that keeps versions, and in ``c``, a folder."""

    def __init__(self, folder: Path, bucket: str, seaweed: SeaweedFS, settings: dict[str, Any]) -> None:
        self.store = open_store(f"s3://{bucket}", **settings)
        self.site = LittleSite({"a": self.store, "c": FileStore(f"file://{folder}/c", create=True)})
        assert self.store.capabilities.versions
        self.site.open()
        source = write_checkpoint(folder / "ck", files={"large": os.urandom(17 * MIB), "small": os.urandom(3000)})
        self.sealing = self.site.sync(source).sealing
        self.folder = sealing_folder(RUN, bytes.fromhex(self.sealing))
        self.client, self.bucket = client_of(seaweed.endpoint, seaweed.keys), bucket

    @property
    def commit(self) -> Any:
        return self.site.view().state.commit_of(self.sealing)

    def overwrite(self, name: str) -> None:
        """Somebody with rights puts other bytes there."""
        raw = bytearray(self.store.get(self.folder + name))
        raw[HEADER_BYTES + 5] ^= 1
        self.client.put_object(Bucket=self.bucket, Key=self.folder + name, Body=bytes(raw))

    def heal(self, lock: timedelta | None = None) -> Healed:
        place, other = replace(self.site.place("a"), lock=lock), self.site.place("c")
        clock, writer = self.site.clock, self.site.keys["writer"]
        return heal(self.site.view(), self.commit, place, [other], coordination=other.store, writer=writer, clock=clock)

    def versions(self, name: str) -> list[str]:
        """Ids of all versions, the newest first."""
        found = self.client.list_object_versions(Bucket=self.bucket, Prefix=self.folder + name)
        return [version["VersionId"] for version in found["Versions"]]

    def failed(self) -> list[Any]:
        findings = check_committed(self.store, self.site.view(), self.commit, Level.L2, lambda: ())
        return [finding for finding in findings if finding.result == FAILED]


@pytest.fixture
def on_versions(tmp_path: Path, seaweed: SeaweedFS, s3_settings: dict[str, Any]) -> Any:
    bucket = f"heal-{uuid.uuid4().hex[:8]}"
    seaweed.create_bucket(bucket, lock=True)
    made = OnVersions(tmp_path, bucket, seaweed, s3_settings)
    yield made
    made.client.close()
    made.store.close()


def test_a_replaced_object_is_a_new_version_that_the_receipt_names(on_versions: OnVersions) -> None:
    on_versions.overwrite(LARGE)
    before = on_versions.versions(LARGE)
    (repair,) = on_versions.heal().repairs
    assert (repair.object, repair.records) == (LARGE, (0,))
    after = on_versions.versions(LARGE)
    assert after[1:] == before, "versions are added and none is removed"
    state = on_versions.site.view().state
    receipts = read_receipts(on_versions.site.place("a"), RUN, on_versions.commit, receipt_signers(state))
    assert receipts.highest == 2 and receipts.newest is not None and receipts.newest.versions[LARGE] == after[0]
    assert not on_versions.failed()
    assert on_versions.heal().repairs == []


def test_what_no_other_copy_has_is_below_in_the_same_store(on_versions: OnVersions) -> None:
    """The only other copy is gone; in the bucket one object was overwritten and one got a delete marker."""
    other = on_versions.site.stores["c"]
    for found in list(other.list(on_versions.folder)):
        other.delete(found.key)
    on_versions.overwrite(LARGE)
    on_versions.client.delete_object(Bucket=on_versions.bucket, Key=on_versions.folder + SMALL)
    repairs = {repair.object: repair for repair in on_versions.heal().repairs}
    assert set(repairs) == {LARGE, SMALL} and repairs[SMALL].created
    assert {source for repair in repairs.values() for source in repair.sources} == {"a (kept version)"}
    assert not on_versions.failed()


def test_what_was_healed_is_locked_as_the_copy_is(on_versions: OnVersions) -> None:
    on_versions.overwrite(SMALL)
    assert on_versions.store.head(on_versions.folder + SMALL).locked_until is None
    done = on_versions.heal(lock=timedelta(hours=1))
    assert done.receipt is not None and done.receipt.locked_until is not None
    until = parse_utc(done.receipt.locked_until)
    for name in (SMALL, LARGE, "manifest.json", f"receipt-{on_versions.site.place('a').id}-2.json"):
        assert on_versions.store.head(on_versions.folder + name).locked_until == until.replace(microsecond=0), name
