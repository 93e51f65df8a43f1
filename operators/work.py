"""From what mapped tasks returned to what the next mapped tasks get. Pure.

Airflow does not map inside of a mapped group, so the batches of all runs are one list. What is missing from the input belongs to tasks that
failed or were skipped: it is left out, and the other runs go on.
"""

from collections.abc import Iterable
from typing import Any


def batches_to_seal(plans: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item a batch: run, sealing, path, batch."""
    return [
        {"run": plan["run"], "sealing": plan["sealing"], "path": plan["path"], "batch": batch}
        for plan in plans
        if plan
        for batch in plan["batches"]
    ]


def sealings_to_commit(plans: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item a plan: run, sealing, verdict. Also for what is committed already: a place may lack its copy."""
    return [{"run": plan["run"], "sealing": plan["sealing"], "verdict": plan["verdict"]} for plan in plans if plan]


def copies_to_fill(commits: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item for each place that has no whole copy yet: run, sealing, store."""
    return [
        {"run": commit["run"], "sealing": commit["sealing"], "store": store} for commit in commits if commit for store in commit["missing"]
    ]


def parts_to_archive(plans: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item a part: run, sealing, first, count."""
    return [{"run": plan["run"], "sealing": plan["sealing"], **part} for plan in plans if plan for part in plan["parts"]]


def sealings_to_archive(plans: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item a plan: run, sealing. Also for what is there already: its label may be missing."""
    return [{"run": plan["run"], "sealing": plan["sealing"]} for plan in plans if plan]


def archived_to_prove(archived: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item a copy that was brought now: run, sealing, store. Of the others the daily rotation takes care."""
    return [{name: copy[name] for name in ("run", "sealing", "store")} for copy in archived if copy and copy["status"] == "archived"]


def copies_to_verify(due: Iterable[list[dict[str, Any]] | None]) -> list[dict[str, Any]]:
    """One item a copy, or a part of one: run, sealing, store, level, first, count."""
    return [copy for of_run in due if of_run for copy in of_run]


def copies_to_heal(matrices: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item a damaged copy that the others can mend: run, sealing, store."""
    return [{"run": matrix["run"], **copy} for matrix in matrices if matrix for copy in matrix["heal"]]


def copies_to_prove(healed: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item a copy that was healed, or found whole: run, sealing, store."""
    return [{name: copy[name] for name in ("run", "sealing", "store")} for copy in healed if copy]


def runs_to_mark(matrices: Iterable[dict[str, Any] | None]) -> list[str]:
    """Runs with something that no other copy mends."""
    return [matrix["run"] for matrix in matrices if matrix and matrix["mark"]]


def syncs_to_start(matrices: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item a run that is behind: id and configuration of the DAG run that catches up."""
    return [{"trigger_run_id": matrix["catch_up"], "conf": {"run": matrix["run"]}} for matrix in matrices if matrix and matrix["catch_up"]]


def runs_to_settle(matrices: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One item a run that was responded to: run, marked."""
    return [{"run": matrix["run"], "marked": matrix["mark"]} for matrix in matrices if matrix and (matrix["heal"] or matrix["mark"])]


def fail_with_upstream() -> None:
    """For a last task with the trigger rule ``one_failed``: Airflow judges a DAG run by its last tasks alone, and those may have nothing
    to do with the one that failed."""
    from airflow.sdk.exceptions import AirflowFailException

    raise AirflowFailException("a task before this one failed; the others went on")
