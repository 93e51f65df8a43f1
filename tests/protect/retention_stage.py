"""A site whose stores share a clock that a test moves: checkpoints are sealed, proved, planned away and deleted for real."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from seawall.protect.retention import Planned, approve_plan, make_plan, run_plan
from seawall.protect.retention_facts import Site
from seawall.protect.retention_gather import Desk, gather
from seawall.protect.retention_settings import RetentionSettings
from seawall.protect.retention_work import RetentionRun
from seawall.stores.base import Store
from seawall.testing.fake_clock import FakeClock
from seawall.testing.memory import MemoryStore
from seawall.vault.signing import SigningKey
from seawall.verify.certify import certify, proofs_of
from seawall.verify.check import Finding
from seawall.verify.committed import check_committed
from seawall.verify.levels import AgePolicy, Level
from tests.protect.little_site import RUN, LittleSite, write_checkpoint

SETTINGS = RetentionSettings(keep_last=2, daily=0, weekly=0, monthly=0, keep_best=0, detection_days=3)
SECOND = "operator, second"


@dataclass
class Stage:
    """A run of checkpoints in stores ``a`` and ``c``, of which ``c`` coordinates."""

    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    settings: RetentionSettings = SETTINGS
    wrapped: Mapping[str, Store] = field(default_factory=dict)
    """Stores that stand before the real ones."""

    def __post_init__(self) -> None:
        self.memory = {name: MemoryStore(name, self.clock) for name in "ac"}
        self.site = LittleSite(dict(self.memory), clock=self.clock, state=self.folder / "state")
        self.site.keys[SECOND] = SigningKey.generate("operator")
        self.site.open()

    @property
    def operator(self) -> SigningKey:
        return self.site.keys["operator"]

    def desk(self, **changes: object) -> Desk:
        """As an operator's host sees the run, through whatever stands before the stores."""
        self.site.stores = {**self.memory, **self.wrapped}
        places = tuple(self.site.place(name) for name in "ac")
        desk = Desk(
            RUN,
            places[1],
            places,
            tuple(Site(place.id, place.name, place.name, place.name) for place in places),
            lambda: self.site.fresh_view(RUN),
            self.settings,
            AgePolicy(),
            self.clock,
        )
        return replace(desk, **changes)  # type: ignore[arg-type]  # a test may say anything

    def save(self, *steps: int) -> None:
        """Take checkpoints, a day after each other."""
        for step in steps:
            source = write_checkpoint(self.folder / f"step_{step}", step, files={"weights": step.to_bytes(4, "big") * 100})
            self.site.sync(source)
            self.wait(days=1)

    def sealing(self, step: int) -> str:
        """The one committed sealing of a step."""
        (found,) = self.site.view().state.steps[step]
        return found

    def prove(self, *steps: int, failed: str = "") -> None:
        """Check every copy of these steps (or of all) up to L3, and certify what is found. ``failed`` names a store that fails at L2."""
        view = self.site.view()
        for commit in list(view.state.commits.values()):
            if steps and commit.step not in steps:
                continue
            for name, store in self.memory.items():
                place = self.site.place(name)
                if view.state.is_deleted(commit.sealing, place.id):
                    continue
                if name == failed:
                    findings = [Finding(Level.L2, "failed", "read", {})]
                else:
                    findings = check_committed(store, view, commit, Level.L3, lambda: self.site.keyring.keys)
                proofs = proofs_of(findings, commit, place.id, self.clock)
                view = certify(self.site.stores["c"], view, proofs, self.site.keys["verifier"], self.clock)

    def wait(self, **length: float) -> None:
        """Let the stores' clock go on."""
        self.clock.advance(timedelta(**length).total_seconds())

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def plan(self) -> Planned:
        return make_plan(self.desk(), self.operator)

    def approve(self, name: str) -> None:
        gathered = gather(self.desk())
        approve_plan(self.desk(), gathered.view, gathered.moment, name, self.operator)

    def approved(self) -> str:
        """A plan that is approved and has cooled off, with everything proved afresh; its name."""
        self.prove()
        planned = self.plan()
        assert planned.plan is not None, planned.decision
        self.approve(planned.plan.name)
        self.wait(hours=25)
        self.prove()
        return planned.plan.name

    def run(self, name: str | None = None, key: str = "operator") -> RetentionRun:
        return run_plan(self.desk(), name, self.site.keys[key], transfers=2)

    def stored(self, step: int) -> dict[str, set[str]]:
        """Store → names of the objects that it has of a step."""
        folder = f"runs/{RUN}/sealings/{self.sealing(step)}/"
        return {name: {key.removeprefix(folder) for key in store.objects if key.startswith(folder)} for name, store in self.memory.items()}
