"""``seawall dev``: what is needed to try seawall out on one machine."""

import fcntl
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.output import say
from seawall.errors import BusyError, StoreUnavailableError, UsageError

if TYPE_CHECKING:
    from seawall.testing.seaweedfs import SeaweedFS

app = typer.Typer(no_args_is_help=True, help="Try seawall out on one machine.")

_BUCKET = "seawall"
_REGION = "us-east-1"
_LOWEST_PORT = 1027
_HIGHEST_PORT = 55535
"""Every port has a twin 10000 higher."""


@app.callback()
def _group() -> None:
    """Keeps `s3` a subcommand although it is the only one."""


@app.command()
def s3(
    folder: Annotated[Path, typer.Option("--folder", help="Where its data and credentials lie; made if it is not there.")] = Path(
        ".state/dev-s3"
    ),
    port: Annotated[
        int | None,
        typer.Option(
            "--port", help="Port of the S3 interface; else a free one, kept for the next start.", min=_LOWEST_PORT, max=_HIGHEST_PORT
        ),
    ] = None,
    print_env: Annotated[
        bool, typer.Option("--print-env", help="Start nothing: print the lines for a shell of a server that runs on this folder.")
    ] = False,
) -> int:
    """Run an S3 server on 127.0.0.1 (SeaweedFS) until Ctrl-C. Its data stays. Not for production."""
    from seawall.testing.seaweedfs import SeaweedFS

    server = SeaweedFS(folder, s3_port=port)
    if print_env:
        return _print_env(server)
    lock = _locked(server.folder)
    # SIGTERM ends it as Ctrl-C does, so that a script never leaves a server behind.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with server:
            try:
                _make_bucket(server)
                _introduce(server)
                # Returns when the server ends by itself, and leaves it to its owner to collect it.
                os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
            except KeyboardInterrupt:
                # A second Ctrl-C must not leave the server behind half stopped; stop() gives up on it after a while.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                say("stopping")
                return 0
        raise StoreUnavailableError("the server ended by itself", where=str(server.folder / "weed.log"), do="look at the end of that file")
    finally:
        signal.signal(signal.SIGTERM, before)
        os.close(lock)


def _locked(folder: Path) -> int:
    """A descriptor that holds the folder until it is closed: two servers on the same data would destroy it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / "running.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        do = "`seawall dev s3 --print-env` prints how to reach it"
        raise BusyError("a server runs on this folder already", where=str(folder), do=do) from None
    return descriptor


def _make_bucket(server: "SeaweedFS") -> None:
    from botocore.exceptions import ClientError

    from seawall.testing.seaweedfs import client_of

    client = client_of(server.endpoint, server.keys)
    try:
        client.head_bucket(Bucket=_BUCKET)
    except ClientError:
        client.create_bucket(Bucket=_BUCKET)
    finally:
        client.close()


def _environment(server: "SeaweedFS") -> list[str]:
    settings = {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_ACCESS_KEY_ID": server.writer_keys.access_key_id,
        "AWS_SECRET_ACCESS_KEY": server.writer_keys.secret_access_key,
        "AWS_REGION": _REGION,
    }
    return [f"export {name}={shlex.quote(value)}" for name, value in settings.items()]


def _introduce(server: "SeaweedFS") -> None:
    say(f"endpoint:    {server.endpoint}")
    say(f"bucket:      {_BUCKET} (s3://{_BUCKET}/any-prefix)")
    say(f"access key:  {server.writer_keys.access_key_id}")
    say(f"data:        {server.folder}")
    say("")
    say("For another terminal:")
    for line in _environment(server):
        say(line)
    say("")
    say("Ctrl-C stops it; the data stays.")
    # Whoever started it in the background reads these lines to learn that it is ready.
    sys.stdout.flush()


def _print_env(server: "SeaweedFS") -> int:
    from urllib.parse import urlsplit

    from seawall.testing.local_server import answers_http

    if not (server.folder / "instance.json").is_file():
        raise UsageError("no server was ever started on this folder", where=str(server.folder), do="`seawall dev s3 --folder` starts one")
    server.attach()
    if not answers_http(urlsplit(server.endpoint).port or 0):
        raise StoreUnavailableError("the server does not answer", where=server.endpoint, do="start it, or wait until it is up")
    for line in _environment(server):
        say(line)
    return 0
