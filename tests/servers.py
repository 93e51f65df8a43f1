"""S3 servers for tests. SeaweedFS is one for the whole run, shared between the workers of pytest-xdist, because it takes 460 MiB."""

import fcntl
import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from seawall.stores.s3 import S3Store
from seawall.testing.local_server import stop_group
from seawall.testing.seaweedfs import SeaweedFS
from seawall.testing.weak_s3 import MotoS3, RcloneS3

BUCKET = "shared"
"""Tests share a bucket and have a prefix each: every bucket of SeaweedFS takes volumes of its own."""


@contextmanager
def _users_of(folder: Path) -> Iterator[dict[str, int]]:
    """The number of workers that use the server and its process id, under a lock between processes."""
    with (folder / "users.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = folder / "users.json"
        state = json.loads(path.read_text()) if path.exists() else {"users": 0, "pid": 0}
        yield state
        path.write_text(json.dumps(state))


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedFS]:
    """A running SeaweedFS with the bucket ``shared``; started by the first worker that asks, ended by the last."""
    root = tmp_path_factory.getbasetemp()
    folder = (root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root) / "seaweed"
    folder.mkdir(exist_ok=True)
    server = SeaweedFS(folder / "server")
    with _users_of(folder) as state:
        if not state["users"]:
            server.start()
            server.create_bucket(BUCKET)
            state["pid"] = server.pid
        else:
            server.attach()
        state["users"] += 1
    yield server
    with _users_of(folder) as state:
        state["users"] -= 1
        if not state["users"]:
            # Its data goes with the run: no need to wait for it to write its last pages.
            server.kill()
            stop_group(state["pid"], "weed", polite=False)


@pytest.fixture
def s3_url(seaweed: SeaweedFS) -> str:
    """A fresh prefix in the shared bucket."""
    return f"s3://{BUCKET}/t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def s3_settings(seaweed: SeaweedFS) -> dict[str, Any]:
    """Arguments for ``S3Store`` and ``open_store`` that reach the shared server."""
    return {"endpoint": seaweed.endpoint, "keys": lambda: seaweed.keys}


@pytest.fixture
def make_s3(s3_url: str, s3_settings: dict[str, Any]) -> Iterator[Callable[..., S3Store]]:
    """Opens bare stores (no retries) on one fresh prefix of the shared server; settings can be overridden."""
    opened: list[S3Store] = []

    def make(url: str | None = None, **settings: Any) -> S3Store:
        opened.append(S3Store(url or s3_url, **{**s3_settings, **settings}))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture(scope="session")
def rclone_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RcloneS3]:
    """``rclone serve s3``: no conditional writes, no checksums. Light enough for one a worker."""
    with RcloneS3(tmp_path_factory.mktemp("rclone-s3")) as server:
        yield server


@pytest.fixture(scope="session")
def moto_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoS3]:
    """moto's server: conditional writes, checksums not checked."""
    with MotoS3(tmp_path_factory.mktemp("moto-s3")) as server:
        yield server
