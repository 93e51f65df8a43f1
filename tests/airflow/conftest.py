"""Airflow for tests: a home of its own, made before anything imports Airflow, with this checkout's DAGs and no examples."""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
HAVE_AIRFLOW = importlib.util.find_spec("airflow") is not None

collect_ignore_glob = [] if HAVE_AIRFLOW else ["test_*.py"]

if HAVE_AIRFLOW:
    # Airflow reads these once, at its first import, and creates its folder then; so they are set before and not by a fixture.
    HOME = Path(tempfile.mkdtemp(prefix="seawall-airflow-"))
    for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
        del os.environ[name]
    os.environ.update(
        AIRFLOW_HOME=str(HOME),
        AIRFLOW__CORE__DAGS_FOLDER=str(CHECKOUT / "dags"),
        AIRFLOW__CORE__PLUGINS_FOLDER=str(HOME / "plugins"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__CORE__UNIT_TEST_MODE="False",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS="False",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS="admin:admin,oper:op,someone:user,viewer:viewer",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=str(HOME / "passwords.json"),
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
        AIRFLOW__API_AUTH__JWT_SECRET="of tests, shared with nobody, " * 3,
        AIRFLOW__API__SECRET_KEY="another one",  # pragma: allowlist secret
        AIRFLOW__API__BASE_URL="http://testserver/",
        AIRFLOW__LOGGING__LOGGING_LEVEL="WARNING",
    )


class _Reason:
    """Says in the summary why nothing of this folder ran."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line("tests/airflow: not collected, because Airflow is not installed here (the extra `airflow` brings it)")


def pytest_configure(config: pytest.Config) -> None:
    if not HAVE_AIRFLOW:
        config.pluginmanager.register(_Reason(), "seawall-airflow-reason")


def pytest_unconfigure() -> None:
    if HAVE_AIRFLOW:
        shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's tables in this process's own SQLite file."""
    from airflow.utils.db import initdb

    initdb()
