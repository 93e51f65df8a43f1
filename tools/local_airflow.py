"""Airflow and seawall's embedded stores on this machine, for a first look, the demo and the tests.

    python tools/local_airflow.py up [--job NAME]      # prints the URL and where the password lies
    python tools/local_airflow.py down [--job NAME]

Everything of a job lies in ``.state/<job>`` of the checkout: database, logs, generated secrets (mode 0600), the S3
server's data, seawall's own configuration. Every program listens on 127.0.0.1 or a Unix socket.
"""

import argparse
import base64
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from seawall.errors import SeawallError, StoreUnavailableError
from seawall.testing.local_server import LocalServer, free_port
from seawall.testing.seaweedfs import SeaweedFS
from tools.local_postgres import start_postgres, stop_postgres
from tools.local_processes import ProcessList, end_session

CHECKOUT = Path(__file__).resolve().parents[1]
COMPONENTS = (["scheduler", "--skip-serve-logs"], ["dag-processor"], ["triggerer", "--skip-serve-logs"])
"""Log servers would listen on every interface. Here the API server reads the files."""
_READY_SECONDS = 240.0
"""On two busy cores the API server needs up to a minute, and the others start beside it."""


@dataclass
class Secrets:
    """Generated once a job, kept in ``secrets.json`` of mode 0600."""

    fernet_key: str
    jwt_secret: str
    secret_key: str
    admin_password: str
    viewer_password: str


class LocalAirflow:
    """The programs of one job. ``start`` them, use ``request``, ``stop`` them; a folder can be started again.

    ``processes`` is where each is noted as soon as it runs, for whoever ends it when this process cannot.
    """

    def __init__(self, folder: Path, *, seawall_config: Path | None = None, processes: ProcessList | None = None) -> None:
        self.folder = folder.absolute()
        self.seawall_config = seawall_config
        self.port = free_port()
        self._processes = processes
        self._servers: list[tuple[str, LocalServer]] = []
        self._token = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def secrets(self) -> Secrets:
        path = self.folder / "secrets.json"
        if not path.exists():
            made = Secrets(
                base64.urlsafe_b64encode(os.urandom(32)).decode(),
                secrets.token_urlsafe(48),
                secrets.token_urlsafe(48),
                secrets.token_urlsafe(18),
                secrets.token_urlsafe(18),
            )
            _write_private(self.folder / "passwords.json", json.dumps({"admin": made.admin_password, "viewer": made.viewer_password}))
            _write_private(self.folder / "notify.json", json.dumps({"username": "admin", "password": made.admin_password}))
            # Last: where it is, the others are.
            _write_private(path, json.dumps(made.__dict__))
        return Secrets(**json.loads(path.read_bytes()))

    def start(self) -> None:
        """Database, schema, API server, then the rest. Raises with the end of a log when one does not come up."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log").mkdir(exist_ok=True)
        environment = self.environment(start_postgres(self.folder / "postgres"))
        self._run_once(["db", "migrate"], environment)
        api = self._launch(["api-server"], environment)
        api.wait_until(self._api_answers, _READY_SECONDS)
        # Only now: tasks that start before the API answers fail on their first try.
        since = datetime.now(UTC)
        started = {words[0].replace("-", "_"): self._launch(words, environment) for words in COMPONENTS}
        for name, server in started.items():
            server.wait_until(partial(self._healthy, name, since), _READY_SECONDS)

    def environment(self, database: str) -> dict[str, str]:
        """What every component is started with; ``database`` is SQLAlchemy's URL. The committed airflow.cfg holds the rest."""
        known = self.secrets
        settings = {
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW_CONFIG": str(CHECKOUT / "airflow.cfg"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
            "AIRFLOW__CORE__FERNET_KEY": known.fernet_key,
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.folder / "passwords.json"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": f"{self.url}/",
            "AIRFLOW__API__SECRET_KEY": known.secret_key,
            "AIRFLOW__API_AUTH__JWT_SECRET": known.jwt_secret,
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.folder / "log"),
            "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(self.folder / "log" / "dag_processor"),
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
        servers = [server for _, server in self._servers]
        # The API server goes last: what is still running reports to it.
        with ThreadPoolExecutor() as pool:
            list(pool.map(_end, servers[1:]))
        for server in servers[:1]:
            _end(server)
        self._servers.clear()
        stop_postgres(self.folder / "postgres")

    def _launch(self, words: list[str], environment: dict[str, str]) -> LocalServer:
        name = words[0]
        server = LocalServer([self._airflow, *words], cwd=self.folder, log=self.folder / "log" / f"{name}.log", env=environment)
        self._servers.append((name, server))
        if self._processes is not None:
            self._processes.note(name, server.pid)
        return server

    def _run_once(self, arguments: list[str], environment: dict[str, str]) -> None:
        done = subprocess.run([self._airflow, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise StoreUnavailableError(
                f"airflow {' '.join(arguments)} failed", where=str(self.folder), why=(done.stdout + done.stderr)[-3000:]
            )

    @property
    def _airflow(self) -> str:
        return str(Path(sys.executable).parent / "airflow")

    def _api_answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def _healthy(self, component: str, since: datetime) -> bool:
        try:
            health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5).json().get(component, {})
        except (httpx.HTTPError, ValueError):
            return False
        # For half a minute Airflow takes the heartbeat of a component that was ended before for that of the new one.
        beat = health.get(f"latest_{component}_heartbeat")
        return health.get("status") == "healthy" and beat is not None and datetime.fromisoformat(beat) >= since


def _end(server: LocalServer) -> None:
    server.stop()
    end_session(server.pid, "airflow")


def _write_private(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def up(folder: Path) -> None:
    """Start a job, prepare a site for it the first time, and leave it running."""
    processes = ProcessList(folder / "processes.json")
    if running := processes.running():
        raise SystemExit(f"{folder} runs already ({', '.join(running)}): `make down` first")
    try:
        server = SeaweedFS(folder / "s3")
        server.start()
        processes.note("weed", server.pid)
        os.environ.update(_aws_environment(server))
        os.environ.pop("AWS_SESSION_TOKEN", None)
        site = _site(folder, server)
        airflow = LocalAirflow(folder / "airflow", seawall_config=site / "seawall.toml", processes=processes)
        airflow.start()
    except BaseException:
        # A second Ctrl-C would leave half of it running.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        print("ending what was started", file=sys.stderr, flush=True)
        down(folder)
        raise
    settings = folder / "aws.env"
    _write_private(settings, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in _aws_environment(server).items()))
    print(f"Airflow       {airflow.url}")
    print(f"user          admin (or viewer), password in {airflow.folder / 'passwords.json'}")
    print(f"checkpoints   of run demo go to {folder / 'checkpoints'}")
    print(f"command line  . {shlex.quote(str(settings))}; seawall copies demo --config {shlex.quote(str(site / 'seawall.toml'))}")
    print("`make down` ends all of it and keeps the data.")


def down(folder: Path) -> None:
    """End what ``up`` started, also what an ``up`` started that was killed."""
    processes = ProcessList(folder / "processes.json")
    running = processes.running()
    processes.stop("api-server", "weed")
    stop_postgres(folder / "airflow" / "postgres")
    print(f"ended: {', '.join(running)}" if running else f"nothing ran in {folder}")


def _aws_environment(server: SeaweedFS) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": server.keys.access_key_id,
        "AWS_SECRET_ACCESS_KEY": server.keys.secret_access_key,
        "AWS_REGION": "us-east-1",
    }


def _site(folder: Path, server: SeaweedFS) -> Path:
    """The folder with seawall.toml: made the first time, with an open run; later only told where the S3 server is now."""
    site = folder / "site"
    config = site / "seawall.toml"
    if (site / "complete").exists():
        text = config.read_text()
        before = tomllib.loads(text)["stores"]["a"]["endpoint"]
        config.write_text(text.replace(before, server.endpoint))
        return site
    # An up that was interrupted in here has left keys for which nothing was sealed yet.
    for path in (site, folder / "store-c"):
        shutil.rmtree(path, ignore_errors=True)
    server.create_bucket(bucket := f"checkpoints-{secrets.token_hex(4)}")
    stores = ["--store", f"a=s3://{bucket}/seawall", "--endpoint", f"a={server.endpoint}", "--store", f"c=file://{folder}/store-c"]
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir(exist_ok=True)
    program = str(Path(sys.executable).parent / "seawall")
    for words in (["init", "--folder", str(site), *stores], ["run", "open", "demo", "--path", str(checkpoints), "--config", str(config)]):
        done = subprocess.run([program, *words], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"seawall {words[0]} failed:\n{done.stdout}{done.stderr}")
    (site / "complete").touch()
    return site


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument("--job", default="local", help="name of the folder below .state/")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        (up if arguments.action == "up" else down)(CHECKOUT / ".state" / arguments.job)
    except SeawallError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
