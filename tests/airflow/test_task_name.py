"""A proof that an Airflow task made names it, and only well-formed names lead anywhere."""

from types import SimpleNamespace

import pytest

from seawall.operators.task_name import TaskName, with_task
from seawall.verify.evidence import TASK
from seawall.verify.levels import Level
from tests.airflow.tasks import context
from tests.verify.judging import proof

NAME = TaskName("seawall_verify", "manual__2026-03-01T00:00:00+00:00", "each.check", 3, 1)


def test_a_proof_names_the_task_that_made_it() -> None:
    made = [proof(1, "a", Level.L2, "ok")]
    ti = SimpleNamespace(dag_id=NAME.dag, run_id=NAME.run, task_id=NAME.task, map_index=NAME.map_index, try_number=NAME.try_number)
    (named,) = with_task(context(ti=ti), made)
    assert TaskName.parse(named.evidence[TASK]) == NAME
    assert with_task(context(), made) == made, "nobody runs a task"


@pytest.mark.parametrize("text", ["", "a/b/c/1", "a/b/c/1/2/3", "a/b//1/2", "a/b/c/one/2", "a/b/c/1/"])
def test_what_names_no_task(text: str) -> None:
    assert TaskName.parse(text) is None
