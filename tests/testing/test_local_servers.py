"""The embedded SeaweedFS: reachable from this machine only, closed to strangers, durable, and gone when it is stopped."""

import http.client
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from seawall.errors import ConfigurationError, StoreUnavailableError
from seawall.stores.s3 import S3Store
from seawall.testing.local_server import LocalServer, port_is_free, program, stop_group
from seawall.testing.seaweedfs import SeaweedFS, client_of


def _group(pid: int) -> list[int]:
    """Living processes of a process group (proc_pid_stat(5): state is the third field, the group the fifth)."""
    members = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[2]) == pid and fields[0] != "Z":
            members.append(int(entry.name))
    return members


def _listeners(pid: int) -> set[str]:
    """Addresses on which the process listens (proc_net(5): state 0A is LISTEN)."""
    sockets = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except OSError:
            continue
        if target.startswith("socket:["):
            sockets.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.add(fields[1].split(":")[0])
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SeaweedFS]:
    with SeaweedFS(tmp_path / "weed") as server:
        yield server


def test_it_is_private_durable_and_gone_when_it_is_stopped(server: SeaweedFS) -> None:
    server.create_bucket("bucket")
    store = S3Store("s3://bucket", endpoint=server.endpoint, keys=lambda: server.keys)
    store.put("a/b", b"kept")
    # Reachable over the loopback interface only, and secrets for the owner's eyes.
    loopback = {"0100007F", "0000000000000000FFFF00000100007F"}
    assert _listeners(server.pid) and _listeners(server.pid) <= loopback
    for name in ("instance.json", "s3.json"):
        assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600
    assert all(secret not in repr(server.keys) for secret in (server.keys.secret_access_key,))
    # The filer's own port, past S3, its keys and its locks, is closed to strangers.
    filer = http.client.HTTPConnection("127.0.0.1", (urlsplit(server.endpoint).port or 0) - 1, timeout=10)
    filer.request("DELETE", "/buckets/bucket/a?recursive=true")
    assert filer.getresponse().status == 401
    filer.close()
    assert store.get("a/b") == b"kept"
    # A mistyped bucket is not made by writing into it.
    client = client_of(server.endpoint, server.keys)
    with pytest.raises(client.exceptions.NoSuchBucket):
        client.put_object(Bucket="mistyped", Key="a", Body=b"x")
    # What was acknowledged survives kill -9, under the same keys.
    keys, group = server.keys, server.pid
    server.kill()
    assert _group(group) == []
    server.start()
    assert server.keys == keys
    again = S3Store("s3://bucket", endpoint=server.endpoint, keys=lambda: server.keys)
    assert again.get("a/b") == b"kept"
    attached = SeaweedFS(server.folder)
    attached.attach()
    assert (attached.endpoint, attached.keys) == (server.endpoint, keys)
    group = server.pid
    server.stop()
    assert _group(group) == []
    assert port_is_free(urlsplit(attached.endpoint).port or 0)


def test_a_port_that_is_taken_meanwhile_costs_another_try(tmp_path: Path) -> None:
    with SeaweedFS(tmp_path / "weed") as server:
        before = server.endpoint
    with socket.create_server(("127.0.0.1", urlsplit(before).port or 0)):
        with SeaweedFS(tmp_path / "weed") as server:
            assert server.endpoint != before


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(StoreUnavailableError, match="is taken"):
            SeaweedFS(tmp_path / "weed", s3_port=taken.getsockname()[1]).start()


def test_a_folder_without_a_server(tmp_path: Path) -> None:
    server = SeaweedFS(tmp_path)
    for action in (server.attach, lambda: server.endpoint, lambda: server.keys, lambda: server.pid):
        with pytest.raises(StoreUnavailableError):
            action()


def test_a_server_that_ends_or_never_answers_shows_its_log(tmp_path: Path) -> None:
    ends = LocalServer(["/bin/sh", "-c", "echo because >&2; exit 3"], cwd=tmp_path, log=tmp_path / "log")
    with pytest.raises(StoreUnavailableError, match="because"):
        ends.wait_until(lambda: False, 30)
    hangs = LocalServer(["/bin/sh", "-c", "echo hanging; sleep 600 & wait"], cwd=tmp_path, log=tmp_path / "log")
    with pytest.raises(StoreUnavailableError, match="not ready"):
        hangs.wait_until(lambda: False, 0.3)
    assert _group(hangs.pid) == []


def test_stop_group_spares_a_stranger_who_got_the_number(tmp_path: Path) -> None:
    server = LocalServer(["/bin/sh", "-c", "sleep 600 & wait"], cwd=tmp_path, log=tmp_path / "log")
    try:
        stop_group(server.pid, "weed")
        assert _group(server.pid)
        stop_group(server.pid, "sh")
        assert _group(server.pid) == []
    finally:
        server.kill()


def test_a_program_that_is_not_installed() -> None:
    with pytest.raises(ConfigurationError, match="install the package nowhere-bin"):
        program("no-such-program-anywhere", "nowhere-bin")
