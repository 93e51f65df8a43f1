"""Locks: set as objects arrive, lengthened at the commit, looked at and extended while a copy is kept, and waited for when it is not."""

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from seawall.clock import parse_utc
from seawall.errors import StoreRefusedError
from seawall.log.identity import identify
from seawall.protect.fill import has_copy
from seawall.protect.lock_audit import audit_locks
from seawall.protect.lock_copy import lock_copy
from seawall.protect.place import Place
from seawall.stores.file import FileStore
from seawall.stores.locate import open_store
from seawall.stores.lock import LockStore
from seawall.testing.seaweedfs import SeaweedFS
from seawall.vault.receipt import parse_receipt, receipt_name
from tests.protect.little_site import RUN, file_site, write_checkpoint
from tests.protect.retention_stage import Stage

KEPT, AT_PUT = timedelta(days=10), timedelta(days=1)


class LockedStage(Stage):
    """Store ``a`` locks what is written to it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        locking = LockStore(self.memory["a"], AT_PUT, KEPT, self.clock)
        self.wrapped = {"a": locking}
        self.desk()
        self.site._places["a"] = Place("a", self.site.place("a").id, locking, KEPT)


@pytest.fixture
def stage(tmp_path: Path) -> LockedStage:
    stage = LockedStage(tmp_path)
    stage.save(100, 200, 300, 400, 500)
    return stage


def locks(stage: Stage, step: int) -> set[timedelta | None]:
    """How long from now each object of the copy in ``a`` is locked."""
    memory = stage.memory["a"]
    found = [memory.head(key).locked_until for key in memory.objects if stage.sealing(step) in key]
    return {None if until is None else until - stage.now for until in found}


def test_a_committed_copy_is_locked_as_a_whole_and_its_receipt_says_so(stage: LockedStage) -> None:
    assert locks(stage, 500) == {KEPT - timedelta(days=1)}
    place = stage.site.place("a")
    assert has_copy(place, RUN, bytes.fromhex(stage.sealing(500)))
    key = f"runs/{RUN}/sealings/{stage.sealing(500)}/{receipt_name(place.id, 1)}"
    state = stage.site.view().state
    receipt = parse_receipt(stage.memory["a"].objects[key], state.resolver("writer"), key)
    assert parse_utc(receipt.locked_until or "") == stage.now + KEPT - timedelta(days=1)
    with pytest.raises(StoreRefusedError, match="locked"):
        stage.memory["a"].delete(key)
    entries = [key for key in stage.memory["a"].objects if "/log/" in key]
    assert entries and all(stage.memory["a"].head(entry).locked_until for entry in entries)


def test_what_is_not_committed_yet_is_locked_for_a_short_time_only(stage: LockedStage) -> None:
    stage.wrapped["a"].put(f"runs/{RUN}/sealings/{'0' * 32}/keys-1.json", b"x")
    until = stage.memory["a"].head(f"runs/{RUN}/sealings/{'0' * 32}/keys-1.json").locked_until
    assert until is not None and until == stage.now + AT_PUT


def test_locks_of_kept_copies_are_extended_before_they_run_out_and_no_others(stage: LockedStage) -> None:
    stage.prove()
    found = {lock.step: lock.outcome for lock in audit_locks(stage.desk(), extend=False)}
    assert found == {300: "ok", 400: "ok", 500: "ok"}, "what no rule keeps is not looked at"
    stage.wait(days=4)
    stage.prove()
    seen = {lock.step: lock.outcome for lock in audit_locks(stage.desk(), extend=False)}
    assert "short" in seen.values() and set(seen.values()) <= {"ok", "short"}
    done = {lock.step: lock.outcome for lock in audit_locks(stage.desk(), extend=True)}
    assert {step for step, outcome in done.items() if outcome == "extended"} == {
        step for step, outcome in seen.items() if outcome == "short"
    }
    assert {lock.outcome for lock in audit_locks(stage.desk(), extend=True)} == {"ok"}


def test_retention_waits_for_a_lock_and_then_deletes(stage: LockedStage) -> None:
    stage.prove()
    decision = stage.plan().decision
    a = stage.site.place("a").id
    assert {(item.step, item.store) for item in decision.blocked} == {(100, a), (200, a)}
    assert all("locked until" in item.why for item in decision.blocked)
    assert {deletion.store for deletion in decision.delete} == {stage.site.place("c").id}
    stage.wait(days=9)
    stage.prove()
    audit_locks(stage.desk(), extend=True)
    stage.run(stage.approved())
    assert stage.stored(100) == stage.stored(200) == {"a": set(), "c": set()}


def test_a_lock_that_came_after_the_plan_drops_the_copy_before_its_tombstone(stage: LockedStage) -> None:
    stage.wait(days=9)
    name = stage.approved()
    for key in [key for key in stage.memory["a"].objects if stage.sealing(100) in key]:
        if "manifest" not in key:
            stage.memory["a"].extend_lock(key, stage.now + timedelta(days=3))
    done = stage.run(name)
    a = stage.site.place("a").id
    assert {(copy.step, copy.store): copy.outcome for copy in done.copies}[100, a] == "dropped"
    assert not stage.site.view().state.is_deleted(stage.sealing(100), a)
    assert stage.stored(100)["a"] and not stage.stored(100)["c"]


def test_a_longer_lock_is_never_shortened(stage: LockedStage) -> None:
    folder = f"runs/{RUN}/sealings/{stage.sealing(500)}/"
    lock_copy(stage.site.place("a"), folder, stage.now + timedelta(days=1))
    assert locks(stage, 500) == {KEPT - timedelta(days=1)}


def test_a_store_without_locks_refuses_instead_of_pretending(tmp_path: Path) -> None:
    site = file_site(tmp_path)
    site.stores["a"] = LockStore(FileStore(f"file://{tmp_path}/a"), AT_PUT, KEPT, site.clock)
    with pytest.raises(StoreRefusedError, match="no object lock"):
        site.sync(write_checkpoint(tmp_path / "ck"))


def test_a_real_bucket_locks_a_whole_copy(tmp_path: Path, seaweed: SeaweedFS, s3_settings: dict[str, Any]) -> None:
    name = f"locks-{uuid.uuid4().hex[:8]}"
    seaweed.create_bucket(name, lock=True)
    site = file_site(tmp_path, ["c"])
    bucket = open_store(f"s3://{name}/p", **s3_settings)
    site.stores["a"] = LockStore(bucket, timedelta(hours=1), timedelta(days=2), site.clock)
    site._places["a"] = Place("a", identify(site.stores["a"], create=True), site.stores["a"], timedelta(days=2))
    done = site.sync(write_checkpoint(tmp_path / "ck", files={"weights": bytes(9 << 20), "small": b"1"}))
    assert done.status == "committed" and done.copies == ["a", "c"]
    now = bucket.server_time()
    assert now is not None
    stored = [bucket.head(found.key) for found in bucket.list(f"runs/{RUN}/sealings/")]
    assert len(stored) >= 9
    assert all(each.locked_until is not None and each.locked_until > now + timedelta(days=1, hours=23) for each in stored)
    for each in stored[:2]:
        with pytest.raises(StoreRefusedError):
            bucket.delete(each.key, each.version)
    bucket.close()
