"""Which copies may be deleted now. Pure: facts and policy in, a list with reasons out; nothing is ever named by age, pattern or absence.

DESIGN law 7: nothing goes unless afterwards every protected checkpoint has enough proved copies that fail independently, and one
proved checkpoint is older than the time that corruption may go unnoticed. A hold, something unknown or a break of that rule means no
deletion at all.
What training has in its folder is no fact here: an empty or shrunken source deletes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from seawall.protect.retention_facts import Copy, Kind, Point, RunFacts
from seawall.protect.retention_keep import Kept, bases_of, choose_kept, independent_copies
from seawall.protect.retention_settings import RetentionSettings


@dataclass(frozen=True, slots=True)
class Keep:
    """A sealing that stays."""

    sealing: str
    step: int
    protected: bool
    """A rule counts on it: it must have enough proved copies, before and after."""
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deletion:
    """One copy that goes."""

    sealing: str
    step: int
    store: str
    """Id."""
    kind: Kind
    manifest: str
    reason: str
    nbytes: int = 0

    @property
    def copy(self) -> tuple[str, str]:
        """What it is about: sealing and store."""
        return (self.sealing, self.store)


@dataclass(frozen=True, slots=True)
class Blocked:
    """A copy that no rule keeps and that cannot go now."""

    sealing: str
    step: int
    store: str
    why: str


@dataclass(frozen=True, slots=True)
class RetentionDecision:
    """What stays, what goes, and what stands in the way."""

    stopped: tuple[str, ...]
    """Why nothing at all is deleted; then ``delete`` is empty."""
    keep: tuple[Keep, ...]
    delete: tuple[Deletion, ...]
    blocked: tuple[Blocked, ...] = ()
    later: int = 0
    """Copies that could go and are left to the next plan, because one plan deletes so many only."""


def decide(facts: RunFacts, policy: RetentionSettings) -> RetentionDecision:
    """The copies of ``facts`` that may go now under ``policy``, oldest first, differences before what they are differences to."""
    kept = choose_kept(facts, policy)
    by_sealing = {point.sealing: point for point in facts.points}
    stopped = [f"the run is on hold: {reason}" for reason in facts.holds]
    stopped += [f"unknown: {what}" for what in facts.unknown]
    stopped += kept.stopped
    going, blocked = [], []
    for point in sorted(facts.points, key=lambda point: _turn(point, by_sealing)):
        if point.sealing in kept.reasons:
            continue
        for copy in point.copies:
            why = _in_the_way(copy, facts)
            if why:
                blocked.append(Blocked(point.sealing, point.step, copy.store, why))
            else:
                going.append(Deletion(point.sealing, point.step, copy.store, point.kind, point.manifest, _reason(point), point.nbytes))
    chosen = going[: policy.max_deletions]
    stopped += breaches(facts, policy, kept, chosen)
    keep = tuple(
        Keep(point.sealing, point.step, point.sealing in kept.protected, tuple(kept.reasons[point.sealing]))
        for point in sorted(facts.points, key=lambda point: (point.step, point.order), reverse=True)
        if point.sealing in kept.reasons
    )
    return RetentionDecision(
        tuple(dict.fromkeys(stopped)), keep, () if stopped else tuple(chosen), tuple(blocked), 0 if stopped else len(going) - len(chosen)
    )


def breaches(facts: RunFacts, policy: RetentionSettings, kept: Kept, going: list[Deletion]) -> list[str]:
    """What would be wrong after ``going``: law 7 checked on the outcome, apart from the rules that chose it."""
    after = without(facts, {deletion.copy for deletion in going})
    by_sealing = {point.sealing: point for point in after.points}
    found = [f"step {deletion.step} is kept and would lose a copy" for deletion in going if deletion.sealing in kept.reasons]
    if not going:
        return found
    protected = [point for point in after.points if point.sealing in kept.protected]
    if not protected:
        found.append("no checkpoint is proved well enough to be counted on")
    for point in protected:
        chain = (point, *bases_of(point, by_sealing))
        if any(each is None or independent_copies(each.copies, after, policy) < policy.min_copies for each in chain):
            found.append(f"step {point.step} would have fewer than {policy.min_copies} proved copies apart from each other")
        if any(each is not None and (each.quarantine or each.written_off or each.keys is not True) for each in chain):
            found.append(f"step {point.step} is protected and could not be counted on")
    return found


def without(facts: RunFacts, copies: set[tuple[str, str]]) -> RunFacts:
    """``facts`` after these copies (sealing, store) are gone."""
    points = tuple(
        replace(point, copies=tuple(copy for copy in point.copies if (point.sealing, copy.store) not in copies)) for point in facts.points
    )
    return replace(facts, points=points)


def _turn(point: Point, by_sealing: Mapping[str, Point]) -> tuple[int, int, int, int]:
    """Rubbish first, then the oldest; of a chain of differences the last one first."""
    rubbish = (Kind.UNFINISHED, Kind.ORPHAN, Kind.CHECKPOINT).index(point.kind)
    return (rubbish, -len(bases_of(point, by_sealing)), point.step, point.order)


def _in_the_way(copy: Copy, facts: RunFacts) -> str:
    if not copy.answers:
        return "its store does not answer"
    if copy.locked_until is not None and facts.now < copy.locked_until:
        return f"locked until {copy.locked_until:%Y-%m-%d %H:%M}Z"
    return ""


def _reason(point: Point) -> str:
    if point.kind is Kind.UNFINISHED:
        return "begun and never committed"
    if point.kind is Kind.ORPHAN:
        return "an orphan of a closed epoch"
    if point.written_off:
        return "written off by two people"
    if point.quarantine:
        return f"quarantined, and kept long enough: {point.quarantine[0]}"
    return "no rule keeps it"
