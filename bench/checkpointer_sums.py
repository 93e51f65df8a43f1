"""What the checksums of all tensors cost a save: asynchronous saves with and without them, in turn, in the same run.

Without them means DCP's own planner, as before there were sums. Sums are taken in a thread beside the writer, so what they cost a save is
what it waits for them once everything is written, and what they take from the writer. Two goals, exit 1 when one is missed:

* a save waits for sums for at most 2 % of its time, from `save_async` to the commit (median);
* the fastest save, and the shortest stall of training, are not longer by more than 2 % with sums. The fastest, because what else the
  machine does only ever adds; on a busy one it takes many rounds.

The CPU time of the summing thread is shown beside them.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner

from seawall.checkpoint.sums_file import TensorSum
from seawall.training import dcp_write, summing
from seawall.training.checkpointer import Checkpointer
from seawall.training.summing import Place, SummingPlanner

MOST_SHARE, MOST_RATIO = 0.02, 1.02


class PlainPlanner(DefaultSavePlanner):
    """DCP's own, with what the checkpointer asks of a planner."""

    def __init__(self, taken: dict[Place, TensorSum] | None = None) -> None:
        super().__init__()

    def sums(self) -> list[TensorSum]:
        return []

    def close(self) -> None:
        pass


class WaitingPlanner(SummingPlanner):
    """The checkpointer's own, with a clock where a save waits for sums."""

    waited = 0.0

    def sums(self) -> list[TensorSum]:
        began = time.perf_counter()
        try:
            return super().sums()
        finally:
            WaitingPlanner.waited = time.perf_counter() - began


PLANNERS = {"without": PlainPlanner, "with": WaitingPlanner}


@dataclass(frozen=True)
class Save:
    """Seconds of one save: until training went on, until it was committed, of CPU in the whole process, of CPU for the sums, and of
    waiting for them after the write."""

    stall: float
    total: float
    cpu: float
    sums: float
    waited: float


class Clocked:
    """The summing itself, with the CPU time of its thread added up."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._sum = summing._sum

    def __call__(self, *arguments: Any) -> TensorSum:
        began = time.thread_time()
        try:
            return self._sum(*arguments)
        finally:
            self.seconds += time.thread_time() - began


def state_of(mib: int) -> dict[str, Any]:
    """Weights in bf16 and fp32 with two moments each, as an optimizer keeps them, in layers of 32 MiB."""
    random = torch.Generator().manual_seed(1)
    layers: dict[str, Any] = {}
    for layer in range(max(1, mib // 32)):
        weights = torch.randn(2 << 20, generator=random)
        layers[f"layer{layer}"] = {
            "weight": weights.to(torch.bfloat16).repeat(2),
            "master": weights,
            "exp_avg": weights * 0.1,
            "exp_avg_sq": weights * weights * 0.01,
        }
    return {"model": layers}


def save(checkpointer: Checkpointer, step: int, state: dict[str, Any], planner: type[Any]) -> Save:
    dcp_write.SummingPlanner = planner  # type: ignore[misc]
    summing._sum = clocked = Clocked()  # type: ignore[assignment]
    began, cpu = time.perf_counter(), time.process_time()
    try:
        checkpointer.save_async(step, state)
        stalled = time.perf_counter()
        checkpointer.wait()
    finally:
        summing._sum = clocked._sum
    total = time.perf_counter() - began
    return Save(stalled - began, total, time.process_time() - cpu, clocked.seconds, WaitingPlanner.waited)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=256, help="size of the state")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", type=Path, help="where to save; the system's temporary folder otherwise")
    asked = parser.parse_args()
    state = state_of(asked.mib)
    rounds: list[dict[str, Save]] = []
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder, Checkpointer(folder, epoch=1) as checkpointer:
        step = 0
        for number in range(asked.rounds + 1):
            saves = {}
            for name in sorted(PLANNERS, reverse=number % 2 == 0):
                step += 1
                saves[name] = save(checkpointer, step, state, PLANNERS[name])
                for file in (Path(folder) / f"step_{step:08d}").iterdir():
                    file.unlink()
            if number:  # The first round warms up.
                rounds.append(saves)
    print(f"{asked.mib} MiB, {asked.rounds} rounds, seconds (medians)")
    for name in sorted(PLANNERS, reverse=True):
        stall, total, cpu = (median(getattr(one[name], figure) for one in rounds) for figure in ("stall", "total", "cpu"))
        print(f"  {name:<8} save_async {stall:.3f}   until committed {total:.3f}   CPU {cpu:.3f}")
    missed = []
    for figure, words in (("stall", "save_async"), ("total", "until committed"), ("cpu", "CPU")):
        least = {name: min(getattr(one[name], figure) for one in rounds) for name in PLANNERS}
        print(f"  fastest {words}: {least['with']:.3f} with, {least['without']:.3f} without: {least['with'] / least['without']:.3f}")
        if figure != "cpu" and least["with"] > MOST_RATIO * least["without"]:
            missed.append(words)
    share = median(one["with"].waited / one["with"].total for one in rounds)
    print(f"  the save waits {median(one['with'].waited for one in rounds):.4f} s for sums, {share:.2%} of its time")
    print(f"  their thread takes {median(one['with'].sums for one in rounds):.4f} s of CPU")
    if share > MOST_SHARE:
        missed.append("waiting for sums")
    print(f"goals: {'missed: ' + ', '.join(missed) if missed else 'met'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
