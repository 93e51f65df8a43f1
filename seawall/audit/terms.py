"""What an audit is about and what it judges by. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from seawall.clock import parse_utc, utc_text
from seawall.errors import CorruptError, UsageError
from seawall.vault import canonical
from seawall.vault.canonical import Document
from seawall.verify.levels import AgePolicy, Level

LATENESS = timedelta(hours=6)
"""How long after an interval's end a checkpoint of it may be proved and still be in its report. The sync is hourly and what it took is
verified at once, so the last checkpoint of a day is proved two hours after midnight, and there is time for a store that is away."""

SETTLING = timedelta(hours=1)
"""How long after that a report may be made at the earliest. An entry is placed in time by its signer's clock; one that was signed before
the cut has to be in the log by then, so this is the most that a signer's clock may be slow. More is noticed, not repaired."""

DELAY = LATENESS + SETTLING
"""From an interval's end to its report."""


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``start`` to just before ``end``."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise UsageError("an audit needs moments with a time zone", where=f"{self.start} to {self.end}", do="write them in UTC, with Z")
        if self.end <= self.start:
            raise UsageError("an interval ends after it begins", where=f"{self.start} to {self.end}")
        if self.end > datetime.max.replace(tzinfo=UTC) - DELAY:
            raise UsageError("an interval ends before the calendar does", where=f"{self.start} to {self.end}")

    @property
    def name(self) -> str:
        """Of the report's record: the start, and the end where it is no whole day, without the signs that a record's name may not have."""
        start = _name(self.start)
        return start if self.end - self.start == timedelta(days=1) else f"{start}_{_name(self.end)}"


@dataclass(frozen=True, slots=True)
class Terms:
    """What copies are judged by. Part of the report: it says by itself what its verdicts mean."""

    lateness: timedelta = LATENESS
    required: Level = Level.L3
    """What a copy has to be proved to."""
    ages: AgePolicy = field(default_factory=AgePolicy)
    stores: tuple[str, ...] = ()
    """Ids of the stores that each checkpoint should have a copy in."""

    def cut(self, interval: Interval) -> datetime:
        """Up to when log and proofs are read into the report."""
        return interval.end + self.lateness

    def document(self) -> Document:
        """As it stands in the report."""
        return {
            "lateness_seconds": canonical.number(int(self.lateness.total_seconds())),
            "required": self.required.name,
            "stores": sorted(self.stores),
            "max_age_days": _ages(self.ages.max_age_days),
            "max_age_days_of": {medium: _ages(table) for medium, table in sorted(self.ages.per_medium.items())},
            "media": dict(sorted(self.ages.media.items())),
        }


def parse_terms(document: Document, where: str) -> Terms:
    """Back from :meth:`Terms.document`; :class:`CorruptError` for anything else."""
    tables = canonical.object_field(document, "max_age_days_of", where=where)
    media = canonical.object_field(document, "media", where=where)
    stores = canonical.list_field(document, "stores", where=where)
    try:
        terms = Terms(
            timedelta(seconds=canonical.number_field(document, "lateness_seconds", where=where, most=10**9)),
            Level.parse(canonical.text_field(document, "required", where=where)),
            AgePolicy(
                _parse_ages(canonical.object_field(document, "max_age_days", where=where), where),
                {medium: _parse_ages(table, where) for medium, table in tables.items()},
                {canonical.hex_text(store, 16, where=where): str(medium) for store, medium in media.items()},
            ),
            tuple(canonical.hex_text(store, 16, where=where) for store in stores),
        )
    except ValueError as problem:
        raise CorruptError("the terms of an audit cannot be read", where=where, why=str(problem)) from None
    canonical.same_form(canonical.encode(terms.document()), canonical.encode(document), where=where)
    return terms


def parse_moment(text: str) -> datetime:
    """A day (its midnight, UTC) or a moment with its zone, as a person types it; :class:`UsageError` for anything else."""
    try:
        moment = datetime.fromisoformat(text)
        if len(text) == len("2026-03-01"):
            return moment.replace(tzinfo=UTC)
        if moment.tzinfo is None:
            raise UsageError("a moment needs its time zone", where=text, do="write Z at its end for UTC")
        return parse_utc(utc_text(moment))
    except (ValueError, OverflowError) as problem:
        raise UsageError("this is no moment", where=text, why=str(problem), do="write 2026-03-01, or 2026-03-01T06:00:00Z") from None


def audited(start: datetime, end: datetime) -> Interval:
    """The interval that a scheduled run is about whose own interval is ``start`` to ``end``.

    A run is started when its own interval is over; the audited one has to be over for :data:`DELAY` by then.
    """
    return Interval(start - DELAY, end - DELAY)


def last_day(now: datetime) -> Interval:
    """The last day (UTC) that is over for :data:`DELAY` at ``now``."""
    end = (now - DELAY).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Interval(end - timedelta(days=1), end)


def _name(moment: datetime) -> str:
    whole = utc_text(moment).replace(":", "-")
    return whole.replace(".000000Z", "Z")


def _ages(table: Mapping[Level, int]) -> Document:
    return {level.name: canonical.number(days) for level, days in sorted(table.items())}


def _parse_ages(table: Document, where: str) -> dict[Level, int]:
    if not isinstance(table, dict):
        raise CorruptError("a table of ages is no object", where=where)
    return {Level.parse(name): canonical.parse_number(days, where=where, most=10**6) for name, days in table.items()}
