"""One real Airflow on PostgreSQL for a file of tests, with a site of two file stores: what a person and training see of it over REST,
and what Alertmanager is told."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil

from seawall.training.airflow_events import AirflowEvents
from seawall.training.committed import Committed
from seawall.training.credentials import from_file
from seawall.training.notifier import Notifier
from tests.alerts.receivers import Receiver, listening
from tests.protect.command_line import RUN, Desk, new_desk
from tools.local_airflow import LocalAirflow

DAGS = ("seawall_sync", "seawall_verify", "seawall_restore", "seawall_archive", "seawall_audit", "seawall_retention")
ENDED = ("success", "failed")
PATIENCE = 150.0
"""Seconds for one DAG run; each takes 10 to 20 on two cores that have nothing else to do."""


class Instance:
    """A started Airflow with its DAGs unpaused, and a training process's notifier that began before Airflow did."""

    def __init__(self, folder: Path, told: Receiver) -> None:
        self.told = told
        """Stands where Alertmanager would."""
        self.failures: set[str] = set()
        """Ids of DAG runs that a test made fail."""
        self.desk: Desk = new_desk(folder / "desk")
        more = f'\n[alerts]\nalertmanager = ["{told.url}"]\n[retention]\nlocal_clock = true\n'
        self.desk.config.write_text(self.desk.config.read_text() + more)
        self.airflow = LocalAirflow(folder / "airflow", seawall_config=self.desk.config)
        credentials = folder / "airflow" / "notify.json"
        assert self.airflow.secrets.admin_password in credentials.read_text()
        events = AirflowEvents(self.airflow.url, from_file(credentials))
        # So patient that only the next checkpoint makes it try again.
        self.notifier = Notifier(events, RUN, folder / "spool", first_wait=7200, longest_wait=7200)

    def tell(self, step: int) -> None:
        """Training finished a checkpoint."""
        self.notifier(Committed(step, 1, self.desk.save(step), 1, ""))

    def start(self) -> None:
        self.airflow.start()
        self.wait("DAGs", lambda: set(DAGS) <= {dag["dag_id"] for dag in self.get("/dags")["dags"]})
        for dag in DAGS:
            self.airflow.request("PATCH", f"/api/v2/dags/{dag}", json={"is_paused": False})

    def stop(self) -> None:
        self.notifier.close(timeout=0)
        self.airflow.stop()

    def get(self, path: str) -> Any:
        return self.airflow.request("GET", f"/api/v2{path}")

    def post(self, path: str, **body: Any) -> Any:
        return self.airflow.request("POST", f"/api/v2{path}", json=body)

    def token(self, name: str) -> str:
        """What the login of a user gives."""
        password = {"admin": self.airflow.secrets.admin_password, "viewer": self.airflow.secrets.viewer_password}[name]
        answer = httpx.post(f"{self.airflow.url}/auth/token", json={"username": name, "password": password}, timeout=30)
        return str(answer.raise_for_status().json()["access_token"])

    def trigger(self, dag: str, **conf: Any) -> str:
        """Start a run as the form does; its id."""
        return str(self.post(f"/dags/{dag}/dagRuns", logical_date=None, conf=conf)["dag_run_id"])

    def runs(self, dag: str, kind: str = "") -> list[dict[str, Any]]:
        """All runs of a DAG, or those of one type."""
        found = self.get(f"/dags/{dag}/dagRuns?limit=100")["dag_runs"]
        return [run for run in found if not kind or run["run_type"] == kind]

    def await_run(self, dag: str, run_id: str) -> str:
        """The state that a run ended in."""

        def ended() -> str:
            state = str(self.get(f"/dags/{dag}/dagRuns/{run_id}")["state"])
            return state if state in ENDED else ""

        return str(self.wait(f"end of {dag} {run_id}", ended))

    def await_backfill(self, number: int, patience: float = PATIENCE) -> None:
        """Until all runs of a backfill ended."""
        self.wait("end of the backfill", lambda: self.get(f"/backfills/{number}")["completed_at"], patience)

    def await_quiet(self) -> None:
        """Until no run of any DAG is on its way."""
        self.wait("quiet", lambda: all(run["state"] in ENDED for dag in DAGS for run in self.runs(dag)))

    def tasks(self, dag: str, run_id: str) -> dict[str, list[str]]:
        """Task → states of its instances."""
        found: dict[str, list[str]] = {}
        for task in self.get(f"/dags/{dag}/dagRuns/{run_id}/taskInstances?limit=100")["task_instances"]:
            found.setdefault(task["task_id"], []).append(str(task["state"]))
        return found

    def steps_told(self, dag: str) -> set[int]:
        """Steps that the asset events of a DAG's runs were about."""
        runs = [run["dag_run_id"] for run in self.runs(dag, "asset_triggered")]
        events = [event for run in runs for event in self.get(f"/dags/{dag}/dagRuns/{run}/upstreamAssetEvents")["asset_events"]]
        return {event["extra"]["step"] for event in events}

    def alerts(self, name: str, **labels: str) -> list[bool]:
        """Of each time that an alert with this name and these labels was told: whether it stood."""
        wanted = {"alertname": name, **labels}
        found = [alert for request in self.told.requests for alert in request.body if wanted.items() <= alert["labels"].items()]
        now = datetime.now(UTC)
        return [datetime.fromisoformat(alert["endsAt"]) > now if alert.get("endsAt") else True for alert in found]

    def wait(self, what: str, answer: Callable[[], Any], patience: float = PATIENCE) -> Any:
        """The first answer that is something."""
        deadline = time.monotonic() + patience
        while not (found := answer()):
            assert time.monotonic() < deadline, f"no {what} after {patience:.0f} s; logs in {self.airflow.folder}"
            threading.Event().wait(0.5)
        return found


@contextmanager
def running_instance() -> Iterator[Instance]:
    """An instance that was told about step 10 before Airflow ran; nothing of it is left at the end, whatever happens.

    Its folder is not one of pytest's: those are closed to other users, and as root PostgreSQL runs as another user.
    """
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="seawall-scheduler-"))
        stack.callback(shutil.rmtree, folder)
        instance = Instance(folder, stack.enter_context(listening(Receiver())))
        try:
            instance.tell(10)
            instance.start()
            yield instance
        finally:
            instance.stop()
            left = processes_in(folder)
            for process in left:
                process.kill()
            assert not left


def processes_in(folder: Path) -> list[psutil.Process]:
    """Processes that work in a folder or below it, as everything of a local Airflow does."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found
