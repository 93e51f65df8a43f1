"""An HTTP gateway in front of an S3 server that declares access keys expired, as AWS does with the tokens of a role."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit


class ExpiringGateway:
    """Requests that are signed with an expired key get S3's answer to that; the rest reaches the server as it came."""

    def __init__(self, target: str) -> None:
        self.expired: set[str] = set()
        self.refused = 0
        host = urlsplit(target).netloc
        gateway = self
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                signature = self.path + self.headers.get("authorization", "")
                if any(key in signature for key in gateway.expired):
                    with lock:
                        gateway.refused += 1
                    text = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
                    self._answer(400, [("content-type", "application/xml")], text)
                    return
                server = http.client.HTTPConnection(host, timeout=30)
                server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    server.putheader(name, value)
                server.endheaders(body)
                answer = server.getresponse()
                skipped = ("transfer-encoding", "connection", "content-length")
                self._answer(answer.status, [pair for pair in answer.getheaders() if pair[0].lower() not in skipped], answer.read())
                server.close()

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

            def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
