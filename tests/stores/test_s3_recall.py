"""Objects in an archive class: refused as they are, recalled, waited for. moto keeps classes and recalls as S3 does."""

import uuid
from collections.abc import Iterator

import pytest

from seawall.errors import StoreRefusedError, StoreUnavailableError
from seawall.stores.s3 import S3Store
from seawall.stores.s3_recall import Readiness, readiness
from seawall.testing.fake_clock import FakeClock
from seawall.testing.seaweedfs import client_of
from seawall.testing.weak_s3 import MotoS3


@pytest.fixture
def cold(moto_s3: MotoS3) -> Iterator[S3Store]:
    """A store with one readable object and two in Glacier."""
    bucket = f"cold-{uuid.uuid4().hex[:8]}"
    moto_s3.create_bucket(bucket)
    client = client_of(moto_s3.endpoint, moto_s3.keys)
    client.put_object(Bucket=bucket, Key="p/warm", Body=b"warm")
    for number in range(2):
        client.put_object(Bucket=bucket, Key=f"p/cold-{number}", Body=b"cold", StorageClass="GLACIER")
    client.close()
    store = S3Store(f"s3://{bucket}/p", endpoint=moto_s3.endpoint, keys=lambda: moto_s3.keys, clock=FakeClock())
    yield store
    store.close()


KEYS = ["cold-0", "cold-1", "warm"]


def test_what_is_cold_is_recalled_and_then_read(cold: S3Store) -> None:
    with pytest.raises(StoreRefusedError, match="recalled"):
        cold.get("cold-0")
    with pytest.raises(StoreRefusedError, match="not asked for"):
        cold.wait_warm(KEYS, 1)
    cold.warm(KEYS)
    cold.warm(KEYS)
    cold.wait_warm(KEYS, 24 * 3600)
    assert [cold.get(key) for key in KEYS] == [b"cold", b"cold", b"warm"]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, Readiness.READABLE),
        ({"x-amz-storage-class": "STANDARD_IA"}, Readiness.READABLE),
        ({"x-amz-storage-class": "GLACIER_IR"}, Readiness.READABLE),
        ({"x-amz-storage-class": "GLACIER"}, Readiness.ARCHIVED),
        ({"x-amz-storage-class": "DEEP_ARCHIVE", "x-amz-restore": 'ongoing-request="true"'}, Readiness.COMING),
        ({"x-amz-storage-class": "GLACIER", "x-amz-restore": 'ongoing-request="false", expiry-date="x"'}, Readiness.READABLE),
        ({"x-amz-storage-class": "INTELLIGENT_TIERING"}, Readiness.READABLE),
        ({"x-amz-storage-class": "INTELLIGENT_TIERING", "x-amz-archive-status": "ARCHIVE_ACCESS"}, Readiness.ARCHIVED),
    ],
)
def test_what_the_headers_say(headers: dict[str, str], expected: Readiness) -> None:
    assert readiness(headers) is expected


def test_a_recall_that_takes_hours_is_waited_for_and_not_for_ever(cold: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = cold.session.clock
    began = clock.monotonic()

    # The model: an object is readable four hours after it was asked for, as AWS names for a standard recall.
    def state(store: S3Store, key: str) -> Readiness:
        return Readiness.READABLE if key == "warm" or clock.monotonic() - began >= 4 * 3600 else Readiness.COMING

    monkeypatch.setattr("seawall.stores.s3_recall._state", state)
    with pytest.raises(StoreUnavailableError, match="on their way"):
        cold.wait_warm(KEYS, 3600)
    assert 3600 <= clock.monotonic() - began < 3700
    cold.wait_warm(KEYS, 24 * 3600)
    assert 4 * 3600 <= clock.monotonic() - began < 4 * 3600 + 120
