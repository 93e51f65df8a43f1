"""Requests to an S3 endpoint that was named, where the bucket stands in the path: what each operation says, and its answer.

botocore's client loads the description of all of S3 (0.12 CPU seconds) and walks it for every call (some 3 ms). A named
endpoint needs none of that: a signer is enough for the ten operations below, and their answers are a few XML elements. At AWS
itself, where the endpoint follows from region, partition and settings, the client does it all.

Operations, parameters and elements: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote_plus
from xml.etree import ElementTree

_QUERY = {
    "VersionId": "versionId",
    "PartNumber": "partNumber",
    "UploadId": "uploadId",
    "Prefix": "prefix",
    "Delimiter": "delimiter",
    "StartAfter": "start-after",
    "MaxKeys": "max-keys",
    "ContinuationToken": "continuation-token",
    "KeyMarker": "key-marker",
    "UploadIdMarker": "upload-id-marker",
}
_HEADERS = {
    "IfNoneMatch": "if-none-match",
    "IfMatch": "if-match",
    "ChecksumCRC64NVME": "x-amz-checksum-crc64nvme",
    "ChecksumAlgorithm": "x-amz-checksum-algorithm",
    "ChecksumType": "x-amz-checksum-type",
    "ChecksumMode": "x-amz-checksum-mode",
    "MpuObjectSize": "x-amz-mp-object-size",
    "ObjectLockMode": "x-amz-object-lock-mode",
    "ObjectLockRetainUntilDate": "x-amz-object-lock-retain-until-date",
}
_FIXED: dict[str, tuple[str, dict[str, str]]] = {
    "get_object": ("GET", {}),
    "head_object": ("HEAD", {}),
    "head_bucket": ("HEAD", {}),
    "put_object": ("PUT", {}),
    "upload_part": ("PUT", {}),
    "create_multipart_upload": ("POST", {"uploads": ""}),
    "complete_multipart_upload": ("POST", {}),
    "abort_multipart_upload": ("DELETE", {}),
    "list_multipart_uploads": ("GET", {"uploads": "", "encoding-type": "url"}),
    "list_objects_v2": ("GET", {"list-type": "2", "encoding-type": "url"}),
}
_ELSEWHERE = {"Bucket", "Key", "MultipartUpload"}
CONTROL = frozenset(
    {"create_multipart_upload", "complete_multipart_upload", "abort_multipart_upload", "list_multipart_uploads", "list_objects_v2"}
)
"""Operations whose answer is a document."""


@dataclass(frozen=True, slots=True)
class PathRequest:
    """What one operation sends. ``headers`` are those that must be signed, and sent as they are."""

    method: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""


def path_request(operation: str, parameters: Mapping[str, Any]) -> PathRequest | None:
    """The request for an operation with botocore's parameter names; None for what is not known here."""
    fixed = _FIXED.get(operation)
    if fixed is None or not parameters.keys() <= _QUERY.keys() | _HEADERS.keys() | _ELSEWHERE:
        return None
    method, query = fixed
    query = query | {_QUERY[name]: str(value) for name, value in parameters.items() if name in _QUERY}
    headers = {_HEADERS[name]: str(value) for name, value in parameters.items() if name in _HEADERS}
    return PathRequest(method, query, headers, _completion(parameters.get("MultipartUpload")))


def _completion(upload: Mapping[str, Any] | None) -> bytes:
    if upload is None:
        return b""
    root = ElementTree.Element("CompleteMultipartUpload", xmlns="http://s3.amazonaws.com/doc/2006-03-01/")
    for part in upload["Parts"]:
        element = ElementTree.SubElement(root, "Part")
        ElementTree.SubElement(element, "PartNumber").text = str(part["PartNumber"])
        ElementTree.SubElement(element, "ETag").text = part["ETag"]
    return ElementTree.tostring(root)


def parse_answer(operation: str, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    """The answer with botocore's names. ``ValueError`` for a document that is cut or is not the operation's."""
    if operation == "abort_multipart_upload":
        return {}
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise ValueError(f"the answer is no whole XML document: {error}") from error
    # rclone leaves elements out (IsTruncated), and "Result" from the name of a root.
    if root.tag.rpartition("}")[2].removesuffix("Result") != _ROOTS[operation]:
        raise ValueError(f"the answer is a {root.tag}")
    return _READERS[operation](root, headers)


def _created(root: ElementTree.Element, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"UploadId": _text(root, "UploadId")}


def _completed(root: ElementTree.Element, headers: Mapping[str, str]) -> dict[str, Any]:
    answer = {"ETag": _text(root, "ETag"), "ResponseMetadata": {"HTTPHeaders": dict(headers)}}
    checksum = root.findtext("{*}ChecksumCRC64NVME") or headers.get("x-amz-checksum-crc64nvme")
    version = headers.get("x-amz-version-id")
    return answer | ({"ChecksumCRC64NVME": checksum} if checksum else {}) | ({"VersionId": version} if version else {})


def _uploads(root: ElementTree.Element, headers: Mapping[str, str]) -> dict[str, Any]:
    found = [
        {"Key": _key(root, upload, "Key"), "UploadId": _text(upload, "UploadId"), "Initiated": _moment(upload, "Initiated")}
        for upload in root.findall("{*}Upload")
    ]
    page: dict[str, Any] = {"Uploads": found, "IsTruncated": root.findtext("{*}IsTruncated") == "true"}
    if root.findtext("{*}NextKeyMarker"):
        page["NextKeyMarker"] = _key(root, root, "NextKeyMarker")
        page["NextUploadIdMarker"] = root.findtext("{*}NextUploadIdMarker") or ""
    return page


def _objects(root: ElementTree.Element, headers: Mapping[str, str]) -> dict[str, Any]:
    contents = [
        {"Key": _key(root, found, "Key"), "Size": int(_text(found, "Size")), "LastModified": _moment(found, "LastModified")}
        for found in root.findall("{*}Contents")
    ]
    folders = [{"Prefix": _key(root, found, "Prefix")} for found in root.findall("{*}CommonPrefixes")]
    page: dict[str, Any] = {"Contents": contents, "CommonPrefixes": folders, "IsTruncated": root.findtext("{*}IsTruncated") == "true"}
    token = root.findtext("{*}NextContinuationToken")
    return page | ({"NextContinuationToken": token} if token else {})


_ROOTS = {
    "create_multipart_upload": "InitiateMultipartUpload",
    "complete_multipart_upload": "CompleteMultipartUpload",
    "list_multipart_uploads": "ListMultipartUploads",
    "list_objects_v2": "ListBucket",
}
_READERS = {
    "create_multipart_upload": _created,
    "complete_multipart_upload": _completed,
    "list_multipart_uploads": _uploads,
    "list_objects_v2": _objects,
}


def _text(element: ElementTree.Element, name: str) -> str:
    text = element.findtext("{*}" + name)
    if text is None:
        raise ValueError(f"the answer lacks {name}")
    return text


def _key(root: ElementTree.Element, element: ElementTree.Element, name: str) -> str:
    """A key, decoded if the server says that it encoded keys: XML 1.0 cannot hold every character of one."""
    text = _text(element, name)
    return unquote_plus(text) if root.findtext("{*}EncodingType") == "url" else text


def _moment(element: ElementTree.Element, name: str) -> datetime:
    return datetime.fromisoformat(_text(element, name))
