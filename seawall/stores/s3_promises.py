"""What only AWS promises, so that other servers are not trusted with it.

Both were found on SeaweedFS 4.48, and neither can be probed with certainty by a few requests.
"""

from urllib.parse import urlsplit


def _is_aws(endpoint: str) -> bool:
    return (urlsplit(endpoint).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn"))


def lists_in_key_order(endpoint: str, bucket: str) -> bool:
    """ListObjectsV2 sorts by UTF-8 bytes; AWS's directory buckets do not (S3 API Reference, ListObjectsV2)."""
    return _is_aws(endpoint) and not bucket.endswith("--x-s3")


def finishes_once(endpoint: str) -> bool:
    """Of simultaneous CompleteMultipartUpload requests with If-None-Match one succeeds (S3 User Guide, "Conditional writes").

    SeaweedFS looks for the key first and writes later: of two at the same moment both succeeded in 10 of 15 rounds, and the later one
    overwrote the other. Its PutObject is exact.
    """
    return _is_aws(endpoint)
