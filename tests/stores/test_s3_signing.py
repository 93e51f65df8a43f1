"""The signer of named endpoints beside botocore's: the same signature for the same request. And where credentials come from."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from seawall.clock import SystemClock
from seawall.stores.s3_session import S3Session
from seawall.stores.s3_signing import AwsKeys, signed_url

KEYS = [AwsKeys("AK", "SK/a+b="), AwsKeys("AK", "other", "token/with+signs==")]
REQUESTS = [
    ("GET", "http://127.0.0.1:8333/bucket/a/b", {}),
    ("PUT", "https://s3.example.com/bucket/k%20%C3%A9~x//y?partNumber=1&uploadId=a%2Bb%3D", {"if-none-match": "*"}),
    ("POST", "http://S3.Example.com:80/b/k?uploads=", {"x-amz-checksum-algorithm": "CRC64NVME", "x-amz-checksum-type": "FULL_OBJECT"}),
    ("GET", "https://[::1]:9000/b?list-type=2&prefix=a%2F%26&encoding-type=url", {}),
    ("HEAD", "https://h/b/%2E%2E/c", {"x-amz-checksum-mode": "ENABLED"}),
]


@pytest.mark.parametrize("keys", KEYS, ids=["plain", "with a token"])
@pytest.mark.parametrize(("method", "url", "headers"), REQUESTS, ids=lambda value: value if isinstance(value, str) else "")
def test_it_signs_as_botocore_does(keys: AwsKeys, method: str, url: str, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    import botocore.auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import ReadOnlyCredentials

    ours = dict(parse_qsl(urlsplit(signed_url(method, url, headers, keys, "eu-north-1", 900)).query, keep_blank_values=True))
    signed_at = datetime.fromisoformat(ours["X-Amz-Date"])
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: signed_at.replace(tzinfo=None))
    request = AWSRequest(method, url, headers=dict(headers))
    credentials = ReadOnlyCredentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
    botocore.auth.S3SigV4QueryAuth(credentials, "s3", "eu-north-1", expires=900).add_auth(request)
    theirs = dict(parse_qsl(urlsplit(str(request.prepare().url)).query, keep_blank_values=True))
    assert ours == theirs and len(ours["X-Amz-Signature"]) == 64
    assert abs(datetime.now(UTC) - signed_at).total_seconds() < 60


def test_a_signature_is_of_its_request() -> None:
    one = signed_url("GET", "http://h/b/a", {}, KEYS[0], "us-east-1", 900)
    assert one != signed_url("PUT", "http://h/b/a", {}, KEYS[0], "us-east-1", 900)
    assert one.startswith("http://h/b/a?")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without AWS settings, and an environment without them."""
    import os

    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def session(keys: AwsKeys | None = None) -> S3Session:
    return S3Session(
        endpoint="http://127.0.0.1:9",
        region=None,
        profile=None,
        keys=None if keys is None else lambda: keys,
        transfers=1,
        on_request=None,
        clock=SystemClock(),
    )


def signed_as(of: S3Session) -> tuple[str, str, str]:
    """Key id, region and token that a request is signed with."""
    query = dict(parse_qsl(urlsplit(of.sign("head_bucket", {"Bucket": "b"})[0]).query))
    name, _, region, *_ = query["X-Amz-Credential"].split("/")
    return name, region, query.get("X-Amz-Security-Token", "")


def test_the_environment_is_read_as_botocore_reads_it(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FROMENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    assert signed_as(session()) == ("FROMENV", "us-east-1", "token")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert signed_as(session()) == ("FROMENV", "eu-north-1", "token")
    assert signed_as(session(AwsKeys("GIVEN", "s"))) == ("GIVEN", "eu-north-1", "")


@pytest.mark.parametrize("variable", ["", "AWS_CONFIG_FILE"])
def test_a_file_of_settings_has_its_say(bare: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FROMENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    file = bare / "settings" if variable else bare / ".aws" / "config"
    file.parent.mkdir(exist_ok=True)
    file.write_text("[default]\nregion = sa-east-1\n[profile other]\naws_access_key_id = OTHER\naws_secret_access_key = s\n")
    if variable:
        monkeypatch.setenv(variable, str(file))
    assert signed_as(session()) == ("FROMENV", "sa-east-1", "")


def test_a_profile_has_its_say(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bare / ".aws").mkdir()
    (bare / ".aws" / "credentials").write_text("[other]\naws_access_key_id = OTHER\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert signed_as(session())[0] == "OTHER"


def test_botocore_is_not_imported_for_what_is_at_hand(bare: Path) -> None:
    code = (
        "import sys; from seawall.clock import SystemClock; from seawall.stores.s3_session import S3Session\n"
        "of = S3Session(endpoint='http://127.0.0.1:9', region=None, profile=None, keys=None, transfers=1, on_request=None,"
        " clock=SystemClock())\n"
        "of.sign('get_object', {'Bucket': 'b', 'Key': 'k'}); print('botocore' in sys.modules)"
    )
    env = {"HOME": str(bare), "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
