"""What an S3 server really does, tried out with a dozen small requests under ``.seawall-probe/``, which are removed again.

No feature is believed from a product's name: ``rclone serve s3`` answers every conditional create with 200 and every wrong
checksum with success, and repeats the claimed checksum at HEAD.

A bucket with a default retention locks the probe's object too: its version then stays, hidden behind a delete marker, until the lock ends.
"""

import secrets
from typing import TYPE_CHECKING, Any

from seawall.errors import ObjectExistsError, StoreError, StoreRefusedError
from seawall.kernels.crc64 import crc64
from seawall.stores.base import Capabilities
from seawall.stores.s3_control import call
from seawall.stores.s3_facts import ETAG, crc_number, crc_text
from seawall.stores.s3_listing import PROBES
from seawall.stores.s3_upload import S3Upload

if TYPE_CHECKING:
    from seawall.stores.s3 import S3Store

_BODY = b"seawall tries out what this store does"


def probe(store: "S3Store") -> Capabilities:
    """Try the store. Raises the store's error when not even a plain put works."""
    key = f"{PROBES}{secrets.token_hex(8)}"
    crc = crc64(_BODY)
    reasons: list[str] = []
    # SeaweedFS makes a missing bucket when an administrator puts an object, so a mistyped name would become a new, empty store.
    store.server_time()
    first = store.send(key, {**store.name(key), "IfNoneMatch": "*"}, [memoryview(_BODY)], crc, crc=True)
    try:
        creates = _creates_once(store, key, crc, reasons)
        checks = _refuses_wrong_crc(store, f"{key}-wrong", crc, reasons) and _reports_crc(store, key, crc, reasons)
        locks = _has_lock(store, reasons)
    finally:
        _remove(store, key, first.version)
    versions = first.version is not None and not first.version.startswith(ETAG)
    if not versions:
        reasons.append("versions: the bucket keeps none")
    timed = first.modified is not None
    if not timed:
        reasons.append("server_time: answers carry no Date header")
    return Capabilities(
        conditional_put=creates,
        object_lock=locks,
        full_object_crc=checks,
        server_time=timed,
        versions=versions,
        reasons=tuple(reasons),
    )


def _creates_once(store: "S3Store", key: str, crc: int, reasons: list[str]) -> bool:
    try:
        store.send(key, {**store.name(key), "IfNoneMatch": "*"}, [memoryview(_BODY)], crc, crc=True)
    except ObjectExistsError:
        pass
    else:
        reasons.append("conditional_put: a second PUT with If-None-Match was not refused")
        return False
    upload = S3Upload(store.wire, store.session, key, store.name(key), store.where(key), crc=False, taken=None, confirm=None)
    try:
        upload.part(1, 0, _BODY, crc)
        upload.finish(crc, len(_BODY))
    except ObjectExistsError:
        return True
    except StoreRefusedError as error:
        reasons.append(f"conditional_put: CompleteMultipartUpload with If-None-Match fails ({error.why})")
    else:
        reasons.append("conditional_put: CompleteMultipartUpload with If-None-Match was not refused")
    finally:
        upload.abort()
    return False


def _refuses_wrong_crc(store: "S3Store", key: str, crc: int, reasons: list[str]) -> bool:
    try:
        accepted = store.send(key, store.name(key), [memoryview(_BODY)], crc ^ 1, crc=True, replace=True)
    except StoreRefusedError:
        return True
    _remove(store, key, accepted.version)
    reasons.append("full_object_crc: a wrong CRC-64/NVME was accepted")
    return False


def _reports_crc(store: "S3Store", key: str, crc: int, reasons: list[str]) -> bool:
    parameters = {**store.name(key), "ChecksumMode": "ENABLED"}
    reply = store.wire.request(
        "head_object", parameters, "read", store.where(key), {"x-amz-checksum-mode": "ENABLED"}, needs="content-length"
    )
    text = reply.headers.get("x-amz-checksum-crc64nvme")
    if crc_number(text) == crc:
        return True
    reasons.append(f"full_object_crc: HEAD reports {text or 'none'}, not {crc_text(crc)}")
    return False


def _has_lock(store: "S3Store", reasons: list[str]) -> bool:
    try:
        answer = call(store.wire, "get_object_lock_configuration", "read", store.url, {"Bucket": store.bucket})
    except StoreError as error:
        reasons.append(f"object_lock: not set on this bucket ({error.why or error.what})")
        return False
    enabled: Any = answer.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled")
    if enabled != "Enabled":
        reasons.append("object_lock: not set on this bucket")
    return bool(enabled == "Enabled")


def _remove(store: "S3Store", key: str, version: str | None) -> None:
    try:
        store.delete(key, version)
    except StoreRefusedError:
        # Locked by the bucket's default retention, or these credentials may not delete: hide it where that is allowed.
        try:
            store.delete(key)
        except StoreRefusedError:
            return
