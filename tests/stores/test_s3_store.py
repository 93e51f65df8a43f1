"""The S3 store on a real SeaweedFS."""

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from seawall.errors import ConfigurationError, NoSuchObjectError, ObjectExistsError, StoreRefusedError, StoreUnavailableError, UsageError
from seawall.kernels.crc64 import crc64
from seawall.stores.locate import open_store
from seawall.stores.s3 import S3Store
from seawall.stores.s3_signing import AwsKeys
from seawall.testing.check_store import check_store
from seawall.testing.counting import RequestCounter
from seawall.testing.seaweedfs import SeaweedFS, client_of
from tests.servers import BUCKET

MakeS3 = Callable[..., S3Store]


def test_it_conforms(s3_url: str, s3_settings: dict[str, Any]) -> None:
    report = check_store(lambda: open_store(s3_url, **s3_settings))
    assert report.ok, report.failed
    for name in ("concurrent_create", "concurrent_finish", "wrong_checksum", "reported_checksum", "clock", "many_objects"):
        assert report.outcome(name) == "passed"


def test_a_bucket_with_versions_conforms(seaweed: SeaweedFS, s3_settings: dict[str, Any]) -> None:
    name = f"versions-{uuid.uuid4().hex[:8]}"
    seaweed.create_bucket(name, versions=True)
    report = check_store(lambda: open_store(f"s3://{name}/p", **s3_settings), objects=0)
    assert report.ok, report.failed
    assert report.outcome("old_versions") == "passed"
    client = client_of(seaweed.endpoint, seaweed.keys)
    left = client.list_object_versions(Bucket=name)
    assert not left.get("Versions") and not left.get("DeleteMarkers")


def test_a_locked_bucket_conforms_and_really_refuses(seaweed: SeaweedFS, s3_settings: dict[str, Any]) -> None:
    name = f"locked-{uuid.uuid4().hex[:8]}"
    seaweed.create_bucket(name, lock=True)
    client = client_of(seaweed.endpoint, seaweed.keys)
    rule = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 1}}}
    client.put_object_lock_configuration(Bucket=name, ObjectLockConfiguration=rule)
    report = check_store(lambda: open_store(f"s3://{name}/p", **s3_settings), objects=0)
    assert report.outcome("lock_refuses") == "passed"
    assert report.ok, report.failed
    store = S3Store(f"s3://{name}", **s3_settings)
    stored = store.put("a", b"x")
    until = store.head("a").locked_until
    assert until is not None and timedelta(hours=23) < until - datetime.now(UTC) < timedelta(hours=25)
    with pytest.raises(StoreRefusedError, match="denies"):
        store.delete("a", stored.version)
    assert store.get("a", version=stored.version) == b"x"


def test_a_governance_lock_is_not_reported_as_one(seaweed: SeaweedFS, s3_settings: dict[str, Any]) -> None:
    name = f"governed-{uuid.uuid4().hex[:8]}"
    seaweed.create_bucket(name, lock=True)
    client = client_of(seaweed.endpoint, seaweed.keys)
    until = datetime.now(UTC) + timedelta(days=1)
    client.put_object(Bucket=name, Key="a", Body=b"x", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until)
    assert S3Store(f"s3://{name}", **s3_settings).head("a").locked_until is None


def test_no_read_probes_and_nothing_probes_twice(make_s3: MakeS3) -> None:
    requests = RequestCounter()
    store = make_s3(on_request=requests)
    with pytest.raises(NoSuchObjectError):
        store.head("a")
    assert list(store.list("")) == [] and requests.requests["put_object"] == 0
    store.put("a", b"x")
    probed = requests.total
    store.put("b", b"x")
    assert requests.total == probed + 1
    assert store.capabilities.full_object_crc
    assert requests.total == probed + 1
    # Whoever knows the capabilities already pays one request for one object.
    counted = RequestCounter()
    known = make_s3(store.url, capabilities=store.capabilities, on_request=counted)
    known.put("c", b"x")
    assert known.head("c").crc64 == crc64(b"x")
    assert counted.total == 2
    assert [found.key for found in store.list("")] == ["a", "b", "c"]


def test_a_checksum_of_an_unknown_store_is_not_believed(make_s3: MakeS3) -> None:
    writer = make_s3()
    writer.put("a", b"x")
    reader = make_s3(writer.url)
    assert reader.head("a").crc64 is None
    assert reader.capabilities.full_object_crc and reader.head("a").crc64 == crc64(b"x")


def test_two_uploads_of_one_key_have_one_winner_every_time(make_s3: MakeS3) -> None:
    store = make_s3()
    for round_number in range(12):
        bodies = [b"a" * 100, b"b" * 100]
        uploads = [store.begin(f"race-{round_number}") for _ in bodies]
        for upload, body in zip(uploads, bodies, strict=True):
            upload.part(1, 0, body, crc64(body))
        barrier = threading.Barrier(2)

        def finish(number: int, uploads: list[Any] = uploads, bodies: list[bytes] = bodies, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait(30)
            try:
                uploads[number].finish(crc64(bodies[number]), 100)
            except ObjectExistsError:
                return False
            return True

        with ThreadPoolExecutor(2) as threads:
            won = list(threads.map(finish, range(2)))
        assert sum(won) == 1
        assert store.get(f"race-{round_number}") == bodies[won.index(True)]


def test_objects_that_somebody_else_put_there_are_no_hindrance(make_s3: MakeS3, seaweed: SeaweedFS) -> None:
    store = make_s3()
    client = client_of(seaweed.endpoint, seaweed.keys)
    prefix = store.url.removeprefix(f"s3://{BUCKET}/")
    client.put_object(Bucket=BUCKET, Key=f"{prefix}/folder/", Body=b"")
    client.put_object(Bucket=BUCKET, Key=f"{prefix}x", Body=b"of a sibling prefix")
    store.put("folder/a", b"x")
    assert [found.key for found in store.list("")] == ["folder/a"]


def test_a_missing_bucket_is_no_missing_object_and_is_not_made(make_s3: MakeS3) -> None:
    for action in (
        lambda store: store.head("a"),
        lambda store: store.get("a"),
        lambda store: store.put("a", b"x"),
        lambda store: store.begin("a"),
        lambda store: list(store.list("")),
        lambda store: store.delete("a"),
        lambda store: store.server_time(),
        lambda store: store.capabilities,
    ):
        with pytest.raises(StoreRefusedError, match="no such bucket"):
            action(make_s3("s3://never-created/p"))


def test_rights_keys_and_addresses_that_do_not_fit(make_s3: MakeS3, seaweed: SeaweedFS) -> None:
    reader = make_s3(keys=lambda: seaweed.reader_keys)
    assert list(reader.list("")) == [] and reader.server_time() is not None
    with pytest.raises(NoSuchObjectError):
        reader.head("a")
    with pytest.raises(StoreRefusedError, match="denies"):
        reader.put("a", b"x")
    for keys in (AwsKeys("NOSUCHKEY", "x"), AwsKeys(seaweed.keys.access_key_id, "wrong")):
        store = make_s3(keys=lambda keys=keys: keys)
        for action in (lambda s: s.head("a"), lambda s: s.get("a"), lambda s: s.put("a", b""), lambda s: list(s.list(""))):
            with pytest.raises(StoreRefusedError, match="does not accept these credentials"):
                action(store)
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        make_s3(endpoint="http://127.0.0.1:1").head("a")
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        list(make_s3(endpoint="http://127.0.0.1:1").list(""))
    with pytest.raises(StoreUnavailableError, match="name cannot be resolved"):
        make_s3(endpoint="http://no-such-host.invalid").head("a")
    with pytest.raises(ConfigurationError, match="no URL"):
        make_s3(endpoint="nonsense").head("a")
    with pytest.raises(ConfigurationError, match="no such AWS profile"):
        make_s3(profile="no-such-profile", keys=None).head("a")


@pytest.mark.parametrize("url", ["s3://", "s3:///key", "s3://somebody@bucket", "s3://b/a//b", "s3://b/../a", "s3://b?x", "http://b"])
def test_urls_that_name_no_bucket(url: str) -> None:
    with pytest.raises(UsageError):
        S3Store(url)


def test_credentials_come_from_the_usual_settings(seaweed: SeaweedFS, s3_url: str, tmp_path: Any) -> None:
    (tmp_path / "config").write_text(f"[profile seawall]\nregion = eu-north-1\nendpoint_url = {seaweed.endpoint}\n")
    (tmp_path / "credentials").write_text(
        f"[seawall]\naws_access_key_id = {seaweed.keys.access_key_id}\naws_secret_access_key = {seaweed.keys.secret_access_key}\n"
    )
    code = f"from seawall.stores.locate import open_store; s = open_store({s3_url!r}); s.put('a', b'x'); print(s.get('a'))"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    files = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    by_profile = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **files, "AWS_PROFILE": "seawall"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert by_profile.stdout == "b'x'\n", by_profile.stderr
    none = {**clean, "AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CONFIG_FILE": "/dev/null"}
    by_nothing = subprocess.run([sys.executable, "-c", code], env=none, capture_output=True, text=True, check=False, timeout=60)
    assert "StoreRefusedError: there are no AWS credentials" in by_nothing.stderr


def test_a_key_that_is_too_long_with_the_prefix(make_s3: MakeS3) -> None:
    with pytest.raises(UsageError, match="1024"):
        make_s3(f"s3://{BUCKET}/" + "p" * 100).head("k" * 1000)


def test_an_upload_whose_writer_was_killed_is_found_and_removed(make_s3: MakeS3, s3_url: str, seaweed: SeaweedFS) -> None:
    code = f"""
import os, signal
from seawall.stores.s3 import S3Store
from seawall.stores.s3_signing import AwsKeys
from seawall.kernels.crc64 import crc64
store = S3Store({s3_url!r}, endpoint={seaweed.endpoint!r}, keys=lambda: AwsKeys(os.environ["KEY"], os.environ["SECRET"]))
data = bytes(5 << 20)
store.begin("big").part(1, 0, data, crc64(data))
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "KEY": seaweed.keys.access_key_id, "SECRET": seaweed.keys.secret_access_key}
    killed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=60, check=False)
    assert killed.returncode == -9, killed.stderr
    store = make_s3(s3_url)
    (found,) = store.leftovers("bi")
    assert found.key == "big" and abs(found.began - datetime.now(UTC)) < timedelta(minutes=3)
    assert list(store.list("")) == []
    store.abort_leftover(found)
    assert list(store.leftovers()) == []


def test_start_up_does_not_import_botocore() -> None:
    code = """
import sys
from seawall.stores.locate import open_store
open_store("s3://bucket/prefix"), open_store("file:///nowhere")
print([name for name in ("boto3", "botocore", "awscrt", "numpy") if name in sys.modules])
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout == "[]\n"


def test_a_whole_object_costs_one_request(make_s3: MakeS3) -> None:
    requests = RequestCounter()
    store = make_s3(on_request=requests)
    store.put("a", b"0123456789")
    store.put("empty", b"")
    requests.requests.clear()
    assert (store.get("a"), store.get("a", 4), store.get("a", 20), store.get("empty")) == (b"0123456789", b"456789", b"", b"")
    assert requests.requests == {"get_object": 4}


def test_threads_that_ask_at_once_share_one_probe(make_s3: MakeS3) -> None:
    requests = RequestCounter()
    store = make_s3(on_request=requests)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: store.put(f"{number}", b""), range(8)))
    assert requests.requests["CreateMultipartUpload"] == 1 and requests.requests["put_object"] == 8 + 3
