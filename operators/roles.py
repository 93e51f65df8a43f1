"""Where tasks of a role run: pools and queues by Airflow's configuration, so that writers and verifiers can be other hosts, with other
keys.
"""

from datetime import timedelta
from typing import Any

from seawall.operators.settings import setting

RETRIES = 3
RETRY_DELAY = timedelta(minutes=1)
"""Doubled with each try: a store that is down for minutes is waited for; the retries for seconds are inside the stores."""
TIME_LIMIT = timedelta(minutes=30)
"""No task needs more. Airflow's own tokens of a task are not made for hours (apache/airflow issue 67939)."""


def task_arguments(role: str) -> dict[str, Any]:
    """Arguments of a DAG's tasks, or of one, for ``writer``, ``verifier``, ``operator`` or ``restorer``: limits, pool and queue.

    The pool is ``[seawall] <role>_pool`` (default_pool when empty), the queue ``[seawall] <role>_queue`` (the executor's own when empty).
    """
    from airflow.sdk.configuration import conf

    arguments: dict[str, Any] = {
        "owner": "seawall",
        "retries": RETRIES,
        "retry_delay": RETRY_DELAY,
        "retry_exponential_backoff": True,
        "execution_timeout": TIME_LIMIT,
    }
    # Said even where they are Airflow's own: a task of another role in the same DAG has to leave that role's queue.
    arguments["pool"] = setting(f"{role}_pool") or "default_pool"
    arguments["queue"] = setting(f"{role}_queue") or conf.get("operators", "default_queue")
    return arguments
