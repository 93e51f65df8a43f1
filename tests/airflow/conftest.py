"""Airflow for tests: a home of its own, made before anything imports Airflow, with this checkout's DAGs and no examples."""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

CHECKOUT = Path(__file__).parents[2]
HAVE_AIRFLOW = importlib.util.find_spec("airflow") is not None

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


class WithoutAirflow(pytest.Module):
    """A test file that cannot even be imported here; it is skipped with the reason, which the summary prints."""

    def collect(self) -> NoReturn:
        pytest.skip("Airflow is not installed here; the extra `airflow` brings it", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return None if HAVE_AIRFLOW else WithoutAirflow.from_parent(parent, path=module_path)


def pytest_unconfigure() -> None:
    if HAVE_AIRFLOW:
        shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's tables in this process's own SQLite file."""
    from airflow.utils.db import initdb

    initdb()
