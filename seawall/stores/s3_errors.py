"""What an S3 server's answer, or its silence, means to a caller. Codes: Amazon S3 API Reference, "Error responses"."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from seawall.errors import (
    NoSuchObjectError,
    ObjectExistsError,
    StoreAmbiguousError,
    StoreError,
    StoreRefusedError,
    StoreUnavailableError,
)

Kind = Literal["read", "part", "create", "replace", "other"]
"""``create`` and ``replace`` must not be repeated when nobody knows whether they took effect; the rest may be."""

EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
"""Fresh credentials, or a fresh signature, and the same request again."""
_BAD_CREDENTIALS = frozenset(
    {
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "InvalidToken",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "InvalidSecurity",
    }
)
_COME_BACK = frozenset(
    {"SlowDown", "ServiceUnavailable", "TooManyRequests", "Throttling", "ThrottlingException", "RequestTimeout", "RequestThrottled"}
)
_CONFLICT = frozenset({"ConditionalRequestConflict", "OperationAborted"})
_BAD_CHECKSUM = frozenset({"BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch"})
_FULL = frozenset({"QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "StorageFull"})


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, error code and message of a response, headers with lower-case names."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str]


def read_answer(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """Take code and message out of an error document. A pattern suffices: the document is short, flat, and only for a person."""
    text = body[:65536].decode("utf-8", "replace")
    code = re.search(r"<Code>([^<]*)</Code>", text)
    message = re.search(r"<Message>([^<]*)</Message>", text)
    lower = {name.lower(): value for name, value in headers.items()}
    return Answer(status, code[1].strip() if code else "", message[1].strip() if message else "", lower)


def is_expired(answer: Answer) -> bool:
    """Whether new credentials or a new signature may help."""
    return answer.code in EXPIRED


def server_moment(headers: Mapping[str, str]) -> datetime | None:
    """The server's clock from the Date header (RFC 9110 section 6.6.1)."""
    try:
        return parsedate_to_datetime(headers["date"]).astimezone(UTC)
    except (KeyError, ValueError, TypeError):
        return None


def answer_error(answer: Answer, kind: Kind, where: str, now: datetime) -> StoreError:
    """The typed error for one refusal. ``now`` is this host's clock, to tell how far it is off."""
    status, code = answer.status, answer.code
    why = f"{status} {code}: {answer.message}".rstrip(": ")
    if code == "NoSuchBucket":
        return StoreRefusedError("there is no such bucket", where=where, why=why, do="create the bucket or correct the store's url")
    if code == "NoSuchUpload":
        return StoreAmbiguousError(
            "the upload is gone",
            where=where,
            why="an earlier try finished it, or somebody aborted it",
            do="read the key before sending it again",
        )
    if code in ("NoSuchKey", "NoSuchVersion") or status == 404 or (status == 405 and kind == "read"):
        return NoSuchObjectError("no such object", where=where, why=code)
    if status == 412 or code == "PreconditionFailed":
        if kind == "create":
            return ObjectExistsError("an object of this key exists", where=where, do="read it and compare before deciding")
        return StoreRefusedError("another object is there than the one that was examined", where=where, why=why, do="examine it again")
    if status == 409 and code in _CONFLICT:
        return StoreUnavailableError("another writer is busy with this key", where=where, why=why)
    if code in _COME_BACK or status in (429, 503):
        return StoreUnavailableError("the store asks to come back later", where=where, why=why)
    if status >= 500 and code not in _FULL and status not in (501, 507):
        return lost(kind, where, why)
    return _refusal(answer, why, where, now)


def _refusal(answer: Answer, why: str, where: str, now: datetime) -> StoreRefusedError:
    status, code = answer.status, answer.code
    # Every request is signed right before it is sent: when S3 calls the signature old, or of tomorrow, a clock is wrong.
    if code in ("RequestTimeTooSkewed", "RequestExpired") or (code == "AccessDenied" and answer.message.startswith("Request")):
        server = server_moment(answer.headers)
        off = f"this host's clock is {abs((now - server).total_seconds()):.0f} s {'ahead' if now > server else 'behind'}" if server else why
        return StoreRefusedError(
            "the store does not accept this host's clock", where=where, why=off, do="set the clock (NTP), then run it again"
        )
    if is_expired(answer):
        return StoreRefusedError(
            "the credentials have expired and there are no newer ones", where=where, why=why, do="sign in again, or renew the token"
        )
    if code in _BAD_CREDENTIALS:
        return StoreRefusedError(
            "the store does not accept these credentials",
            where=where,
            why=why,
            do="check access key, secret and profile, and that they belong to this endpoint",
        )
    if code in _BAD_CHECKSUM:
        return StoreRefusedError(
            "the store received other bytes than were sent",
            where=where,
            why=why,
            do="send them again; if it repeats, suspect memory or network",
        )
    if code in _FULL or status == 507:
        return StoreRefusedError("the store is full", where=where, why=why, do="make room or raise the quota")
    if code == "InvalidObjectState":
        return StoreRefusedError(
            "the object must be recalled from its archive class first", where=where, why=why, do="restore it in the store, then try again"
        )
    if status in (301, 307) or code in ("PermanentRedirect", "AuthorizationHeaderMalformed"):
        region = answer.headers.get("x-amz-bucket-region", "")
        return StoreRefusedError(
            "the bucket is in another region", where=where, why=f"it is in {region}" if region else why, do="set the region of this profile"
        )
    if status == 403:
        return StoreRefusedError(
            "the store denies this request",
            where=where,
            why=why,
            do="check the rights of these credentials on this bucket and prefix, and object locks",
        )
    return StoreRefusedError("the store refuses this request", where=where, why=why)


def lost(kind: Kind, where: str, why: str) -> StoreError:
    """No usable answer after the whole request was sent."""
    if kind in ("create", "replace"):
        return StoreAmbiguousError(
            "the store may have carried the request out", where=where, why=why, do="read the key back and compare before sending it again"
        )
    return StoreUnavailableError("the store did not answer", where=where, why=why, do="check the network and the store, then run it again")
