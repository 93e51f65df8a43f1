"""No history leads below the copies that are promised, to a deletion that nobody approved, or to a store that can never be freed.

A small world of checkpoints, copies and proofs is driven by random histories: writing, proving, failing, healing, lapsing, clocks that
jump, plans, approvals, runs that are cut short. What is checked after every deletion is computed here, apart from the planner. Planners
that are broken on purpose are the controls: the same search must find a history for each of them.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall.protect import retention_keep, retention_plan
from seawall.protect.retention_facts import Copy, Kind, Point, RunFacts, Site
from seawall.protect.retention_plan import Deletion, RetentionDecision, decide
from seawall.protect.retention_settings import RetentionSettings
from seawall.verify.levels import Level

BEGUN = datetime(2026, 3, 1, tzinfo=UTC)
SITES = (Site("a", "a", "s3", "x"), Site("b", "b", "s3", "x"), Site("c", "c", "disk", "y"))
POLICY = RetentionSettings(
    keep_last=2, daily=0, weekly=0, monthly=0, keep_best=0, detection_days=3, cooling_off_hours=24, plan_valid_days=7
)
MAX_AGE = timedelta(days=7)
Planner = Callable[[RunFacts, RetentionSettings], RetentionDecision]


class BrokenPromiseError(AssertionError):
    """A deletion that must not have happened."""


@dataclass
class Sealing:
    """A checkpoint of the world."""

    step: int
    stored_at: datetime
    base: str = ""
    quarantined: bool = False
    written_off: bool = False
    key: bool = True
    proved: dict[str, datetime] = field(default_factory=dict)
    """Store → when its copy was last proved to L3."""
    copies: dict[str, bool] = field(default_factory=dict)
    """Store → whether a failure of it stands."""


@dataclass
class World:
    """Everything that retention asks about, and what it did."""

    planner: Planner
    now: datetime = BEGUN
    sealings: dict[str, Sealing] = field(default_factory=dict)
    held: bool = False
    gap: bool = False
    silent: set[str] = field(default_factory=set)
    plan: tuple[datetime, tuple[Deletion, ...]] | None = None
    approved: bool = False
    highest: datetime = BEGUN

    def facts(self) -> RunFacts:
        """As they are gathered from log, proofs and stores."""
        points = []
        for order, (name, sealing) in enumerate(self.sealings.items(), 1):
            copies = tuple(
                Copy(
                    store,
                    None if failed or not self._fresh(sealing, store) else Level.L3,
                    sealing.proved.get(store, BEGUN) + MAX_AGE,
                    failure="L2 failed" if failed else "",
                    answers=store not in self.silent,
                )
                for store, failed in sealing.copies.items()
            )
            points.append(
                Point(
                    name,
                    sealing.step,
                    Kind.CHECKPOINT,
                    order,
                    copies,
                    sealing.stored_at,
                    quarantine=("odd",) if sealing.quarantined else (),
                    written_off=sealing.written_off,
                    base=sealing.base,
                    keys=sealing.key,
                )
            )
        first = min((sealing.stored_at for sealing in self.sealings.values()), default=None)
        unknown = ("the chain has a gap",) if self.gap else ()
        unknown += ("the clock went back",) if self.now < self.highest else ()
        return RunFacts("gpt", self.now, SITES, tuple(points), first, ("audit",) if self.held else (), unknown)

    def _fresh(self, sealing: Sealing, store: str) -> bool:
        return store in sealing.proved and sealing.proved[store] <= self.now < sealing.proved[store] + MAX_AGE

    def safe(self, name: str) -> bool:
        """Whether it could be restored after the loss of any one place. The oracle: nothing of the planner is asked."""
        sealing = self.sealings.get(name)
        if sealing is None or sealing.quarantined or sealing.written_off or not sealing.key or any(sealing.copies.values()):
            return False
        places = {
            ("s3", "x") if store in "ab" else ("disk", "y")
            for store in sealing.copies
            if self._fresh(sealing, store) and store not in self.silent
        }
        return len(places) >= 2 and (not sealing.base or self.safe(sealing.base))

    def delete(self, deletion: Deletion) -> None:
        """One copy goes; every promise is checked against what was true before."""
        if self.plan is None or deletion not in self.plan[1] or not self.approved:
            raise BrokenPromiseError("a copy that nobody approved is deleted")
        if self.now < self.plan[0] + POLICY.cooling_off or self.now > self.plan[0] + POLICY.plan_valid or self.now < self.highest:
            raise BrokenPromiseError("the plan had not cooled off, or was too old")
        if self.held or self.gap:
            raise BrokenPromiseError("something is deleted under a hold, or with proofs missing")
        sealing = self.sealings[deletion.sealing]
        if (sealing.quarantined and not sealing.written_off) or (any(sealing.copies.values()) and not sealing.written_off):
            raise BrokenPromiseError("evidence is deleted")
        safe = [name for name in self.sealings if self.safe(name)]
        newest = sorted(safe, key=lambda name: self.sealings[name].step)[-POLICY.keep_last :]
        needed = {below for name in newest for below in self._chain(name)}
        old = [name for name in safe if self.sealings[name].stored_at <= self.now - POLICY.detection]
        if deletion.sealing in needed or not newest:
            raise BrokenPromiseError("one of the last proved checkpoints is deleted, or there is none")
        if any(name != deletion.sealing and deletion.sealing in self._chain(name) for name in [*newest, *old[-1:]]):
            raise BrokenPromiseError("what a kept checkpoint depends on is deleted")
        del sealing.copies[deletion.store]
        left = [name for name in old if self.safe(name)]
        if old and not left:
            raise BrokenPromiseError("no proved checkpoint older than the detection delay is left")

    def _chain(self, name: str) -> list[str]:
        found = [name]
        while base := (self.sealings[found[-1]].base if found[-1] in self.sealings else ""):
            found.append(base)
        return found

    def run(self, most: int) -> None:
        """Carry the plan out as far as it goes: decided again before every copy, and cut short after ``most``."""
        if self.plan is None or not self.approved or not POLICY.cooling_off <= self.now - self.plan[0] <= POLICY.plan_valid:
            return
        for deletion in self.plan[1][:most]:
            now_going = {fresh.copy for fresh in self.planner(self.facts(), POLICY).delete}
            if deletion.copy in now_going and deletion.store in self.sealings[deletion.sealing].copies:
                self.delete(deletion)


Event = tuple[str, int, str]
EVENT_NAMES = (
    "write", "difference", "prove", "prove all", "fail", "heal", "quarantine", "lift", "hold", "let go", "gap", "no gap", "silence",
    "answer", "lose key", "write off", "wait", "wait long", "clock back", "plan", "approve", "run", "run a little",
)  # fmt: skip
EVENTS = st.tuples(st.sampled_from(EVENT_NAMES), st.integers(0, 9), st.sampled_from(["a", "b", "c"]))


def play(world: World, events: list[Event]) -> World:
    """A history."""
    for what, number, store in events:
        happen(world, what, number, store)
    return world


def happen(world: World, what: str, number: int, store: str) -> None:
    names = list(world.sealings)
    name = names[-1 - number % len(names)] if names else ""
    sealing = world.sealings.get(name)
    if what in ("write", "difference"):
        base = names[-1] if what == "difference" and names else ""
        world.sealings[f"s{len(names)}"] = Sealing(len(names), world.now, base, copies={"a": False, "b": False, "c": False})
    elif what == "plan":
        world.plan, world.approved = (world.now, world.planner(world.facts(), POLICY).delete), False
    elif what == "approve":
        world.approved = world.plan is not None
    elif what in ("run", "run a little"):
        world.run(100 if what == "run" else number % 3)
    elif what in ("hold", "let go"):
        world.held = what == "hold"
    elif what in ("gap", "no gap"):
        world.gap = what == "gap"
    elif what == "silence":
        world.silent.add(store)
    elif what == "answer":
        world.silent.discard(store)
    elif what == "prove all":
        for each in world.sealings.values():
            each.proved.update({place: world.now for place, failed in each.copies.items() if not failed and place not in world.silent})
    elif what.startswith("wait"):
        world.now += timedelta(hours=number * (30 if what == "wait long" else 8))
        world.highest = max(world.highest, world.now)
    elif what == "clock back":
        world.now -= timedelta(hours=number)
    elif sealing is not None:
        change(world, sealing, what, store)


def change(world: World, sealing: Sealing, what: str, store: str) -> None:
    if what == "prove" and sealing.copies.get(store) is False:
        sealing.proved[store] = world.now
    elif what == "fail" and store in sealing.copies:
        sealing.copies[store] = True
    elif what == "heal" and sealing.copies.get(store):
        sealing.copies[store] = False
        sealing.proved[store] = world.now
    elif what in ("quarantine", "lift"):
        sealing.quarantined = what == "quarantine"
    elif what == "lose key":
        sealing.key = False
    elif what == "write off":
        sealing.written_off = True


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EVENTS, max_size=60))
def test_no_history_breaks_a_promise(events: list[Event]) -> None:
    play(World(decide), events)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EVENTS, min_size=1, max_size=40))
def test_every_store_can_be_freed_again(events: list[Event]) -> None:
    """Whatever happened: once everything is healed or written off, proved and old, a plan frees all but what the rules keep."""
    world = play(World(decide), events)
    world.held = world.gap = False
    world.silent.clear()
    for sealing in world.sealings.values():
        sealing.key, sealing.quarantined = True, False
        sealing.written_off = sealing.written_off or any(sealing.copies.values())
    world.now = max(world.now, world.highest) + timedelta(days=1)
    for _ in range(POLICY.keep_last):
        happen(world, "write", 0, "a")
        world.now += timedelta(days=4)
    world.highest = world.now
    for _ in range(2):
        happen(world, "prove all", 0, "a")
        happen(world, "plan", 0, "a")
        happen(world, "approve", 0, "a")
        world.now += timedelta(days=1, hours=1)
        world.highest = world.now
        happen(world, "prove all", 0, "a")
        happen(world, "run", 0, "a")
    left = [name for name, sealing in world.sealings.items() if sealing.copies]
    assert set(left) == set(list(world.sealings)[-POLICY.keep_last :]), left


def everything_not_newest(facts: RunFacts, policy: RetentionSettings) -> RetentionDecision:
    newest = sorted(facts.points, key=lambda point: point.step)[-policy.keep_last :]
    going = [
        Deletion(point.sealing, point.step, copy.store, point.kind, "", "old")
        for point in facts.points
        if point not in newest
        for copy in point.copies
    ]
    return RetentionDecision((), (), tuple(going))


def edited(edit: Callable[[RunFacts], RunFacts]) -> Planner:
    """The real planner on facts from which something was taken away: as if it did not look."""
    return lambda facts, policy: decide(edit(facts), policy)


def each_point(change: Callable[[Point], Point]) -> Planner:
    return edited(lambda facts: replace(facts, points=tuple(change(point) for point in facts.points)))


def each_copy(change: Callable[[Copy], Copy]) -> Planner:
    return each_point(lambda point: replace(point, copies=tuple(change(copy) for copy in point.copies)))


def proved_or_not(copy: Copy) -> Copy:
    level = copy.level or (None if copy.failure else Level.L3)
    return replace(copy, level=level, lapses_at=datetime.max.replace(tzinfo=UTC))


def one_domain_each(facts: RunFacts) -> RunFacts:
    return replace(facts, sites=tuple(replace(site, fault_domain=site.id) for site in facts.sites))


def without_an_older_one(facts: RunFacts, policy: RetentionSettings) -> RetentionDecision:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention_keep, "_older_than_detection", lambda *_: None)
        return decide(facts, policy)


BROKEN: dict[str, Planner] = {
    "keeps the newest, proved or not": everything_not_newest,
    "does not see holds": edited(lambda facts: replace(facts, holds=())),
    "does not see gaps in chains": edited(lambda facts: replace(facts, unknown=())),
    "counts what was never proved": each_copy(proved_or_not),
    "counts stores that do not answer": each_copy(lambda copy: replace(copy, answers=True)),
    "does not see failures": each_copy(lambda copy: replace(copy, failure="")),
    "counts two stores of one fault domain twice": edited(one_domain_each),
    "does not see quarantines": each_point(lambda point: replace(point, quarantine=())),
    "does not ask for keys": each_point(lambda point: replace(point, keys=True)),
    "does not see differences": each_point(lambda point: replace(point, base="")),
    "lets go of the older one": without_an_older_one,
}


class Stubborn(World):
    """Carries a plan out as it was approved, whatever has happened since."""

    def run(self, most: int) -> None:
        if self.plan is not None and self.approved and POLICY.cooling_off <= self.now - self.plan[0] <= POLICY.plan_valid:
            for deletion in self.plan[1]:
                if deletion.store in self.sealings[deletion.sealing].copies:
                    self.delete(deletion)


class Hasty(World):
    """Carries a plan out as soon as it is made."""

    def run(self, most: int) -> None:
        if self.plan is not None:
            for deletion in self.plan[1]:
                if deletion.store in self.sealings[deletion.sealing].copies:
                    self.delete(deletion)


OFTEN = {"write": 4, "prove": 2, "prove all": 5, "wait": 6, "plan": 4, "approve": 5, "run": 5}
NAMES = [name for name in dict.fromkeys(EVENT_NAMES) for _ in range(OFTEN.get(name, 1))]
HISTORIES = 6000
"""So many are tried on a broken planner. The one that is hardest to find out takes some 3,000."""


def found_out(make: Callable[[], World]) -> bool:
    """Whether some random history shows what is wrong. The same histories each time."""
    for seed in range(HISTORIES):
        chance = random.Random(seed)
        events = [(chance.choice(NAMES), chance.randrange(10), chance.choice("abc")) for _ in range(60)]
        try:
            play(make(), events)
        except BrokenPromiseError:
            return True
    return False


def test_no_history_of_those_that_find_broken_planners_breaks_a_promise_of_the_real_one() -> None:
    assert not found_out(lambda: World(decide))


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_planner_is_found_out(name: str) -> None:
    assert found_out(lambda: World(BROKEN[name])), "no history shows what this planner does wrong: the search proves nothing"


@pytest.mark.parametrize("kind", [Stubborn, Hasty])
def test_a_run_that_does_not_decide_again_or_wait_is_found_out(kind: type[World]) -> None:
    assert found_out(lambda: kind(decide))


def test_the_outcome_is_checked_apart_from_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 7 is looked at again on what would be left: a rule that forgets a checkpoint is stopped there."""
    facts = World(decide)
    for _ in range(4):
        happen(facts, "write", 0, "a")
        facts.now += timedelta(days=4)
    happen(facts, "prove all", 0, "a")
    assert decide(facts.facts(), POLICY).delete
    real = retention_keep.choose_kept

    def forgets(facts: RunFacts, policy: RetentionSettings) -> retention_keep.Kept:
        kept = real(facts, policy)
        kept.reasons.pop(next(iter(kept.protected)))
        return kept

    monkeypatch.setattr(retention_plan, "choose_kept", forgets)
    decision = decide(facts.facts(), POLICY)
    assert not decision.delete and any("fewer than 2 proved copies" in why for why in decision.stopped)
