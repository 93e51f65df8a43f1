"""A store in an S3 bucket: AWS, SeaweedFS, and weaker servers for secondary copies. ``s3://bucket/prefix``.

* Credentials, signatures and control calls come from botocore, the bytes travel over urllib3 (s3_wire.py says why).
* What the server really does is probed before the first write (s3_probe.py), or passed in by who knows it. A read never probes,
  so an object's CRC-64 is reported only after somebody asked for ``capabilities`` or gave them.
* Where the server has no create-if-absent, ``put`` looks for the key first. That is no protection against a second writer at
  the same moment, which is why such a store takes one writer under a lease.
* A version is the version id, or ``etag:…`` in a bucket without versions: that one tells whether an object was replaced, and reads
  ignore it.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from seawall.clock import Clock, SystemClock
from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreAmbiguousError, StoreRefusedError, UsageError
from seawall.stores import s3_recall
from seawall.stores.base import Buffer, Capabilities, Leftover, Stored, Upload, checked_key
from seawall.stores.buffers import as_views, crc_of
from seawall.stores.s3_confirm import confirm_finish
from seawall.stores.s3_control import call
from seawall.stores.s3_facts import ETAG, crc_text, lock_parameters, stored, version_id
from seawall.stores.s3_listing import PROBES, list_by_folder, list_flat
from seawall.stores.s3_promises import finishes_once, lists_in_key_order
from seawall.stores.s3_session import S3Session
from seawall.stores.s3_signing import AwsKeys
from seawall.stores.s3_upload import S3Upload
from seawall.stores.s3_wire import S3Wire

_KEY_BYTES = 1024
"""Longest key that S3 takes, prefix included (Amazon S3 User Guide, "Naming Amazon S3 objects")."""


class S3Store:
    """See the module. ``transfers`` is the number of connections that are kept; more threads may call."""

    def __init__(
        self,
        url: str,
        *,
        endpoint: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        keys: Callable[[], AwsKeys] | None = None,
        transfers: int = 16,
        capabilities: Capabilities | None = None,
        on_request: Callable[[str], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.url = url
        self.bucket, self._prefix = bucket_and_prefix(url)
        self.session = S3Session(
            endpoint=endpoint,
            region=region,
            profile=profile,
            keys=keys,
            transfers=transfers,
            on_request=on_request,
            clock=clock or SystemClock(),
        )
        self.wire = S3Wire(self.session, transfers)
        self._probing = threading.Lock()
        self._capabilities = capabilities

    @property
    def capabilities(self) -> Capabilities:
        """As given, or probed with a dozen requests when first asked."""
        with self._probing:
            if self._capabilities is None:
                from seawall.stores.s3_probe import probe

                self._capabilities = probe(self)
            return self._capabilities

    @property
    def known_capabilities(self) -> Capabilities | None:
        """What was given or probed so far; None before anybody asked. For who keeps it for the next process."""
        return self._capabilities

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        name = {**self.name(key), **self._lock(key, lock_until)}
        can = self.capabilities
        if not can.conditional_put and self._exists(key):
            raise ObjectExistsError("an object of this key exists", where=self.where(key), do="read it and compare before deciding")
        condition = {"IfNoneMatch": "*"} if can.conditional_put else {}
        return self.send(key, {**name, **condition}, as_views(data), crc64, crc=can.full_object_crc)

    def send(
        self, key: str, parameters: dict[str, Any], views: Sequence[memoryview], crc64: int | None, *, crc: bool, replace: bool = False
    ) -> Stored:
        """One PutObject under the conditions in ``parameters``, with a checksum when ``crc`` says that the store checks it."""
        headers = {}
        if "IfNoneMatch" in parameters:
            headers["if-none-match"] = parameters["IfNoneMatch"]
        if "IfMatch" in parameters:
            headers["if-match"] = parameters["IfMatch"]
        if "ObjectLockMode" in parameters:
            headers["x-amz-object-lock-mode"] = parameters["ObjectLockMode"]
            headers["x-amz-object-lock-retain-until-date"] = parameters["ObjectLockRetainUntilDate"]
        if crc:
            text = crc_text(crc_of(views) if crc64 is None else crc64)
            parameters = {**parameters, "ChecksumCRC64NVME": text}
            headers["x-amz-checksum-crc64nvme"] = text
        reply = self.wire.request(
            "put_object", parameters, "replace" if replace else "create", self.where(key), headers, views, needs="etag"
        )
        return stored(key, sum(view.nbytes for view in views), reply.headers, trust_crc=crc)

    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        can = self.capabilities
        return S3Upload(
            self.wire,
            self.session,
            key,
            self.name(key),
            self.where(key),
            crc=can.full_object_crc,
            taken=None if can.conditional_put else lambda: self._exists(key),
            confirm=self._confirmation(key),
            lock=self._lock(key, lock_until),
        )

    def extend_lock(self, key: str, until: datetime, version: str | None = None) -> None:
        """As the protocol says; of the newest version where none is named."""
        lock = self._lock(key, until)
        retention = {"Mode": lock["ObjectLockMode"], "RetainUntilDate": lock["ObjectLockRetainUntilDate"]}
        parameters = {**self.name(key), **version_id(version), "Retention": retention}
        call(self.wire, "put_object_retention", "other", self.where(key), parameters, has_body=False)

    def _lock(self, key: str, until: datetime | None) -> dict[str, str]:
        if until is not None and not self.capabilities.object_lock:
            raise StoreRefusedError(
                "this store has no object lock",
                where=self.where(key),
                why="; ".join(reason for reason in self.capabilities.reasons if reason.startswith("object_lock")),
                do="use a bucket that was made with object lock, or ask for no lock under [stores]",
            )
        return lock_parameters(until)

    def _confirmation(self, key: str) -> Callable[[Stored], Stored] | None:
        if not self.capabilities.conditional_put:
            # rclone names another entity tag when it finishes an upload than afterwards: report what HEAD says.
            return lambda _: self.head(key)
        if finishes_once(self._endpoint()):
            return None
        return lambda mine: confirm_finish(self.wire, self.session, self.name(key), self.where(key), mine)

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        name = self.name(key)
        if length == 0:
            self.head(key, version)
            return b""
        return bytes(self.wire.fetch({**name, **version_id(version)}, self.where(key), start, length))

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        name = self.name(key)
        view = buffer.cast("B")
        if not view.nbytes:
            self.head(key, version)
            return 0
        return self.wire.fetch({**name, **version_id(version)}, self.where(key), start, view.nbytes, view).nbytes

    def head(self, key: str, version: str | None = None) -> Stored:
        parameters = {**self.name(key), **version_id(version), "ChecksumMode": "ENABLED"}
        reply = self.wire.request(
            "head_object", parameters, "read", self.where(key), {"x-amz-checksum-mode": "ENABLED"}, needs="content-length"
        )
        return stored(
            key,
            int(reply.headers["content-length"]),
            reply.headers,
            trust_crc=self._capabilities is not None and self._capabilities.full_object_crc,
        )

    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        listed = list_flat if lists_in_key_order(self._endpoint(), self.bucket) else list_by_folder
        for found in listed(self._pages, self._prefix + prefix, self._prefix + after if after else ""):
            key = found.key[len(self._prefix) :]
            if not key.startswith(PROBES):
                yield replace(found, key=key)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """As the protocol says. SeaweedFS goes on naming a folder for a while after its last object was deleted."""
        if prefix and not prefix.endswith("/"):
            raise UsageError("a folder prefix is empty or ends in /", where=prefix)
        full = self._prefix + prefix
        found: set[str] = set()
        for page in self._pages({"Prefix": full, "Delimiter": "/"}):
            found.update(entry["Prefix"][len(full) :] for entry in page.get("CommonPrefixes", []))
        yield from (name[:-1] for name in sorted(found) if prefix + name != PROBES)

    def replace(self, key: str, data: Buffer | Sequence[Buffer], damaged_version: str | None, crc64: int | None = None) -> Stored:
        """As the protocol says. Stores that honour If-Match refuse even a replacement that comes in between."""
        can = self.capabilities
        if damaged_version is None:
            try:
                return self.put(key, data, crc64)
            except ObjectExistsError as error:
                raise StoreRefusedError(
                    "there is an object, and no version of it was named", where=self.where(key), do="take it from head"
                ) from error
        parameters = {**self.name(key), "IfMatch": self._entity_tag_of(key, damaged_version)}
        return self.send(key, parameters, as_views(data), crc64, crc=can.full_object_crc, replace=True)

    def delete(self, key: str, version: str | None = None) -> None:
        """Remove the object, or the version. Without a version a versioned bucket hides the object and keeps its bytes.

        An object that is not there is no error: a repeated delete must succeed.
        """
        name = self.name(key)
        try:
            if version is not None and version.startswith(ETAG):
                self._entity_tag_of(key, version)
            call(self.wire, "delete_object", "other", self.where(key), {**name, **version_id(version)}, has_body=False)
        except NoSuchObjectError as error:
            if "bucket" in error.what:
                raise

    def server_time(self) -> datetime | None:
        """From the Date header of one small answer; whole seconds."""
        return self.wire.bucket_moment(self.bucket, self.url)

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        """Multipart uploads that were begun and neither finished nor aborted, also those still in progress."""
        wanted: dict[str, Any] = {"Bucket": self.bucket, "Prefix": self._prefix + prefix}
        while True:
            page = call(self.wire, "list_multipart_uploads", "read", self.url, wanted)
            for found in page.get("Uploads", []):
                yield Leftover(found["Key"][len(self._prefix) :], found["UploadId"], found["Initiated"].astimezone(UTC))
            if not page.get("IsTruncated") or not page.get("NextKeyMarker"):
                return
            wanted |= {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page.get("NextUploadIdMarker", "")}

    def abort_leftover(self, leftover: Leftover) -> None:
        # Gone already means finished, or aborted by somebody else who cleans up.
        with contextlib.suppress(NoSuchObjectError, StoreAmbiguousError):
            call(
                self.wire,
                "abort_multipart_upload",
                "other",
                self.where(leftover.key),
                {**self.name(leftover.key), "UploadId": leftover.upload},
                has_body=False,
            )

    def warm(self, keys: Sequence[str]) -> None:
        """Ask for what lies in an archive class (Glacier); the rest is readable as it is."""
        s3_recall.warm(self, keys)

    def wait_warm(self, keys: Sequence[str], timeout_seconds: float) -> None:
        s3_recall.wait_warm(self, keys, timeout_seconds)

    def close(self) -> None:
        self.wire.close()
        self.session.close()

    def name(self, key: str) -> dict[str, Any]:
        """Bucket and key as request parameters; ``UsageError`` for a key that leaves the prefix or that S3 cannot hold."""
        full = self._prefix + checked_key(key)
        if len(full.encode()) > _KEY_BYTES:
            raise UsageError(f"the key with the store's prefix is longer than {_KEY_BYTES} bytes", where=full)
        return {"Bucket": self.bucket, "Key": full}

    def where(self, key: str) -> str:
        """The object for a person."""
        return f"s3://{self.bucket}/{self._prefix}{key}"

    def _endpoint(self) -> str:
        return self.session.endpoint()

    def _exists(self, key: str) -> bool:
        try:
            self.head(key)
        except NoSuchObjectError:
            return False
        return True

    def _entity_tag_of(self, key: str, version: str) -> str:
        reply = self.wire.request("head_object", self.name(key), "read", self.where(key), {}, needs="etag")
        etag = reply.headers["etag"]
        there = stored(key, 0, reply.headers, trust_crc=False).version
        if there != version:
            raise StoreRefusedError(
                "another object is there than the one that was examined",
                where=self.where(key),
                why=f"version {there}, not {version}",
                do="examine it again",
            )
        return etag

    def _pages(self, wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
        parameters = {"Bucket": self.bucket, **wanted}
        while True:
            page = call(self.wire, "list_objects_v2", "read", self.url, parameters)
            yield page
            if not page.get("IsTruncated") or not page.get("NextContinuationToken"):
                return
            parameters["ContinuationToken"] = page["NextContinuationToken"]


def bucket_and_prefix(url: str) -> tuple[str, str]:
    """The bucket, and the prefix with its ``/`` (or empty). ``UsageError`` for anything but ``s3://bucket[/prefix]``."""
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError("an S3 store is written s3://bucket/prefix", where=url, do="give keys and endpoint as settings, not in the url")
    if prefix:
        checked_key(prefix)
    return parts.netloc, prefix + "/" if prefix else ""
