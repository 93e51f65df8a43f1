"""The link from a task to its checkpoint on seawall's page."""

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class CheckpointLink(BaseOperatorLink):
    """Airflow asks for it when a task ends, in the task's own process, and keeps the text."""

    name = "Checkpoint"

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:
        """Address of the checkpoint on the plugin's page; empty when the task came to none."""
        run, sealing = getattr(operator, "checkpoint", ("", ""))
        return page_address(run, sealing) if sealing else ""


def page_address(run: str, sealing: str) -> str:
    """Path of a checkpoint's copies on the integrity page, below Airflow's own base path."""
    from airflow.sdk.configuration import conf

    base = urlsplit(str(conf.get("api", "base_url", fallback="") or "")).path.rstrip("/")
    return f"{base}/seawall/integrity?run={quote(run, safe='')}&sealing={sealing}#copies"
