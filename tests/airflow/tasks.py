"""Operators run by hand: a site with two file stores, and what Airflow would tell a task."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow.sdk.timezone import utcnow

from seawall.operators.base import SeawallOperator
from seawall.operators.runs import ListRunsOperator
from seawall.operators.sync import CommitOperator, FillOperator, PlanSyncOperator, SealBatchOperator
from seawall.operators.verify import CertifyOperator, DueCopiesOperator, VerifyOperator
from seawall.operators.work import batches_to_seal, copies_to_fill, copies_to_verify, sealings_to_commit
from tests.protect.command_line import RUN, Desk, new_desk


def context(**more: Any) -> Any:
    """The least that an operator may count on: a run that somebody started by hand, without a data interval."""
    return {"dag_run": SimpleNamespace(run_after=utcnow(), run_type="manual"), **more}


@dataclass
class Hand:
    """Runs operators one after the other, as the DAGs wire them, every result through JSON."""

    desk: Desk

    def run(self, operator: type[SeawallOperator], **arguments: Any) -> Any:
        task = operator(task_id="task", seawall_config=str(self.desk.config), **arguments)
        # Airflow keeps results as JSON; what does not survive that is not there for the next task.
        return json.loads(json.dumps(task.execute(context())))

    def plan(self) -> Any:
        return self.run(PlanSyncOperator, run=RUN)

    def seal(self, plan: Any) -> list[Any]:
        return [self.run(SealBatchOperator, **batch) for batch in batches_to_seal([plan])]

    def commit(self, plan: Any) -> list[Any]:
        return [self.run(CommitOperator, **sealing) for sealing in sealings_to_commit([plan])]

    def fill(self, commits: list[Any]) -> list[Any]:
        return [self.run(FillOperator, **copy) for copy in copies_to_fill(commits)]

    def sync_without_filling(self) -> list[Any]:
        plan = self.plan()
        self.seal(plan)
        return self.commit(plan)

    def sync(self) -> list[Any]:
        commits = self.sync_without_filling()
        self.fill(commits)
        return commits

    def due(self, **arguments: Any) -> list[Any]:
        return copies_to_verify([self.run(DueCopiesOperator, run=RUN, **arguments)])

    def check(self, copies: list[Any]) -> list[Any]:
        return [self.run(VerifyOperator, **copy) for copy in copies]

    def certify(self, results: list[Any]) -> Any:
        (signed,) = self.run(CertifyOperator, run=RUN, results=results)
        return signed

    def runs(self, **arguments: Any) -> Any:
        return self.run(ListRunsOperator, **arguments)


def new_hand(folder: Path, batch_bytes: int | None = None, stores: Sequence[str] = ("a", "c")) -> Hand:
    """A site with an open run; with ``batch_bytes`` its checkpoints are sealed in several batches."""
    desk = new_desk(folder, stores)
    if batch_bytes is not None:
        table = f"[runs.{json.dumps(RUN)}]\n"
        text = desk.config.read_text()
        assert table in text
        desk.config.write_text(text.replace(table, f"{table}batch_bytes = {batch_bytes}\n"))
    return Hand(desk)
