"""A multipart upload to S3."""

import contextlib
from collections.abc import Callable
from typing import Any

from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreAmbiguousError
from seawall.stores.base import Buffer, Stored
from seawall.stores.buffers import as_views
from seawall.stores.parts import PartTable
from seawall.stores.s3_control import call
from seawall.stores.s3_facts import crc_text, stored
from seawall.stores.s3_session import S3Session
from seawall.stores.s3_wire import S3Wire


class S3Upload:
    """Parts are checked by the store as they arrive, the whole when it is finished, where the store computes CRC-64/NVME."""

    def __init__(
        self,
        wire: S3Wire,
        session: S3Session,
        key: str,
        name: dict[str, Any],
        where: str,
        *,
        crc: bool,
        taken: Callable[[], bool] | None,
        confirm: Callable[[Stored], Stored] | None,
        lock: dict[str, str] | None = None,
    ) -> None:
        """``taken`` looks whether the key exists, for a store that cannot refuse by itself; ``confirm`` looks after the finish whether
        another upload won, for a store that may let two of them finish. None where the store is exact. ``lock`` are its parameters."""
        self._wire = wire
        self._session = session
        self._key = key
        self._where = where
        self._crc = crc
        self._taken = taken
        self._confirm = confirm
        self._parts = PartTable(where)
        announced = {"ChecksumAlgorithm": "CRC64NVME", "ChecksumType": "FULL_OBJECT"} if crc else {}
        # "other": a second upload that nobody finishes is a leftover, not damage.
        answer = call(wire, "create_multipart_upload", "other", where, {**name, **announced, **(lock or {})})
        self._name: dict[str, Any] = {**name, "UploadId": answer["UploadId"]}
        self._over = False

    def part(self, number: int, start: int, data: Buffer, crc64: int) -> None:
        self._parts.expect(number, start)
        views = as_views(data)
        parameters: dict[str, Any] = {**self._name, "PartNumber": number}
        headers: dict[str, str] = {}
        if self._crc:
            parameters["ChecksumCRC64NVME"] = headers["x-amz-checksum-crc64nvme"] = crc_text(crc64)
        reply = self._wire.request("upload_part", parameters, "part", self._where, headers, views, needs="etag")
        self._parts.add(number, start, sum(view.nbytes for view in views), crc64, reply.headers["etag"])

    def finish(self, crc64: int, size: int) -> Stored:
        """As the protocol says. After ``StoreAmbiguousError`` the upload is left as it is: read the key, then abort."""
        if not len(self._parts):
            # S3 wants at least one part, and an empty one will do.
            self.part(1, 0, b"", 0)
        try:
            self._parts.check(crc64, size)
            if self._taken is not None and self._taken():
                raise ObjectExistsError("an object of this key exists", where=self._where, do="read it and compare before deciding")
            answer = call(self._wire, "complete_multipart_upload", "create", self._where, self._completion(crc64, size))
        except (ObjectExistsError, NoSuchObjectError):
            self.abort()
            raise
        self._over = True
        headers = {name.lower(): value for name, value in answer["ResponseMetadata"]["HTTPHeaders"].items() if name.lower() == "date"}
        headers["etag"] = answer.get("ETag", "")
        headers["x-amz-version-id"] = answer.get("VersionId", "")
        headers["x-amz-checksum-crc64nvme"] = answer.get("ChecksumCRC64NVME", "")
        facts = stored(self._key, size, headers, trust_crc=self._crc)
        if facts.crc64 is not None and facts.crc64 != crc64:
            raise StoreAmbiguousError(
                "the store put together another object than was sent",
                where=self._where,
                why=f"its CRC-64/NVME is {facts.crc64:016x}",
                do="verify the copy",
            )
        return facts if self._confirm is None else self._confirm(facts)

    def _completion(self, crc64: int, size: int) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            **self._name,
            "MultipartUpload": {"Parts": [{"PartNumber": number, "ETag": mark} for number, mark in self._parts.marks()]},
        }
        if self._crc:
            wanted |= {"ChecksumCRC64NVME": crc_text(crc64), "ChecksumType": "FULL_OBJECT", "MpuObjectSize": size}
        if self._taken is None:
            wanted["IfNoneMatch"] = "*"
        return wanted

    def abort(self) -> None:
        if self._over:
            return
        # Gone already means finished, or aborted by somebody who cleans up.
        with contextlib.suppress(NoSuchObjectError, StoreAmbiguousError):
            call(self._wire, "abort_multipart_upload", "other", self._where, self._name, has_body=False)
        self._over = True
