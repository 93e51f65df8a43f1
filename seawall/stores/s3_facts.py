"""What S3 response headers say about an object."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from seawall.stores.base import Stored
from seawall.stores.s3_errors import server_moment

ETAG = "etag:"
"""Marks a version that is only an entity tag: good for "is it still the same", never as a digest and never for reading old bytes."""


def crc_text(crc64: int) -> str:
    """As S3 writes it in headers: base64 of the eight bytes, the highest first."""
    return base64.b64encode(crc64.to_bytes(8, "big")).decode()


def crc_number(text: str | None) -> int | None:
    """Back from :func:`crc_text`; None for what is no CRC-64 of a whole object (S3 writes ``<checksum>-<parts>`` for composite ones)."""
    try:
        raw = base64.b64decode(text or "", validate=True)
    except ValueError:
        return None
    return int.from_bytes(raw, "big") if len(raw) == 8 else None


def version_of(headers: Mapping[str, str]) -> str | None:
    """Version id, or the entity tag where the bucket keeps no versions."""
    version = headers.get("x-amz-version-id")
    if version and version != "null":
        return version
    etag = headers.get("etag")
    return ETAG + etag if etag else None


def version_id(version: str | None) -> dict[str, str]:
    """The request parameter that reads this version; none for an entity tag, which names no older bytes."""
    return {} if version is None or version.startswith(ETAG) else {"VersionId": version}


def stored(key: str, size: int, headers: Mapping[str, str], *, trust_crc: bool) -> Stored:
    """An object from the headers of HEAD, PUT or a finished upload.

    A checksum counts only where the store is known to compute it: weak servers repeat what the client claimed. Only a
    COMPLIANCE lock is reported, because a GOVERNANCE lock yields to a header.
    """
    composite = headers.get("x-amz-checksum-type", "FULL_OBJECT").upper() != "FULL_OBJECT"
    modified = server_moment(headers)
    if "last-modified" in headers:
        modified = parsedate_to_datetime(headers["last-modified"]).astimezone(UTC)
    return Stored(
        key,
        size,
        crc64=crc_number(headers.get("x-amz-checksum-crc64nvme")) if trust_crc and not composite else None,
        version=version_of(headers),
        modified=modified,
        locked_until=_locked_until(headers),
    )


def lock_parameters(until: datetime | None) -> dict[str, str]:
    """Request parameters that lock what is written; COMPLIANCE, because a GOVERNANCE lock yields to a header. Whole seconds, rounded up."""
    if until is None:
        return {}
    whole = until.astimezone(UTC) + timedelta(microseconds=-until.microsecond % 1_000_000)
    return {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": f"{whole:%Y-%m-%dT%H:%M:%SZ}"}


def _locked_until(headers: Mapping[str, str]) -> datetime | None:
    text = headers.get("x-amz-object-lock-retain-until-date")
    if text is None or headers.get("x-amz-object-lock-mode", "").upper() != "COMPLIANCE":
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)
    except ValueError:
        return None
