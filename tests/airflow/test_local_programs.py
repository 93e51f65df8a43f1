"""What `make up` is made of: a database in a folder of any name, and processes that end with everything they started."""

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg2
import pytest

from tests.airflow.conftest import CHECKOUT
from tools.local_postgres import start_postgres, stop_postgres
from tools.local_processes import ProcessList, end_session

LEADER = """
import os, signal, sys
child = os.fork()
if child == 0:
    # What Airflow does with every task.
    os.setpgid(0, 0)
    signal.pause()
print(child, flush=True)
signal.pause()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Deep, with spaces, and not below a folder of pytest's, which are closed to the user that PostgreSQL runs as when we are root."""
    top = Path(tempfile.mkdtemp(prefix="seawall test "))
    deep = top.joinpath(*["a name of twenty let"] * 6, "it's a checkout")
    deep.mkdir(parents=True)
    yield deep
    stop_postgres(deep / "postgres")
    shutil.rmtree(top)


def query(url: str, text: str) -> None:
    socket = url.partition("host=")[2]
    connection = psycopg2.connect(host=socket, user="postgres", dbname="postgres")
    connection.autocommit = True
    connection.cursor().execute(text)
    connection.close()


def test_a_database_stays_where_it_was_put(folder: Path) -> None:
    data = folder / "postgres"
    url = start_postgres(data)
    short = Path(url.partition("host=")[2])
    query(url, "create table kept (step int)")
    assert start_postgres(data) == url, "it runs already"
    number = int((data / "postmaster.pid").read_text().split()[0])
    stop_postgres(data)
    assert not psutil.pid_exists(number)
    assert not short.exists()
    assert not short.parent.exists()
    stop_postgres(data)
    again = start_postgres(data)
    query(again, "insert into kept values (1)")
    assert (data / "PG_VERSION").exists()


def test_a_database_whose_server_was_killed_comes_back(folder: Path) -> None:
    data = folder / "postgres"
    query(start_postgres(data), "create table kept (step int)")
    server = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
    server.kill()
    server.wait(10)
    query(start_postgres(data), "insert into kept values (1)")


def test_a_removed_folder_stays_away_when_the_process_ends(folder: Path) -> None:
    code = """
import shutil, sys
from pathlib import Path
from tools.local_postgres import start_postgres, stop_postgres
data = Path(sys.argv[1])
start_postgres(data)
stop_postgres(data)
shutil.rmtree(data.parent)
"""
    subprocess.run([sys.executable, "-c", code, str(folder / "job" / "postgres")], cwd=CHECKOUT, check=True)
    assert not (folder / "job").exists()


def led(*, own_session: bool = True) -> tuple[subprocess.Popen[bytes], int]:
    process = subprocess.Popen([sys.executable, "-c", LEADER, "airflow"], stdout=subprocess.PIPE, start_new_session=own_session)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@pytest.mark.parametrize("killed_before", [False, True])
def test_a_session_ends_with_children_in_other_groups(killed_before: bool) -> None:
    leader, child = led()
    if killed_before:
        leader.kill()
        leader.wait()
    end_session(leader.pid, "airflow")
    assert leader.wait() != 0
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(("program", "own_session"), [("another", True), ("airflow", False)])
def test_a_number_that_somebody_else_has_now_is_left_alone(program: str, own_session: bool) -> None:
    leader, child = led(own_session=own_session)
    try:
        end_session(leader.pid, program)
        assert leader.poll() is None
        assert psutil.pid_exists(child)
    finally:
        leader.kill()
        leader.wait()
        psutil.Process(child).send_signal(signal.SIGKILL)


def test_a_list_knows_what_runs_and_ends_it(tmp_path: Path) -> None:
    processes = ProcessList(tmp_path / "deep" / "processes.json")
    assert processes.running() == {}
    leaders = {name: led()[0] for name in ("api-server", "scheduler")}
    for name, leader in leaders.items():
        processes.note(name, leader.pid)
    gone, _ = led()
    processes.note("triggerer", gone.pid)
    end_session(gone.pid, "airflow")
    gone.wait()
    assert processes.running() == {name: leader.pid for name, leader in leaders.items()}
    processes.stop("api-server")
    assert all(leader.wait() != 0 for leader in leaders.values())
    assert not processes.path.exists()
    processes.stop()
