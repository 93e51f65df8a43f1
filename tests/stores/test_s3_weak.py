"""Servers that lack something: it is noticed, said, and worked around as far as one writer goes."""

import uuid
from typing import Any

import pytest

from seawall.errors import ObjectExistsError
from seawall.kernels.crc64 import crc64
from seawall.stores.locate import open_store
from seawall.testing.validate import validate
from seawall.testing.weak_s3 import MotoS3, RcloneS3, WeakS3


def _opener(server: WeakS3) -> Any:
    bucket = f"weak-{uuid.uuid4().hex[:8]}"
    server.create_bucket(bucket)
    return lambda: open_store(f"s3://{bucket}/p", endpoint=server.endpoint, keys=lambda: server.keys)


def test_rclone_is_a_secondary_and_says_why(rclone_s3: RcloneS3) -> None:
    make = _opener(rclone_s3)
    validation = validate(make, objects=20)
    assert validation.ok, validation.report.failed
    assert not validation.may_be_first
    can = validation.capabilities
    assert (can.conditional_put, can.full_object_crc, can.object_lock, can.versions) == (False, False, False, False)
    reasons = " ".join(can.reasons)
    assert "If-None-Match was not refused" in reasons and "wrong CRC-64/NVME was accepted" in reasons
    assert validation.report.outcome("concurrent_create") == "not attainable"
    # One writer still cannot overwrite by mistake, and a checksum that the server only repeats is not passed on.
    store = make()
    store.put("a", b"x", crc64(b"x"))
    with pytest.raises(ObjectExistsError):
        store.put("a", b"y")
    upload = store.begin("a")
    upload.part(1, 0, b"y", crc64(b"y"))
    with pytest.raises(ObjectExistsError):
        upload.finish(crc64(b"y"), 1)
    assert store.get("a") == b"x" and store.head("a").crc64 is None


def test_moto_checks_no_checksums(moto_s3: MotoS3) -> None:
    validation = validate(_opener(moto_s3), objects=20)
    assert validation.ok, validation.report.failed
    assert validation.capabilities.conditional_put and not validation.capabilities.full_object_crc
    assert validation.as_json()["capabilities"]["reasons"]
