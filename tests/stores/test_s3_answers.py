"""What each answer of a server means, without a server."""

from datetime import UTC, datetime

import pytest

from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreAmbiguousError, StoreError, StoreRefusedError, StoreUnavailableError
from seawall.stores.s3_errors import Kind, answer_error, is_expired, lost, read_answer
from seawall.stores.s3_facts import crc_number, crc_text, stored, version_id
from seawall.stores.s3_listing import start_marker
from seawall.stores.s3_promises import finishes_once, lists_in_key_order

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def _error(status: int, code: str = "", kind: Kind = "read", message: str = "", **headers: str) -> StoreError:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    return answer_error(
        read_answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, body), kind, "s3://b/k", NOW
    )


@pytest.mark.parametrize(
    ("status", "code", "kind", "wanted"),
    [
        (404, "NoSuchKey", "read", NoSuchObjectError),
        (404, "NoSuchVersion", "read", NoSuchObjectError),
        (404, "", "read", NoSuchObjectError),
        (405, "MethodNotAllowed", "read", NoSuchObjectError),
        (404, "NoSuchBucket", "read", StoreRefusedError),
        (404, "NoSuchUpload", "create", StoreAmbiguousError),
        (412, "PreconditionFailed", "create", ObjectExistsError),
        (412, "PreconditionFailed", "replace", StoreRefusedError),
        (409, "ConditionalRequestConflict", "create", StoreUnavailableError),
        (409, "BucketAlreadyExists", "other", StoreRefusedError),
        (503, "SlowDown", "create", StoreUnavailableError),
        (503, "", "create", StoreUnavailableError),
        (429, "", "create", StoreUnavailableError),
        (400, "RequestTimeout", "create", StoreUnavailableError),
        (500, "InternalError", "read", StoreUnavailableError),
        (500, "InternalError", "part", StoreUnavailableError),
        (500, "InternalError", "create", StoreAmbiguousError),
        (502, "", "create", StoreAmbiguousError),
        (504, "", "replace", StoreAmbiguousError),
        (501, "NotImplemented", "create", StoreRefusedError),
        (507, "", "create", StoreRefusedError),
        (403, "QuotaExceeded", "create", StoreRefusedError),
        (403, "AccessDenied", "create", StoreRefusedError),
        (403, "InvalidObjectState", "read", StoreRefusedError),
        (400, "BadDigest", "part", StoreRefusedError),
        (418, "", "create", StoreRefusedError),
    ],
)
def test_every_refusal_has_its_type(status: int, code: str, kind: Kind, wanted: type[StoreError]) -> None:
    assert type(_error(status, code, kind)) is wanted


def test_a_wrong_clock_is_named_with_its_error() -> None:
    text = str(_error(403, "RequestTimeTooSkewed", date="Thu, 01 Jan 2026 11:40:00 GMT"))
    assert "clock is 1200 s ahead" in text and "NTP" in text
    assert "clock" in str(_error(403, "AccessDenied", message="Request has expired"))
    assert "clock" in str(_error(403, "AccessDenied", message="Request is not yet valid"))
    assert "clock" not in str(_error(403, "AccessDenied", message="Access Denied"))


def test_a_bucket_elsewhere_is_named_with_its_region() -> None:
    assert "it is in eu-west-3" in str(_error(301, "PermanentRedirect", x_amz_bucket_region="eu-west-3"))


def test_expired_tokens_are_told_from_denials() -> None:
    assert is_expired(read_answer(400, {}, b"<Error><Code>ExpiredToken</Code></Error>"))
    assert not is_expired(read_answer(403, {}, b"<Error><Code>AccessDenied</Code></Error>"))
    assert "no newer ones" in str(_error(400, "ExpiredToken"))


def test_silence_is_ambiguous_only_for_what_must_not_happen_twice() -> None:
    assert [lost(kind, "", "").outcome for kind in ("read", "part", "other", "create", "replace")] == [
        "transient", "transient", "transient", "ambiguous", "ambiguous",
    ]  # fmt: skip


def test_garbage_instead_of_an_error_document() -> None:
    answer = read_answer(500, {"Date": "nonsense"}, b"\xff\xfe<html>" * 100_000)
    assert (answer.code, answer.message) == ("", "")
    assert isinstance(answer_error(answer, "read", "", NOW), StoreUnavailableError)


def test_checksums_in_headers() -> None:
    assert crc_text(0xAE8B14860A799888) == "rosUhgp5mIg="
    assert crc_number("rosUhgp5mIg=") == 0xAE8B14860A799888
    for text in (None, "", "rosUhgp5mIg=-3", "AAAA", "!"):
        assert crc_number(text) is None
    composite = {"x-amz-checksum-crc64nvme": "rosUhgp5mIg=", "x-amz-checksum-type": "COMPOSITE"}
    assert stored("k", 9, composite, trust_crc=True).crc64 is None
    assert stored("k", 9, {"x-amz-checksum-crc64nvme": "rosUhgp5mIg="}, trust_crc=False).crc64 is None


def test_versions_in_headers() -> None:
    assert stored("k", 0, {"etag": '"e"', "x-amz-version-id": "v"}, trust_crc=False).version == "v"
    assert stored("k", 0, {"etag": '"e"', "x-amz-version-id": "null"}, trust_crc=False).version == 'etag:"e"'
    assert version_id("v") == {"VersionId": "v"} and version_id('etag:"e"') == {} and version_id(None) == {}


@pytest.mark.parametrize(
    ("after", "marker"),
    [("p/abc", "p/ab"), ("p/00000123.json", "p/0000012"), ("p/a-b", ""), ("p/ab/c", "p/a"), ("p/", ""), ("p/a", ""), ("p/ab c/d", "p/a")],
)
def test_a_folder_listing_starts_early_enough_for_both_orders(after: str, marker: str) -> None:
    assert start_marker("p/", after) == marker


def test_only_aws_is_taken_at_its_word() -> None:
    aws = "https://s3.eu-west-3.amazonaws.com"
    assert lists_in_key_order(aws, "bucket") and finishes_once(aws)
    assert not lists_in_key_order(aws, "bucket--euw3-az1--x-s3")
    for other in ("http://127.0.0.1:8333", "https://amazonaws.com.example.org", "https://s3.example.org"):
        assert not lists_in_key_order(other, "bucket") and not finishes_once(other)
