"""``seawall init --airflow``: DAG files for an Airflow that has the package installed."""

from pathlib import Path

from airflow.dag_processing.dagbag import DagBag

from seawall.cli.airflow import dag_folder
from tests.protect.command_line import seawall

NAMES = [
    "seawall_archive.py",
    "seawall_audit.py",
    "seawall_restore.py",
    "seawall_retention.py",
    "seawall_sync.py",
    "seawall_verify.py",
]


def test_the_files_that_are_written_load(tmp_path: Path) -> None:
    done = seawall("init", "--airflow", tmp_path, "--json")
    assert (done.code, done.json["written"], done.json["kept"]) == (0, NAMES, [])
    bag = DagBag(dag_folder=str(tmp_path))
    assert bag.import_errors == {}
    assert sorted(bag.dags) == [name.removesuffix(".py") for name in NAMES]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == NAMES


def test_again_changes_nothing_and_an_edited_file_is_kept(tmp_path: Path) -> None:
    seawall("init", "--airflow", tmp_path)
    edited = tmp_path / "seawall_sync.py"
    edited.write_text("# ours\n")
    done = seawall("init", "--airflow", tmp_path, "--json")
    others = [name for name in NAMES if name != edited.name]
    assert (done.code, done.json["written"], done.json["unchanged"], done.json["kept"]) == (0, [], others, [edited.name])
    assert edited.read_text() == "# ours\n"
    assert "was kept" in done.err


def test_a_folder_that_is_not_there_is_no_guess(tmp_path: Path) -> None:
    done = seawall("init", "--airflow", tmp_path / "nowhere", "--json")
    assert (done.code, done.json["error"]) == (2, "UsageError")
    assert seawall("init", "--folder", tmp_path / "site", "--json").code == 2, "a new site needs a store"
    assert not (tmp_path / "site").exists()


def test_a_site_and_its_dag_files_at_once(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    done = seawall("init", "--store", f"a=file://{tmp_path}/a", "--folder", tmp_path / "site", "--airflow", tmp_path / "dags", "--json")
    assert (done.code, done.json["created"]) == (0, True)
    assert sorted(path.name for path in (tmp_path / "dags").iterdir()) == NAMES


def test_they_are_the_ones_of_this_installation() -> None:
    assert sorted(path.name for path in dag_folder().glob("seawall_*.py")) == NAMES
