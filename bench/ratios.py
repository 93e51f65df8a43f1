"""From single measurements to medians and to ratios within a round. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from process_cost import Cost


@dataclass(frozen=True, slots=True)
class Measurement:
    """One command in one round."""

    round: int
    task: str
    tool: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Goal:
    """``tool`` may use at most ``most`` times the CPU of ``reference`` at ``task``."""

    task: str
    tool: str
    reference: str
    most: float


@dataclass(frozen=True, slots=True)
class Row:
    """Medians over the rounds. The ratios are medians of ratios to the task's reference within each round."""

    task: str
    tool: str
    wall: float
    cpu: float
    cpu_least: float
    cpu_most: float
    peak_bytes: int
    cpu_ratio: float
    wall_ratio: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A goal with what was measured."""

    goal: Goal
    measured: float
    rounds: int
    held: bool


def rows_of(measurements: Sequence[Measurement], references: dict[str, str]) -> list[Row]:
    """A row for every task and tool, in the order of their first measurement."""
    rows = []
    for task, tool in dict.fromkeys((one.task, one.tool) for one in measurements):
        costs = [one.cost for one in measurements if (one.task, one.tool) == (task, tool)]
        cpu = [cost.cpu for cost in costs]
        rows.append(
            Row(
                task,
                tool,
                median(cost.wall for cost in costs),
                median(cpu),
                min(cpu),
                max(cpu),
                max(cost.peak_bytes for cost in costs),
                median(_ratios(measurements, task, tool, references[task], "cpu")),
                median(_ratios(measurements, task, tool, references[task], "wall")),
            )
        )
    return rows


def judge(measurements: Sequence[Measurement], goals: Sequence[Goal], least_rounds: int) -> list[Verdict]:
    """A goal is held when the median CPU ratio of at least ``least_rounds`` rounds is at most what it allows. One whose reference was not
    measured, because it is not installed, has no verdict."""
    verdicts = []
    for goal in goals:
        ratios = _ratios(measurements, goal.task, goal.tool, goal.reference, "cpu")
        if not ratios:
            continue
        measured = median(ratios)
        verdicts.append(Verdict(goal, measured, len(ratios), len(ratios) >= least_rounds and measured <= goal.most))
    return verdicts


def _ratios(measurements: Sequence[Measurement], task: str, tool: str, reference: str, figure: str) -> list[float]:
    """Tool to reference, for every round that has both."""
    of_tool = {one.round: getattr(one.cost, figure) for one in measurements if (one.task, one.tool) == (task, tool)}
    of_reference = {one.round: getattr(one.cost, figure) for one in measurements if (one.task, one.tool) == (task, reference)}
    return [of_tool[number] / of_reference[number] for number in sorted(of_tool.keys() & of_reference.keys())]
