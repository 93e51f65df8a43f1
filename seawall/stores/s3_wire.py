"""The bytes of an S3 store on their way: signed URLs, carried by urllib3.

Through ``client.upload_part`` the same bytes cost nearly twice the CPU (3.85 against 2.0 seconds per GiB, sealing included), because
botocore hashes and copies them. Here a body goes from the caller's buffers to the socket, and an answer from the socket into the
caller's buffer, without a copy in between.
"""

import http.client
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.util.wait import wait_for_read

from seawall.errors import StoreError, StoreRefusedError, StoreUnavailableError
from seawall.stores.s3_errors import Answer, Kind, answer_error, is_expired, lost, read_answer, server_moment
from seawall.stores.s3_path import CONTROL
from seawall.stores.s3_session import CONNECT_SECONDS, READ_SECONDS, S3Session

_BLOCK_BYTES = 1 << 20
_TAIL_BYTES = 1 << 16
_METHODS = {
    "get_object": "GET",
    "head_object": "HEAD",
    "head_bucket": "HEAD",
    "put_object": "PUT",
    "upload_part": "PUT",
    "create_multipart_upload": "POST",
    "complete_multipart_upload": "POST",
    "abort_multipart_upload": "DELETE",
    "list_multipart_uploads": "GET",
    "list_objects_v2": "GET",
}
_MOST_DOCUMENT_BYTES = 16 << 20
"""A page of a listing: a thousand keys of a kilobyte, encoded, come to some four MiB."""
_TRIES = 3
"""First try, one with fresh credentials, one in the bucket's own region."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful response; header names in lower case."""

    status: int
    headers: Mapping[str, str]


class S3Wire:
    """Sends signed requests and keeps the connections."""

    def __init__(self, session: S3Session, transfers: int) -> None:
        self.session = session
        self._transfers = transfers
        self._pool: Any = None
        self._pool_lock = threading.Lock()
        self._bucket_seen = False

    def request(
        self,
        operation: str,
        parameters: dict[str, Any],
        kind: Kind,
        where: str,
        headers: Mapping[str, str],
        body: Sequence[memoryview] = (),
        *,
        needs: str,
    ) -> Reply:
        """Send one request whose answer has no body worth reading. ``needs`` is a header that every whole answer has.

        Raises typed store errors.
        """
        response = self._success(operation, parameters, kind, where, headers, body)
        reply = Reply(response.status, {name.lower(): value for name, value in response.headers.items()})
        try:
            # A body that came whole proves that the headers before it did; without one, only the connection can tell.
            bare = _METHODS[operation] == "HEAD" or reply.headers.get("content-length") == "0"
            if needs not in reply.headers or (bare and _ends_without_notice(response, reply)):
                raise lost(kind, where, "the answer was cut short among its headers")
            response.drain_conn()
        except (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError) as error:
            raise lost(kind, where, _text(error)) from error
        finally:
            response.release_conn()
        return reply

    def document(
        self, operation: str, parameters: dict[str, Any], kind: Kind, where: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[dict[str, str], bytes]:
        """Headers (names in lower case) and whole body of one control call."""
        response = self._success(operation, parameters, kind, where, headers, [memoryview(body)] if body else ())
        answer_headers = {name.lower(): value for name, value in response.headers.items()}
        try:
            answer = response.read(_MOST_DOCUMENT_BYTES)
            if "content-length" not in answer_headers and "transfer-encoding" not in answer_headers and response.status != 204:
                raise lost(kind, where, "the answer was cut short among its headers")
            response.drain_conn()
        except (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError) as error:
            raise lost(kind, where, _text(error)) from error
        finally:
            response.release_conn()
        if b"<Error>" in answer[:512]:
            # S3 sends 200 before it completes an upload and may put an error into the body.
            refusal = read_answer(500, answer_headers, answer)
            raise answer_error(refusal, kind, where, self.session.clock.now())
        return answer_headers, answer

    def fetch(self, parameters: dict[str, Any], where: str, start: int, length: int | None, into: memoryview | None = None) -> memoryview:
        """Bytes from ``start`` on, at most ``length``, in one request; read into ``into`` where it is given."""
        headers = {}
        if start or length is not None:
            headers["range"] = f"bytes={start}-{'' if length is None else start + length - 1}"
        try:
            response = self._success("get_object", parameters, "read", where, headers, ())
        except _PastEndError:
            return memoryview(b"")
        try:
            expected = _expected(response, start, length, where)
            view = memoryview(bytearray(expected)) if into is None else into[:expected]
            done = _fill(response, view)
        except (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError) as error:
            response.close()
            raise StoreUnavailableError("the connection broke while an object was read", where=where, why=_text(error)) from error
        except StoreError:
            response.close()
            raise
        if done < expected:
            response.close()
            raise StoreUnavailableError(
                "the connection ended while an object was read", where=where, why=f"{done} of {expected} bytes came"
            )
        response.release_conn()
        return view

    def bucket_moment(self, bucket: str, where: str) -> datetime | None:
        """The server's clock from an answer about the bucket, which must exist. A refusal tells the time too."""
        response, _ = self._sent("head_bucket", {"Bucket": bucket}, "read", where, {}, ())
        answer = _answer_of(response)
        if answer.status == 404:
            answer = replace(answer, code="NoSuchBucket")
        if answer.status >= 500 or answer.status == 404:
            raise answer_error(answer, "read", where, self.session.clock.now())
        return server_moment(answer.headers)

    def close(self) -> None:
        """Close idle connections."""
        if self._pool is not None:
            self._pool.clear()

    def _success(
        self, operation: str, parameters: dict[str, Any], kind: Kind, where: str, headers: Mapping[str, str], body: Sequence[memoryview]
    ) -> Any:
        for _ in range(_TRIES):
            response, generation = self._sent(operation, parameters, kind, where, headers, body)
            if response.status < 300:
                self._bucket_seen = True
                return response
            answer = _answer_of(response)
            if response.status == 416:
                raise _PastEndError
            if operation == "head_object" and not (answer.status == 404 and self._bucket_seen):
                answer = self._explained(parameters, where) or answer
            region = answer.headers.get("x-amz-bucket-region")
            if is_expired(answer) and self.session.renew(generation):
                continue
            if region and (answer.status in (301, 307) or answer.code in ("PermanentRedirect", "AuthorizationHeaderMalformed")):
                self.session.move_to_region(region)
                continue
            break
        raise answer_error(answer, kind, where, self.session.clock.now())

    def _explained(self, parameters: dict[str, Any], where: str) -> Answer | None:
        """An answer to HEAD has no body that could tell a missing bucket, an expired token and a missing key apart; GET has."""
        wanted = {name: value for name, value in parameters.items() if name != "ChecksumMode"}
        response, _ = self._sent("get_object", wanted, "read", where, {"range": "bytes=0-0"}, ())
        answer = _answer_of(response)
        return answer if answer.status >= 300 and answer.status != 416 else None

    def _sent(
        self, operation: str, parameters: dict[str, Any], kind: Kind, where: str, headers: Mapping[str, str], body: Sequence[memoryview]
    ) -> tuple[Any, int]:
        url, generation = self.session.sign(operation, parameters)
        outgoing = _Body(body)
        sent_headers = dict(headers)
        method = _METHODS[operation]
        if method in ("PUT", "POST"):
            sent_headers["content-length"] = str(outgoing.nbytes)
        # Control calls are named as botocore names them in its events, so that a counter sees one name whoever sends them.
        self.session.heard("".join(part.capitalize() for part in operation.split("_")) if operation in CONTROL else operation)
        try:
            return (
                self._connections(url).urlopen(
                    method,
                    url,
                    body=outgoing if outgoing.nbytes else None,
                    headers=sent_headers,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                ),
                generation,
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError, urllib3.exceptions.ProxyError) as error:
            raise unreachable(error, url) from error
        except urllib3.exceptions.SSLError as error:
            raise untrusted(error, url) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            if not outgoing.complete:
                raise StoreUnavailableError("the connection broke before everything was sent", where=where, why=_text(error)) from error
            raise lost(kind, where, _text(error)) from error

    def _connections(self, url: str) -> Any:
        with self._pool_lock:
            if self._pool is None:
                self._pool = self._made_pool(url)
            return self._pool

    def _made_pool(self, url: str) -> Any:
        options: dict[str, Any] = {
            "maxsize": max(1, self._transfers),
            "blocksize": _BLOCK_BYTES,
            "timeout": urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
            "headers": {"user-agent": "seawall"},
        }
        if urlsplit(url).scheme == "https":
            options["ca_certs"] = self.session.certificates or _usual_certificates()
        proxy = _proxy_of(url)
        return urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)


class _PastEndError(Exception):
    """416: the range begins at or after the end of the object."""


class _Body:
    """The buffers of one request, and whether the last of them was handed to the socket.

    A server cannot act on a body that it has only a part of, so a connection that broke before the last bytes went out left
    nothing behind, and the request may be sent again; afterwards nobody knows.
    """

    def __init__(self, views: Sequence[memoryview]) -> None:
        self._views = views
        self.nbytes = sum(view.nbytes for view in views)
        self.complete = not self.nbytes

    def __iter__(self) -> Iterator[memoryview]:
        yield from self._views[:-1]
        last = self._views[-1]
        border = max(0, last.nbytes - _TAIL_BYTES)
        if border:
            yield last[:border]
        self.complete = True
        yield last[border:]


def _answer_of(response: Any) -> Answer:
    try:
        body = response.read(65536)
        response.drain_conn()
    except (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError):
        body = b""
    finally:
        response.release_conn()
    return read_answer(response.status, response.headers, body)


def _expected(response: Any, start: int, wanted: int | None, where: str) -> int:
    """Bytes that the answer will bring. Some servers answer a range with 200 and the right Content-Range."""
    content_range = response.headers.get("content-range")
    if content_range is not None:
        first, _, last = content_range.removeprefix("bytes ").partition("/")[0].partition("-")
        if int(first) != start or (wanted is not None and int(last) - start >= wanted):
            raise StoreRefusedError("the store sent another range than was asked for", where=where, why=content_range)
        return int(last) - start + 1
    if "content-length" not in response.headers:
        raise lost("read", where, "the answer was cut short among its headers")
    length = int(response.headers["content-length"])
    if start or response.status == 206 or (wanted is not None and length > wanted):
        raise StoreRefusedError("the store ignores ranges", where=where, why=f"status {response.status} without Content-Range")
    return length


def _ends_without_notice(response: Any, reply: Reply) -> bool:
    """Whether the connection is at its end although the answer did not say so.

    http.client takes a connection that closes among the headers for the end of the headers: what was lost, a version or
    a checksum, would pass for absent.
    """
    connection = getattr(response, "connection", None)
    socket = getattr(connection, "sock", None)
    return socket is not None and reply.headers.get("connection", "").lower() != "close" and wait_for_read(socket, 0.0)


def _fill(response: Any, view: memoryview) -> int:
    """Read into ``view``, from the standard library's response below urllib3's where possible: urllib3's own read copies twice."""
    source: Any = getattr(response, "_fp", None)
    if not hasattr(source, "readinto"):
        source = response
    done = 0
    while done < view.nbytes:
        got = source.readinto(view[done:])
        if not got:
            break
        done += got
    return done


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def unreachable(error: Exception, url: str) -> StoreUnavailableError:
    """Nothing was sent, because there is no connection."""
    host = urlsplit(url).netloc
    # botocore wraps the error that says why.
    text = _text(getattr(error, "kwargs", {}).get("error", error))
    if "NameResolution" in text or "getaddrinfo" in text:
        return StoreUnavailableError("the store's host name cannot be resolved", where=host, why=text, do="check the endpoint and DNS")
    return StoreUnavailableError(
        "the store cannot be reached", where=host, why=text, do="check the endpoint, the network and that the server runs"
    )


def untrusted(error: Exception, url: str) -> StoreRefusedError:
    """Nothing was sent, because the server could not prove who it is."""
    return StoreRefusedError(
        "the store's certificate is not accepted",
        where=urlsplit(url).netloc,
        why=_text(error),
        do="set AWS_CA_BUNDLE to the bundle that signed it",
    )


def _usual_certificates() -> str:
    """The bundle that botocore uses when nothing else is said."""
    from botocore.httpsession import get_cert_path

    return str(get_cert_path(True))


def _proxy_of(url: str) -> str | None:
    """The proxy that the environment names for this URL, as botocore reads it; botocore is not asked where no variable names one."""
    if not any(name.lower().endswith("_proxy") and value for name, value in os.environ.items()):
        return None
    from botocore.utils import get_environ_proxies

    proxy = get_environ_proxies(url).get(urlsplit(url).scheme)
    return None if proxy is None else str(proxy)
