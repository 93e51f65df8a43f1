"""airflow.cfg serves every checkout: no machine's paths, no secrets, nothing open to the network."""

import configparser
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def configuration(checkout: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string((checkout / "airflow.cfg").read_text())
    return parser


def test_folders_are_found_from_the_checkout(configuration: configparser.ConfigParser, checkout: Path) -> None:
    for key in ("dags_folder", "plugins_folder"):
        value = configuration["core"][key]
        assert value.startswith("$AIRFLOW_HOME/")
        assert (checkout / value.removeprefix("$AIRFLOW_HOME/")).is_dir()
    for section, key in [("logging", "base_log_folder"), ("logging", "dag_processor_child_process_log_directory")]:
        assert configuration[section][key].startswith("$AIRFLOW_HOME/")
    # "sqlite:///relative" is refused, "{AIRFLOW_HOME}" is taken literally: both were tried against Airflow 3.3.2.
    assert configuration["database"]["sql_alchemy_conn"].startswith("sqlite:///$AIRFLOW_HOME/")


def test_it_holds_no_secret_and_opens_no_door(configuration: configparser.ConfigParser) -> None:
    secrets = {"fernet_key", "jwt_secret", "secret_key", "password", "result_backend", "broker_url"}
    assert [key for section in configuration.sections() for key in configuration[section] if key in secrets] == []
    assert configuration["api"]["host"] == "127.0.0.1"
    assert not configuration["core"].getboolean("simple_auth_manager_all_admins")


def test_what_airflow_leaves_behind_is_ignored(checkout: Path, tracked: dict[str, str]) -> None:
    assert tracked
    left = ["airflow.db", "airflow.db-wal", "logs/dag_processor/x.log", "simple_auth_manager_passwords.json.generated", ".state/pg/x"]
    rules = (checkout / ".gitignore").read_text().splitlines()
    assert {"airflow.db*", "logs/", "simple_auth_manager_passwords.json.generated", ".state/"} <= set(rules)
    done = subprocess.run(["git", "check-ignore", "--no-index", *left], cwd=checkout, capture_output=True, text=True)
    assert done.stdout.split() == left
