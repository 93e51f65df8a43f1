"""Random histories through the real verbs: sealed checkpoints, signed proofs, a real log, stores that fail in the middle.

Every delete that reaches a store is judged as it happens, from the log and the stores' bytes alone: was it approved, had the plan cooled
off, does the log bury that copy, and could the run still be restored from what is left.
"""

import contextlib
import random
from datetime import timedelta
from pathlib import Path

import pytest

from seawall.errors import BusyError, FreshnessError, StoreAmbiguousError, StoreUnavailableError, UsageError
from seawall.log import verbs
from seawall.log.records import read_record
from seawall.protect import retention_work
from seawall.protect.retention import approve_plan, look_up
from seawall.protect.retention_document import APPROVAL
from seawall.protect.retention_gather import gather
from seawall.testing.faulty import FaultyStore
from seawall.verify.certify import read_proofs
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.recovery import copy_states
from tests.protect.retention_stage import Stage

ROUNDS = 5
CONTROL_SEED = 0
MISHAPS = ["nothing"] * 4 + ["save", "prove one", "fail", "hold", "quarantine", "clock back", "wait long", "plan", "run", "crash"]
"""What may come between the steps of a round that would otherwise delete something."""


class History:
    """One stage and what chance does to it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.stage = Stage(folder)
        self.chance = random.Random(seed)
        self.step = 0
        self.deleted = 0
        self.failed: set[tuple[int, str]] = set()
        self.plans: list[str] = []
        self.faulty = {name: FaultyStore(store) for name, store in self.stage.memory.items()}
        for name, faulty in self.faulty.items():
            faulty.before("delete", lambda key, name=name: self.judge(name, key), times=None)
        self.stage.wrapped = self.faulty

    def judge(self, store: str, key: str) -> None:
        """An object is about to go."""
        self.deleted += 1
        stage = self.stage
        view = stage.site.view()
        state = view.state
        sealing = key.split("/")[3]
        place = stage.site.place(store)
        (tombstone,) = [record for record in state.tombstones[sealing] if record.store == place.id]
        approval = read_record(stage.memory["c"], view.run, APPROVAL, tombstone.plan, state.resolver("operator"))
        assert approval.body["plan"] == tombstone.plan
        (plan,) = [
            known.plan for known in (look_up(stage.desk(), state, name) for name in self.plans) if known.plan.digest == tombstone.plan
        ]
        assert (sealing, place.id) in plan.copies, "a copy that is on no list"
        assert stage.now >= plan.at + timedelta(hours=24), "before the plan had cooled off"
        assert not state.hold_reasons(), "under a hold"
        proofs = read_proofs(stage.memory["c"], view).proofs
        buried = state.tombstones
        sound = []
        for commit in state.commits.values():
            states = copy_states(commit.sealing, [proof for proof in proofs if proof.manifest == commit.manifest], stage.now, AgePolicy())
            good = [
                copy
                for copy in states.values()
                if copy.level is not None and copy.level >= Level.L3 and not state.is_deleted(commit.sealing, copy.store)
            ]
            failing = any(copy.failure is not None for copy in states.values())
            if len(good) == 2 and not failing and not state.quarantine_reasons(commit.sealing):
                sound.append(commit)
        assert sealing in buried
        newest = sorted(sound, key=lambda commit: commit.step)[-stage.settings.keep_last :]
        assert len(newest) >= 1, "nothing is left that could be counted on"
        assert sealing not in {commit.sealing for commit in newest}

    def play(self) -> None:
        """Rounds in which retention would do its work, if nothing came between."""
        for _ in range(ROUNDS):
            for event in ("save", "save", "heal", "plan", "approve", "day", "heal", "run"):
                self.attempt(event)
                self.attempt(self.chance.choice(MISHAPS))
            for _ in range(3):
                self.attempt("lift")

    def attempt(self, event: str) -> None:
        """Somebody's lease, a clock that went back, an answer that was lost: told, and nothing was done wrong."""
        with contextlib.suppress(BusyError, FreshnessError, StoreAmbiguousError, StoreUnavailableError):
            self.happen(event)

    def happen(self, event: str) -> None:
        stage, chance = self.stage, self.chance
        view = stage.site.view()
        steps = [commit.step for commit in view.state.commits.values()]
        if event == "save" or not steps:
            self.step += 100
            stage.save(self.step)
        elif event == "prove one":
            self.prove([chance.choice(steps)])
        elif event == "fail":
            step, store = chance.choice(steps), chance.choice("ac")
            self.failed.add((step, store))
            self.prove([step])
        elif event == "heal":
            if chance.random() < 0.7:
                self.failed.clear()
            self.prove(steps)
        elif event == "hold":
            verbs.hold(stage.memory["c"], view, "an audit", stage.operator, stage.clock)
        elif event == "lift" and view.state.held:
            verbs.lift(stage.memory["c"], view, view.state.held[0], "done", stage.operator, stage.clock)
        elif event == "quarantine":
            verbs.quarantine(stage.memory["c"], view, stage.sealing(chance.choice(steps)), "odd", stage.operator, stage.clock)
        elif event in ("day", "wait long"):
            stage.wait(hours=25 if event == "day" else 24 * chance.choice([2, 5, 9]))
        elif event == "clock back":
            stage.wait(hours=-1)
        elif event != "nothing":
            self.retention(event)

    def prove(self, steps: list[int]) -> None:
        for store in ("", "a", "c"):
            several = [step for step in steps if store == next((of for at, of in sorted(self.failed) if at == step), "")]
            if several:
                self.stage.prove(*several, failed=store)

    def retention(self, event: str) -> None:
        stage, chance = self.stage, self.chance
        if event == "plan":
            plan = stage.plan().plan
            if plan is not None and plan.name not in self.plans:
                self.plans.append(plan.name)
        elif event == "approve" and self.plans:
            gathered = gather(stage.desk())
            # A plan may be too old by then.
            with contextlib.suppress(UsageError):
                approve_plan(stage.desk(), gathered.view, gathered.moment, self.plans[-1], stage.operator)
        elif event == "run":
            stage.run()
        elif event == "crash":
            method = chance.choice(["put", "delete", "head"])
            store = self.faulty[chance.choice("ac")]
            lost = StoreAmbiguousError("no answer") if method == "put" else StoreUnavailableError("gone")
            (store.after if chance.random() < 0.5 else store.fail)(method, lost)
            stage.run()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_no_history_breaks_a_promise(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed)
    history.play()
    assert history.deleted >= 9, "a history that deletes nothing proves nothing"


def test_a_run_that_does_not_decide_again_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention_work._Worker, "why_not", lambda worker, deletion: ((), ""))
    monkeypatch.setattr(retention_work, "_in_the_way_of_all", lambda gathered, desk: ())
    with pytest.raises(AssertionError, match=r"counted on|under a hold|assert"):
        History(tmp_path, CONTROL_SEED).play()
