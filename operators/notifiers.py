"""Notifiers: a task or a DAG that failed, told to Alertmanager and DingTalk; and that it is well again. For a task, a DAG, or its defaults:

    on_failure_callback=[AlertmanagerNotifier(), DingTalkNotifier()]
    on_success_callback=[AlertmanagerNotifier(resolved=True)]

Those of a task run in its own process when it ends, those of a DAG in the DAG processor. Whom they tell stands under ``[alerts]`` in
seawall.toml. Nothing that happens here is raised: the outcome of the task is what counts, and what could not be told is logged. A
backfill tells nobody.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseNotifier
from airflow.sdk.definitions.context import Context

from seawall.operators.window import BACKFILL

if TYPE_CHECKING:
    from seawall.alerts.send import Delivery
    from seawall.operators.site import AirflowSite

TASK_FAILED = "SeawallTaskFailed"
STANDS = timedelta(days=2)
"""A failure that nobody follows up ends by itself then: the task may have been taken out of its DAG."""
_MAX_SAID = 1000


class _SeawallNotifier(BaseNotifier):
    """What both do: find the receivers, say what failed, log what could not be told."""

    template_fields: Sequence[str] = ("run", "seawall_config")

    def __init__(self, *, run: str = "", seawall_config: str = "") -> None:
        """``run`` is the training run that the task is about; without it the task's own ``run`` is, where it has one."""
        super().__init__()
        self.run = run
        self.seawall_config = seawall_config

    def notify(self, context: Context) -> None:
        """Tell, unless the past is filled in."""
        if about_the_past(context):
            return
        from seawall.errors import SeawallError
        from seawall.operators.site import airflow_site

        try:
            site = airflow_site(self.seawall_config)
            deliveries = self.tell(site, context)
        except SeawallError as error:
            self.log.error("nobody was told: %s", error)
            return
        for delivery in deliveries:
            if delivery.error is not None:
                self.log.error("%s was not told: %s", delivery.receiver, delivery.error)

    def about(self, context: Context) -> str:
        """The training run; empty for a task that is about none, or about all, and for a whole DAG, which gets some task of the run."""
        task = None if context.get("reason") else context.get("task")
        return self.run or str(getattr(task, "run", None) or "")

    def tell(self, site: "AirflowSite", context: Context) -> "list[Delivery]":
        """Send it."""
        raise NotImplementedError


class AlertmanagerNotifier(_SeawallNotifier):
    """An alert of the task that failed, linked to it; with ``resolved`` that it stands no more."""

    def __init__(self, *, run: str = "", resolved: bool = False, seawall_config: str = "") -> None:
        super().__init__(run=run, seawall_config=seawall_config)
        self.resolved = resolved

    def tell(self, site: "AirflowSite", context: Context) -> "list[Delivery]":
        from seawall.alerts.alert import Alert
        from seawall.alerts.send import send_alerts

        now = site.clock.now()
        dag_id, task_id = names(context)
        # Not the run of the DAG: the next success of the same task ends it.
        labels = {"dag_id": dag_id, "task_id": task_id, "run": self.about(context)}
        what = f"{dag_id}.{task_id}" if task_id else dag_id
        summary = f"{what} {'works again' if self.resolved else 'failed'}"
        ends = now if self.resolved else now + STANDS
        why = "" if self.resolved else reason(context)
        alert = Alert(TASK_FAILED, "critical", summary, now, labels, why, ends, task_address(context))
        return send_alerts(site.receivers(), [alert])


class DingTalkNotifier(_SeawallNotifier):
    """A message about the task that failed, linked to it."""

    def tell(self, site: "AirflowSite", context: Context) -> "list[Delivery]":
        from seawall.alerts.alert import Message
        from seawall.alerts.send import send_message

        dag_id, task_id = names(context)
        about = self.about(context)
        lines = tuple(line for line in (f"run {about}" if about else "", reason(context)) if line)
        message = Message(f"seawall: {dag_id}{'.' + task_id if task_id else ''} failed", lines, task_address(context))
        return send_message(site.receivers(), message, site.clock.now())


def about_the_past(context: Context) -> bool:
    """Whether the run fills in the past. A callback of a whole DAG may know no more of it than its id."""
    run_type = getattr(context.get("dag_run"), "run_type", None)
    return run_type == BACKFILL or (run_type is None and str(context.get("run_id") or "").startswith(f"{BACKFILL}__"))


def names(context: Context) -> tuple[str, str]:
    """DAG and task; the task is empty for a callback of a whole DAG, which gets some task of the run or none (and a ``reason``)."""
    task: Any = context.get("ti")
    dag: Any = context.get("dag")
    dag_id = getattr(task, "dag_id", None) or getattr(dag, "dag_id", None) or ""
    return str(dag_id), "" if context.get("reason") else str(getattr(task, "task_id", None) or "")


def reason(context: Context) -> str:
    """Why it failed, as far as the context says."""
    error = context.get("exception")
    if error is not None:
        return str(error)[:_MAX_SAID]
    said, task = context.get("reason"), getattr(context.get("ti"), "task_id", None)
    return f"{said}{f' at {task}' if task else ''}" if said else ""


def task_address(context: Context) -> str:
    """Where the task is shown; empty where Airflow's address is not configured or there is no run."""
    from airflow.sdk.configuration import conf

    base = str(conf.get("api", "base_url", fallback="") or "").rstrip("/")
    task: Any = context.get("ti")
    run: Any = context.get("dag_run")
    run_id = getattr(task, "run_id", None) or getattr(run, "run_id", None) or context.get("run_id")
    dag_id, _ = names(context)
    task_id = str(getattr(task, "task_id", None) or "")
    if not base.startswith(("http://", "https://")) or not run_id or not dag_id:
        return ""
    address = f"{base}/dags/{quote(dag_id, safe='')}/runs/{quote(str(run_id), safe='')}"
    if not task_id:
        return address
    index = getattr(task, "map_index", None)
    mapped = f"/mapped/{index}" if isinstance(index, int) and index >= 0 else ""
    return f"{address}/tasks/{quote(task_id, safe='')}{mapped}"
