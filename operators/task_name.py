"""Which task did something, as one text that outlives Airflow's database."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from airflow.sdk.definitions.context import Context

if TYPE_CHECKING:
    from seawall.verify.proofs import Proof


class TaskName(NamedTuple):
    """A try of a task instance. None of the names can hold a slash (Airflow's own rule for DAGs, runs and tasks)."""

    dag: str
    run: str
    task: str
    map_index: int
    """-1 where the task is not mapped."""
    try_number: int

    def __str__(self) -> str:
        return "/".join(str(part) for part in self)

    @classmethod
    def parse(cls, text: str) -> "TaskName | None":
        """Back from text; None for anything else: evidence is what somebody wrote."""
        parts = text.split("/")
        if len(parts) != 5 or not all(parts):
            return None
        try:
            return cls(parts[0], parts[1], parts[2], int(parts[3]), int(parts[4]))
        except ValueError:
            return None


def with_task(context: Context, proofs: "Sequence[Proof]") -> "list[Proof]":
    """Proofs that name the task that runs; as they are where an operator is called by hand."""
    from seawall.verify.evidence import TASK

    ti = context.get("ti")
    if ti is None:
        return list(proofs)
    index = -1 if ti.map_index is None else ti.map_index
    name = str(TaskName(ti.dag_id, ti.run_id, ti.task_id, index, ti.try_number))
    return [replace(proof, evidence={**proof.evidence, TASK: name}) for proof in proofs]
