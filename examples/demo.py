"""A run is protected, damaged, lost and resumed: real training, real Airflow, a real S3 server, a bit that flips, a disk that is gone.

    make demo          (or: python examples/demo.py; KEEP=1 leaves everything running at the end)

A small transformer trains and tells Airflow about every checkpoint. The DAGs take each one to two stores and prove it. A bit of one
stored record is flipped: the matrix DAG finds it, heals the copy from the other store and proves it again. The archive DAG copies what is
proved into a third store, locked against deletion, and reads it back. Then the training process is killed and its folder deleted. The
restore DAG rebuilds the newest proved checkpoint, training goes on from it, and its losses are compared, bit for bit, with those of a
run that was never interrupted. Exits 0 only if all of it held.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from seawall.errors import SeawallError
from seawall.testing.seaweedfs import SeaweedFS
from tools.local_airflow import LocalAirflow

HERE = Path(__file__).resolve().parent
RUN = "demo"
ARCHIVE = "archive"
"""The store that a sync leaves alone."""
SAVE_EVERY = 30
MODEL = ["--width", "192", "--layers", "6", "--context", "128", "--batch", "16", "--text-bytes", "2000000", "--deterministic"]
"""2.8 million parameters: with AdamW's moments 33 MiB a checkpoint, and a step of a third of a second on one core."""
COMPARED_STEPS = 5
DEADLINE_SECONDS = float(os.environ.get("DEMO_DEADLINE_SECONDS", "280"))
"""The whole demo promises five minutes on two cores."""


class DemoFailedError(Exception):
    """Something did not hold. The text says what."""


@dataclass
class Story:
    """What happened when, and the facts for the report."""

    began: float = field(default_factory=time.monotonic)
    events: list[tuple[float, str]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    matrix: str = ""
    """At the end, as a table."""
    score: str = ""
    """Of the archived checkpoint, digit by digit."""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def tell(self, what: str) -> float:
        """Note an event and say it; the seconds since the start."""
        now = self.seconds
        self.events.append((now, what))
        print(f"  {now:6.1f} s  {what}", flush=True)
        return now


class Training:
    """The training process, its losses, and its end."""

    def __init__(self, folder: Path, losses: Path, *options: str) -> None:
        self.folder, self.losses = folder, losses
        command = [sys.executable, str(HERE / "train_tiny.py"), "--folder", str(folder), "--losses", str(losses), *MODEL, *options]
        self.log = losses.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def by_step(self) -> dict[int, str]:
        """Step → loss as a hexadecimal float, of all whole lines so far."""
        if not self.losses.exists():
            return {}
        rows = [json.loads(line) for line in self.losses.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return {row["step"]: row["loss"] for row in rows}

    def kill(self) -> None:
        """What a power cut does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def check_alive(self) -> None:
        if self.process.poll() not in (None, 0):
            raise DemoFailedError(f"training ended with {self.process.returncode}:\n{self.log.read_text()[-2000:]}")


def seawall(site: Path, *arguments: str) -> dict[str, Any]:
    """One command of the command line; its JSON."""
    done = command_line(site, *arguments, "--json")
    if done.returncode:
        raise DemoFailedError(f"seawall {arguments[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def command_line(site: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """One command, whatever comes of it. Its lines are wide enough for the matrix."""
    words = [str(Path(sys.executable).parent / "seawall"), *arguments, "--config", str(site / "seawall.toml")]
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"})


def wait_for(what: str, answer: Callable[[], Any], story: Story, watch: Training | None = None, every: float = 1.0) -> Any:
    """Ask until the answer is something; raises when the demo's time is over or the watched training died."""
    while True:
        found = answer()
        if found:
            return found
        if watch is not None:
            watch.check_alive()
        if story.seconds > DEADLINE_SECONDS:
            raise DemoFailedError(f"no {what} after {DEADLINE_SECONDS:.0f} s")
        threading.Event().wait(every)


def prepare(folder: Path, server: SeaweedFS) -> Path:
    """seawall.toml, keys and stores; the run is opened with an empty folder for its checkpoints."""
    os.environ.update(
        AWS_ACCESS_KEY_ID=server.keys.access_key_id, AWS_SECRET_ACCESS_KEY=server.keys.secret_access_key, AWS_REGION="us-east-1"
    )
    os.environ.pop("AWS_SESSION_TOKEN", None)
    server.create_bucket("checkpoints")
    server.create_bucket("archive", lock=True)
    site = folder / "site"
    (folder / "checkpoints").mkdir()
    program = str(Path(sys.executable).parent / "seawall")
    stores = ["--store", "a=s3://checkpoints/seawall", "--endpoint", f"a={server.endpoint}", "--store", f"c=file://{folder}/site-c"]
    stores += ["--store", f"{ARCHIVE}=s3://archive/seawall", "--endpoint", f"{ARCHIVE}={server.endpoint}"]
    for words in (
        [program, "init", "--folder", str(site), *stores, "--json"],
        [program, "run", "open", RUN, "--path", str(folder / "checkpoints"), "--config", str(site / "seawall.toml"), "--json"],
    ):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise DemoFailedError(done.stdout + done.stderr)
    config = site / "seawall.toml"
    text = config.read_text()
    more = {f"[stores.{ARCHIVE}]": "lock_days = 1", f'copies = ["a", "c", "{ARCHIVE}"]': f'archive = "{ARCHIVE}"'}
    for line, then in more.items():
        if text.count(line) != 1:
            raise DemoFailedError(f"{config} should have the line {line}:\n{text}")
        text = text.replace(line, f"{line}\n{then}")
    config.write_text(text)
    return site


def proved_step(site: Path) -> dict[str, Any] | None:
    """The recovery point, once there is one."""
    point = seawall(site, "copies", RUN).get("recovery_point")
    return point if isinstance(point, dict) else None


DAGS = ("seawall_sync", "seawall_verify", "seawall_archive", "seawall_restore")


def wake(airflow: LocalAirflow) -> None:
    """DAGs are created paused; the demo's are started."""
    for dag in DAGS:
        airflow.request("PATCH", f"/api/v2/dags/{dag}", json={"is_paused": False})


def all_dags(airflow: LocalAirflow) -> bool:
    known = {dag["dag_id"] for dag in airflow.request("GET", "/api/v2/dags?limit=100")["dags"]}
    return set(DAGS) <= known


def run_dag(airflow: LocalAirflow, dag: str, story: Story, **conf: object) -> str:
    """Trigger a DAG as a person on call would, and wait for its end; the run's id."""
    body = {"dag_run_id": f"demo-{int(time.time())}", "logical_date": None, "conf": {"run": RUN, **conf}}
    run_id = str(airflow.request("POST", f"/api/v2/dags/{dag}/dagRuns", json=body)["dag_run_id"])

    def ended() -> str:
        state = str(airflow.request("GET", f"/api/v2/dags/{dag}/dagRuns/{run_id}")["state"])
        return state if state in ("success", "failed") else ""

    state = wait_for(f"end of {dag}", ended, story)
    if state != "success":
        raise DemoFailedError(f"{dag} ended as {state}: see {airflow.folder / 'log'}")
    return run_id


def damage(site: Path, folder: Path, step: int) -> tuple[Path, bytes]:
    """Flip one bit in the middle of the largest file of a checkpoint's copy in store c; the file, and what it was."""
    sealing = next(row["sealing"] for row in seawall(site, "copies", RUN)["checkpoints"] if row["step"] == step)
    path = max((folder / "site-c" / "runs" / RUN / "sealings" / sealing).glob("file-*.sea"), key=lambda path: path.stat().st_size)
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.chmod(0o600)
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    return path, whole


def heal_by_dag(airflow: LocalAirflow, site: Path, folder: Path, step: int, story: Story) -> None:
    """A bit flips in a stored record. The matrix DAG has to find it, mend it from the other store, and prove it again."""
    hurt, whole = damage(site, folder, step)
    story.tell(f"a bit of {hurt.name} of step {step} in store c is flipped")
    run_id = run_dag(airflow, "seawall_verify", story, step=str(step))
    tasks = airflow.request("GET", f"/api/v2/dags/seawall_verify/dagRuns/{run_id}/taskInstances?limit=100")["task_instances"]
    states = {task["task_id"]: task["state"] for task in tasks}
    if {states.get(f"mend.{task}") for task in ("heal", "prove", "sign")} != {"success"}:
        raise DemoFailedError(f"the damage was not found, or not mended: {states}")
    if hurt.read_bytes() != whole:
        raise DemoFailedError("the healed object is not the one that was stored")
    story.tell("the matrix DAG has found the damaged record, healed the copy from store a and proved it again")


def archive_by_dag(airflow: LocalAirflow, site: Path, story: Story) -> int:
    """The newest proved checkpoint goes into the archive, sealed as it is, and is read back there; its step."""
    run_dag(airflow, "seawall_archive", story)
    rows = seawall(site, "copies", RUN)["checkpoints"]
    archived = [row["step"] for row in rows if row["copies"][ARCHIVE]["level"] is not None]
    if len(archived) != 1:
        raise DemoFailedError(f"the archive should hold one proved copy, and holds {len(archived)}")
    story.tell(f"the archive DAG has copied step {archived[0]} into store {ARCHIVE}, sealed as it is, locked it and proved it there")
    return int(archived[0])


def play(folder: Path, story: Story, stack: contextlib.ExitStack) -> tuple[Path, LocalAirflow]:
    """The whole story; raises :class:`DemoFailedError` when something does not hold."""
    server = stack.enter_context(SeaweedFS(folder / "s3"))
    site = prepare(folder, server)
    story.tell("an S3 server runs, keys and stores are made, the run is open")
    airflow = LocalAirflow(folder / "airflow", seawall_config=site / "seawall.toml")
    stack.callback(airflow.stop)
    airflow.start()
    wait_for("DAGs", lambda: all_dags(airflow), story)
    wake(airflow)
    story.tell(f"Airflow runs: {airflow.url}")
    checkpoints = folder / "checkpoints"
    notify = ["--run", RUN, "--notify", airflow.url, "--credentials", str(airflow.folder / "notify.json")]
    # The losses lie elsewhere: they are the evidence, not the checkpoint.
    training = Training(checkpoints, folder / "losses.jsonl", "--steps", "100000", "--save-every", str(SAVE_EVERY), *notify)
    stack.callback(training.kill)
    wait_for("first step", lambda: training.by_step(), story, training)
    story.tell("training runs and tells Airflow about each checkpoint")
    wait_for("synced checkpoint", lambda: seawall(site, "copies", RUN)["checkpoints"], story, training, every=2)
    story.tell("the sync DAG has taken a checkpoint to both stores")
    point = wait_for("proved checkpoint", lambda: proved_step(site), story, training, every=2)
    story.tell(f"the verify DAG has proved step {point['step']} to {point['level']}")
    heal_by_dag(airflow, site, folder, point["step"], story)
    archived = archive_by_dag(airflow, site, story)

    training.kill()
    killed_at = datetime.now(UTC)
    done = training.by_step()
    shutil.rmtree(checkpoints)
    lost_at = story.tell(f"the training process is killed at step {max(done)} and its checkpoints are deleted")
    point = proved_step(site) or point
    restored = folder / "restored"
    reference = Training(
        folder / "reference", folder / "reference.jsonl", "--steps", str(point["step"] + COMPARED_STEPS), "--save-every", "1000000"
    )
    stack.callback(reference.kill)
    # By its step: a newer one may be proved in this very moment, and the comparison below is about this one.
    run_dag(airflow, "seawall_restore", story, target=str(restored), step=point["step"])
    story.tell(f"the restore DAG has rebuilt step {point['step']}")
    options = ["--resume-from", str(restored), "--steps", str(point["step"] + COMPARED_STEPS), "--save-every", "1000000"]
    resumed = Training(folder / "resumed", folder / "resumed.jsonl", *options)
    stack.callback(resumed.kill)
    wait_for("resumed step", lambda: resumed.by_step(), story, resumed, every=0.2)
    back_at = story.tell(f"training goes on at step {min(resumed.by_step())}")
    resumed.process.wait()
    reference.process.wait()
    resumed.check_alive()
    reference.check_alive()
    compare(point, done, resumed.by_step(), reference.by_step())
    story.tell(f"its next {COMPARED_STEPS} losses are those of a run that was never interrupted, bit for bit")
    story.facts = facts(point, done, killed_at, back_at - lost_at, restored)
    story.matrix = matrix(site)
    story.score = command_line(site, "score", RUN, "--step", str(archived)).stdout
    return site, airflow


def matrix(site: Path) -> str:
    """Every copy and what is known about it, as a person sees it. Older checkpoints may still wait for their turn, which is no failure."""
    done = command_line(site, "matrix", RUN)
    if done.returncode not in (0, 3):
        raise DemoFailedError(f"the matrix is not as it should be at the end:\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(point: dict[str, Any], done: dict[int, str], resumed: dict[int, str], reference: dict[int, str]) -> None:
    """Every loss after the restored step, in three runs."""
    steps = range(point["step"] + 1, point["step"] + 1 + COMPARED_STEPS)
    for step in steps:
        if not resumed.get(step) or resumed.get(step) != reference.get(step):
            raise DemoFailedError(f"the loss of step {step} differs: {resumed.get(step)} resumed, {reference.get(step)} uninterrupted")
        if step in done and done[step] != resumed[step]:
            raise DemoFailedError(f"the loss of step {step} differs from the one before the disk was lost")


def facts(point: dict[str, Any], done: dict[int, str], killed_at: datetime, rto_seconds: float, restored: Path) -> dict[str, Any]:
    last = max(done)
    saved_at = datetime.fromisoformat(json.loads((restored / "_COMMITTED").read_text())["saved_at"])
    return {
        "restored_step": point["step"],
        "last_step_before_the_loss": last,
        "steps_lost": last - point["step"],
        "rpo_seconds": round((killed_at - saved_at).total_seconds(), 1),
        "rto_seconds": round(rto_seconds, 1),
        "restored_bytes": sum(path.stat().st_size for path in restored.rglob("*") if path.is_file()),
        "level": point["level"],
        "stores": point["stores"],
        "losses_compared": COMPARED_STEPS,
    }


def report(story: Story, folder: Path, held: bool, why: str) -> Path:
    """JSON for programs; the path is printed last."""
    target = folder / "report.json"
    document = {
        "held": held,
        "why": why,
        "at": datetime.now(UTC).isoformat(),
        "seconds": round(story.seconds, 1),
        **story.facts,
        "events": [{"at_seconds": round(at, 1), "what": what} for at, what in story.events],
    }
    target.write_text(json.dumps(document, indent=1))
    return target


def show(story: Story, path: Path) -> None:
    """First what was lost and what came back; then the table of what happened when."""
    known = story.facts
    print()
    print(f"LOST       the training process and its disk at step {known['last_step_before_the_loss']}")
    print(f"CAME BACK  step {known['restored_step']}, {known['restored_bytes'] / 2**20:.1f} MiB, proved to {known['level']}")
    print(f"RPO        {known['steps_lost']} steps, {known['rpo_seconds']} s of training")
    print(f"RTO        {known['rto_seconds']} s from the loss to the next step")
    print(f"LOSS       the next {known['losses_compared']} losses equal those of an uninterrupted run, bit for bit")
    print()
    for at, what in story.events:
        print(f"  {at:6.1f} s  {what}")
    print(f"\nEvery copy at the end (seawall matrix {RUN}):\n\n{story.matrix}")
    print(f"The archived checkpoint's score (seawall score {RUN}):\n\n{story.score}")
    print(f"report: {path}")


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A short folder of its own; it stays only with KEEP=1. The report is kept beside the checkout."""
    folder = Path(tempfile.mkdtemp(prefix="seawall-demo-"))
    try:
        yield folder
    finally:
        if not os.environ.get("KEEP"):
            shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    story = Story()
    state = HERE.parent / ".state" / "demo"
    state.mkdir(parents=True, exist_ok=True)
    with workplace() as folder:
        with contextlib.ExitStack() as stack:
            try:
                _, airflow = play(folder, story, stack)
                show(story, report(story, state, True, ""))
                if os.environ.get("KEEP"):
                    print(f"Airflow stays up until Ctrl-C: {airflow.url}, user admin, password in {airflow.folder / 'passwords.json'}")
                    with contextlib.suppress(KeyboardInterrupt):
                        threading.Event().wait()
            except (DemoFailedError, SeawallError, httpx.HTTPError) as error:
                print(f"\nIT DID NOT HOLD: {error}", file=sys.stderr)
                print(f"report: {report(story, state, False, str(error))}")
                logs = state / "log"
                shutil.rmtree(logs, ignore_errors=True)
                if (folder / "airflow" / "log").exists():
                    shutil.copytree(folder / "airflow" / "log", logs)
                return 1
            finally:
                # A second Ctrl-C must not end the clean-up that the first one began.
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, signal.SIG_IGN)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
