"""Which checkpoints are kept, and why. Pure.

A checkpoint is *sound* when it could be restored from copies that fail independently: committed, not quarantined, not written off,
nothing about it failed, its keys live, and enough proved copies apart from each other; and all of that for what it is a difference to.
Rules count sound checkpoints only. What is not sound is never taken for one that is, and where a rule finds none, it keeps all.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from seawall.protect.retention_facts import Copy, Kind, Point, RunFacts
from seawall.protect.retention_settings import RetentionSettings


@dataclass
class Kept:
    """Reasons by sealing. ``protected`` are the sealings that a rule counts on: those must stay restorable."""

    reasons: dict[str, list[str]] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)
    stopped: list[str] = field(default_factory=list)
    """Why nothing may be deleted at all."""

    def add(self, point: Point, reason: str, *, protected: bool = False) -> None:
        """Keep ``point``; said once however many rules say the same."""
        known = self.reasons.setdefault(point.sealing, [])
        if reason not in known:
            known.append(reason)
        if protected:
            self.protected.add(point.sealing)


def counts(copy: Copy, facts: RunFacts, policy: RetentionSettings) -> bool:
    """Whether a copy is proved well enough, right now, in a store that answers."""
    fresh = copy.lapses_at is not None and facts.now < copy.lapses_at
    return copy.answers and not copy.failure and copy.level is not None and copy.level >= policy.level and fresh


def independent_copies(copies: Iterable[Copy], facts: RunFacts, policy: RetentionSettings) -> int:
    """Number of copies that count and can be lost by different events only."""
    apart = {site.id: site.independence for site in facts.sites}
    return len({apart[copy.store] for copy in copies if copy.store in apart and counts(copy, facts, policy)})


def bases_of(point: Point, by_sealing: Mapping[str, Point]) -> list[Point | None]:
    """What ``point`` is a difference to, down to a whole one; None at the end for a base that is not there, or that leads in a circle."""
    chain: list[Point | None] = []
    seen = {point.sealing}
    at = point
    while at.base:
        below = by_sealing.get(at.base)
        if below is None or below.sealing in seen:
            chain.append(None)
            break
        seen.add(below.sealing)
        chain.append(below)
        at = below
    return chain


def frozen(facts: RunFacts) -> dict[str, str]:
    """Sealing → why nothing of it is deleted: a failure that stands freezes the checkpoint, what depends on it, and what it depends on."""
    by_sealing = {point.sealing: point for point in facts.points}
    failed = {
        point.sealing: next(copy.failure for copy in point.copies if copy.failure)
        for point in facts.points
        if not point.written_off and any(copy.failure for copy in point.copies)
    }
    found = dict(failed)
    for point in facts.points:
        chain = [below for below in bases_of(point, by_sealing) if below is not None]
        involved = [point, *chain]
        why = next((failed[each.sealing] for each in involved if each.sealing in failed), None)
        if why is not None:
            for each in involved:
                found.setdefault(each.sealing, why)
    return found


def choose_kept(facts: RunFacts, policy: RetentionSettings) -> Kept:
    """What every rule keeps. The rest may go, as far as :mod:`seawall.protect.retention_plan` lets it."""
    kept = Kept()
    by_sealing = {point.sealing: point for point in facts.points}
    still = frozen(facts)
    checkpoints = sorted((p for p in facts.points if p.kind is Kind.CHECKPOINT), key=lambda p: (p.step, p.order), reverse=True)

    def sound_alone(point: Point) -> bool:
        fit = point.kind is Kind.CHECKPOINT and not point.quarantine and not point.written_off and point.sealing not in still
        return fit and point.keys is True and independent_copies(point.copies, facts, policy) >= policy.min_copies

    def is_sound(point: Point) -> bool:
        return all(each is not None and sound_alone(each) for each in (point, *bases_of(point, by_sealing)))

    sound = {point.sealing for point in checkpoints if is_sound(point)}
    usable = [point for point in checkpoints if not point.quarantine and not point.written_off]
    for sealing, why in still.items():
        kept.add(by_sealing[sealing], f"frozen until it is healed or written off: {why}")
    _last(usable, sound, policy, kept)
    _archived(usable, sound, policy, kept)
    _by_time(usable, sound, facts, policy, kept)
    _best(usable, sound, policy, kept)
    _steps(checkpoints, sound, policy, kept)
    _resumed(usable, sound, kept)
    _older_than_detection(usable, sound, facts, policy, kept)
    _kept_for_a_while(facts, policy, kept)
    for sealing in list(kept.reasons):
        for below in bases_of(by_sealing[sealing], by_sealing):
            if below is not None:
                kept.add(below, f"step {by_sealing[sealing].step} is a difference to it", protected=sealing in kept.protected)
    return kept


def _last(usable: list[Point], sound: set[str], policy: RetentionSettings, kept: Kept) -> None:
    counted = 0
    for point in usable:
        if counted == policy.keep_last:
            return
        if point.sealing in sound:
            counted += 1
            kept.add(point, f"one of the last {policy.keep_last}", protected=True)
        else:
            kept.add(point, "not proved well enough to count, and nothing newer makes up for it")


def _archived(usable: list[Point], sound: set[str], policy: RetentionSettings, kept: Kept) -> None:
    counted = 0
    for point in (point for point in usable if point.archived):
        if counted == policy.keep_archived:
            return
        if point.sealing in sound:
            counted += 1
            kept.add(point, f"one of the last {policy.keep_archived} in the archive", protected=True)
        else:
            kept.add(point, "archived, and not proved well enough to count")


def _time(point: Point, facts: RunFacts) -> datetime | None:
    """When it was stored, as far as that can be believed: a moment that has not come is none."""
    return point.stored_at if point.stored_at is not None and point.stored_at <= facts.now else None


def _by_time(usable: list[Point], sound: set[str], facts: RunFacts, policy: RetentionSettings, kept: Kept) -> None:
    periods: tuple[tuple[str, int, Callable[[datetime], tuple[int, ...]]], ...] = (
        ("day", policy.daily, lambda moment: (moment.year, moment.month, moment.day)),
        ("week", policy.weekly, lambda moment: tuple(moment.isocalendar()[:2])),
        ("month", policy.monthly, lambda moment: (moment.year, moment.month)),
    )
    timed = []
    for point in usable:
        moment = _time(point, facts)
        if moment is None:
            kept.add(point, "nobody knows when it was stored")
        else:
            timed.append((moment, point))
    timed.sort(key=lambda item: (item[0], item[1].step, item[1].order), reverse=True)
    for word, wanted, key_of in periods:
        groups: dict[tuple[int, ...], list[Point]] = {}
        for moment, point in timed:
            groups.setdefault(key_of(moment), []).append(point)
        counted = 0
        for group in groups.values():
            if counted == wanted:
                break
            proved = next((point for point in group if point.sealing in sound), None)
            if proved is not None:
                counted += 1
                kept.add(proved, f"the newest of its {word}", protected=True)
                continue
            for point in group:
                kept.add(point, f"nothing of its {word} is proved well enough")


def _best(usable: list[Point], sound: set[str], policy: RetentionSettings, kept: Kept) -> None:
    ranked = sorted(
        ((point.loss, -point.step, point) for point in usable if point.loss is not None and math.isfinite(point.loss)),
        key=lambda item: item[:2],
    )
    counted = 0
    for _, _, point in ranked:
        if counted == policy.keep_best:
            return
        if point.sealing in sound:
            counted += 1
            kept.add(point, "the lowest loss" if policy.keep_best == 1 else f"one of the {policy.keep_best} lowest losses", protected=True)
        else:
            kept.add(point, "a lower loss than any that is proved well enough")


def _steps(checkpoints: list[Point], sound: set[str], policy: RetentionSettings, kept: Kept) -> None:
    for step in policy.protect_steps:
        of_step = [point for point in checkpoints if point.step == step and not point.written_off]
        for point in of_step:
            kept.add(point, "its step is protected", protected=point.sealing in sound)
        if of_step and not any(point.sealing in sound for point in of_step):
            kept.stopped.append(f"step {step} is protected and has too few proved copies apart from each other")


def _resumed(usable: list[Point], sound: set[str], kept: Kept) -> None:
    resumed = [point for point in usable if point.resumed]
    for point in resumed[:1]:
        kept.add(point, "the newest that training was resumed from", protected=point.sealing in sound)
    for point in [point for point in resumed if point.sealing in sound][:1]:
        kept.add(point, "the newest proved one that training was resumed from", protected=True)


def _older_than_detection(usable: list[Point], sound: set[str], facts: RunFacts, policy: RetentionSettings, kept: Kept) -> None:
    limit = facts.now - policy.detection
    timed = [(moment, point) for point in usable if (moment := _time(point, facts)) is not None]
    old = [item for item in timed if item[0] <= limit and item[1].sealing in sound]
    if old:
        _, point = max(old, key=lambda item: (item[0], item[1].step))
        kept.add(point, f"older than the {policy.detection_days} days that corrupt training may go unnoticed", protected=True)
        return
    young = facts.begun_at is not None and limit < facts.begun_at
    if not young:
        kept.stopped.append(f"no proved checkpoint older than {policy.detection_days} days would remain")
    for several in (timed, [item for item in timed if item[1].sealing in sound]):
        if several:
            _, point = min(several, key=lambda item: (item[0], item[1].step))
            kept.add(point, f"the oldest: the first to be older than {policy.detection_days} days", protected=point.sealing in sound)


def _kept_for_a_while(facts: RunFacts, policy: RetentionSettings, kept: Kept) -> None:
    for point in facts.points:
        days: int | None
        if point.kind is Kind.UNFINISHED:
            days, word = policy.unfinished_days, "not committed"
        elif point.kind is Kind.ORPHAN:
            days, word = policy.orphan_days, "an orphan"
        elif point.written_off:
            continue
        elif point.quarantine:
            days, word = policy.quarantined_days, f"quarantined: {point.quarantine[0]}"
        else:
            continue
        moment = _time(point, facts)
        if days is None:
            kept.add(point, f"{word}; kept as evidence")
        elif moment is None:
            kept.add(point, f"{word}; nobody knows when it was stored")
        elif (facts.now - moment).total_seconds() < days * 86400:
            kept.add(point, f"{word}; kept for {days} days")
