"""A TCP proxy on 127.0.0.1 that cuts connections at a chosen byte, so that lost answers are really lost."""

import contextlib
import socket
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


@dataclass
class Cut:
    """Rules for the connections to come: cut after so many bytes of a direction, or swallow every answer."""

    up_after: int | None = None
    """Pass this many bytes of requests on, then close both sides."""
    down_after: int | None = None
    """Pass this many bytes of answers on, then close both sides; the server has done its work by then."""
    silent: bool = False
    """Pass requests on and never an answer; the connection stays open."""
    times: int = 1
    """How many connections are treated so; later ones pass untouched."""


class TcpProxy:
    """Forwards to the host and port of ``target`` (a URL); ``endpoint`` is its own URL."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._cut = Cut(times=0)
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.connections = 0
        self.struck = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def arm(self, cut: Cut) -> None:
        """Treat the next connections so, and drop the ones that are open, because clients keep them."""
        with self._lock:
            self._cut = cut
            for connection in self._open:
                _close(connection)
            self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _close(self._listener)
        self.arm(Cut(times=0))

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            with self._lock:
                self.connections += 1
                cut = Cut()
                if self._cut.times > 0:
                    self._cut.times -= 1
                    self.struck += 1
                    cut = self._cut
                self._open += [client, server]
            threading.Thread(target=self._pump, args=(client, server, cut.up_after, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, cut.down_after, cut.silent), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, limit: int | None, silent: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if silent:
                    continue
                if limit is not None and passed + len(data) >= limit:
                    sink.sendall(data[: limit - passed])
                    break
                sink.sendall(data)
                passed += len(data)
        _close(source)
        _close(sink)


def _close(connection: socket.socket) -> None:
    # shutdown wakes the other threads that wait on this socket; close alone would not.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()
