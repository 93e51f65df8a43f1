"""Signing one request for a named S3 endpoint, by the AWS common runtime.

``awscrt`` is loaded anyway for its checksums. botocore's signer gives the same signature for five times the time, and importing it and
the session that finds its credentials is a fifth of a small command (decision 0009).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from awscrt.auth import AwsCredentialsProvider  # type: ignore[import-untyped]  # awscrt has no stubs


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """One set of credentials, as an Airflow connection, the environment or a test has them."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def signed_url(method: str, url: str, headers: Mapping[str, str], keys: AwsKeys, region: str, seconds: int) -> str:
    """``url`` with a signature in its query that holds for ``seconds``; ``headers`` are signed, and have to be sent.

    The path and the query of ``url`` are percent-encoded already and signed as they are. The body is not signed: S3 checks it by the
    checksum among the headers, or not at all (AWS Signature Version 4, "Authenticating Requests: Using Query Parameters").
    """
    from awscrt.auth import (
        AwsSignatureType,
        AwsSignedBodyHeaderType,
        AwsSignedBodyValue,
        AwsSigningAlgorithm,
        AwsSigningConfig,
        aws_sign_request,
    )
    from awscrt.http import HttpHeaders, HttpRequest  # type: ignore[import-untyped]  # as above

    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    request = HttpRequest(method, target, HttpHeaders([("host", _host(parts.scheme, parts.netloc)), *headers.items()]))
    config = AwsSigningConfig(
        algorithm=AwsSigningAlgorithm.V4,
        signature_type=AwsSignatureType.HTTP_REQUEST_QUERY_PARAMS,
        credentials_provider=_provider(keys),
        region=region,
        service="s3",
        # S3 alone signs the path as it is sent.
        use_double_uri_encode=False,
        should_normalize_uri_path=False,
        signed_body_value=AwsSignedBodyValue.UNSIGNED_PAYLOAD,
        signed_body_header_type=AwsSignedBodyHeaderType.NONE,
        expiration_in_seconds=seconds,
    )
    signed: Any = aws_sign_request(request, config).result()
    return f"{parts.scheme}://{parts.netloc}{signed.path}"


def _host(scheme: str, netloc: str) -> str:
    """What urllib3 sends as ``Host``: the port only where it is not the scheme's own."""
    host = netloc.rpartition("@")[2].lower()
    return host.removesuffix({"http": ":80", "https": ":443"}[scheme])


@lru_cache(maxsize=8)
def _provider(keys: AwsKeys) -> "AwsCredentialsProvider":
    from awscrt.auth import AwsCredentialsProvider

    return AwsCredentialsProvider.new_static(keys.access_key_id, keys.secret_access_key, keys.session_token)
