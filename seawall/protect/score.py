"""3-2-1-1-0 of one checkpoint: 3 copies, 2 media, 1 off site, 1 immutable or off line, 0 errors in recovery verification.

The rule is Veeam's extension of 3-2-1. Here each digit is a fact with its evidence and the moment at which it lapses. A copy counts
when every byte of it was read back and agreed within the age that its proofs may have (L2); two copies that one event can take count
as one. Pure.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from seawall.protect.retention_facts import Copy, Point, Site
from seawall.verify.levels import Level

OFFLINE_MEDIA = ("tape",)
"""Media that nobody can write to over a network once they are out of the drive."""


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of the rule."""

    rule: str
    want: int
    have: int
    ok: bool
    evidence: tuple[str, ...]
    """What makes it true, or why it is not."""
    lapses_at: datetime | None
    """When it stops being true if nothing is proved again; None where it is not true."""


@dataclass(frozen=True, slots=True)
class Score:
    """The digits of one checkpoint."""

    sealing: str
    step: int
    digits: tuple[Digit, ...]

    @property
    def ok(self) -> bool:
        """Whether all of 3-2-1-1-0 hold."""
        return all(digit.ok for digit in self.digits)

    @property
    def text(self) -> str:
        """As people write it: what there is, a digit a rule."""
        return "-".join(str(digit.have) for digit in self.digits)

    @property
    def lapses_at(self) -> datetime | None:
        """When the first of them lapses; None when not all hold."""
        return min((digit.lapses_at for digit in self.digits if digit.lapses_at is not None), default=None) if self.ok else None


@dataclass(frozen=True, slots=True)
class _Counted:
    copy: Copy
    site: Site
    lapses_at: datetime


def score(point: Point, sites: Sequence[Site], now: datetime, primary_zone: str = "") -> Score:
    """The digits of ``point`` at ``now``. ``primary_zone`` is where the run trains: copies in other zones are off site."""
    by_id = {site.id: site for site in sites}
    counted = [
        _Counted(copy, by_id[copy.store], copy.lapses_at)
        for copy in point.copies
        if copy.store in by_id and copy.answers and not copy.failure and copy.level is not None and copy.level >= Level.L2
        if copy.lapses_at is not None and now < copy.lapses_at
    ]
    off_site = [each for each in counted if primary_zone and each.site.zone and each.site.zone != primary_zone]
    return Score(
        point.sealing,
        point.step,
        (
            _distinct("copies", 3, counted, lambda site: f"{site.medium} {site.fault_domain}"),
            _distinct("media", 2, counted, lambda site: site.medium),
            _distinct("off site", 1, off_site, lambda site: site.zone),
            _immutable(counted, now),
            _recovery(point, by_id, now),
        ),
    )


def _distinct(rule: str, want: int, counted: Iterable[_Counted], key: Callable[[Site], str]) -> Digit:
    """As many as have different keys; of one key the copy that lapses last."""
    best: dict[str, _Counted] = {}
    for each in counted:
        known = best.get(key(each.site))
        if known is None or each.lapses_at > known.lapses_at:
            best[key(each.site)] = each
    ranked = sorted(best.values(), key=lambda each: each.lapses_at, reverse=True)
    evidence = tuple(f"{each.site.name}: {_level(each.copy)}, {key(each.site).strip()}" for each in ranked)
    ok = len(ranked) >= want
    return Digit(rule, want, len(ranked), ok, evidence or ("no copy counts",), ranked[want - 1].lapses_at if ok else None)


def _level(copy: Copy) -> str:
    return copy.level.name if copy.level is not None else "nothing proved"


def _immutable(counted: Iterable[_Counted], now: datetime) -> Digit:
    found: list[tuple[datetime, str]] = []
    for each in counted:
        if each.site.medium in OFFLINE_MEDIA:
            found.append((each.lapses_at, f"{each.site.name}: {each.site.medium}"))
        elif each.copy.locked_until is not None and now < each.copy.locked_until:
            text = f"{each.site.name}: locked until {each.copy.locked_until:%Y-%m-%dT%H:%M:%SZ}"
            found.append((min(each.lapses_at, each.copy.locked_until), text))
    ok = bool(found)
    evidence = tuple(text for _, text in found) or ("no copy that counts is locked or off line",)
    return Digit("immutable or off line", 1, len(found), ok, evidence, max(moment for moment, _ in found) if ok else None)


def _recovery(point: Point, by_id: dict[str, Site], now: datetime) -> Digit:
    """The 0: a check of the whole structure (L4) or a resumed training (L5) that is fresh, and no failure that stands."""
    failures = [
        f"{by_id[copy.store].name if copy.store in by_id else copy.store[:12]}: {copy.failure}" for copy in point.copies if copy.failure
    ]
    fresh = [
        (copy.lapses_at, copy)
        for copy in point.copies
        if copy.level is not None and copy.level >= Level.L4 and not copy.failure and copy.lapses_at is not None and now < copy.lapses_at
    ]
    if failures:
        return Digit("errors in recovery verification", 0, len(failures), False, tuple(failures), None)
    if not fresh:
        return Digit("errors in recovery verification", 0, 1, False, ("no copy was restored as far as its structure (L4) lately",), None)
    lapses, copy = max(fresh, key=lambda item: item[0])
    name = by_id[copy.store].name if copy.store in by_id else copy.store[:12]
    return Digit("errors in recovery verification", 0, 0, True, (f"{name}: {_level(copy)}",), lapses)
