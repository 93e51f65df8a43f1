"""Puts dags/ into the wheel as seawall/dags, from where it is copied into an Airflow home.

Not by ``force-include`` in pyproject.toml: for an editable install that would leave a copy of the DAGs in site-packages, in
a second folder called seawall that goes stale with the next edit. An editable install finds dags/ beside the package.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DagsInWheel(BuildHookInterface):  # type: ignore[type-arg]  # hatchling declares a parameter that it never uses
    """Adds the folder to every wheel but an editable one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"][str(Path(self.root, "dags"))] = "seawall/dags"
