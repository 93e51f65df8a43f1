"""Making a report: read, fold, and write once, or hold what is there against what comes out now.

A report is the record ``audit/<start>.json`` of its run (docs/spec/log-and-trust.md, section 11), signed by a verifier or an operator.
Making it acts on nothing else, and sends nothing to anybody.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from seawall.audit.history import entries_at, proofs_known, read_entries
from seawall.audit.report import audit
from seawall.audit.terms import SETTLING, Interval, Terms, parse_terms
from seawall.clock import utc_text
from seawall.errors import IncompleteError, NoSuchCopyError, NoSuchObjectError, ObjectExistsError, TrustError
from seawall.log.fold import fold_all
from seawall.log.read import LogView
from seawall.log.records import Record, read_record, sign_record
from seawall.log.state import RunState
from seawall.stores.base import Store
from seawall.vault import canonical
from seawall.vault.canonical import Document
from seawall.vault.signing import PublicKey, SigningKey

KIND = "audit"
WRITTEN = "written"
FOUND = "found"
UNSIGNED = "unsigned"
_NAMED = 5
"""Differences that an error names."""


class AuditDiffersError(TrustError):
    """The report of an interval is there, and log and proofs now give another one: history was added to, taken from, or changed."""


class NoLogYetError(NoSuchCopyError):
    """The run began after the interval's cut: there is nothing to report."""


@dataclass(frozen=True, slots=True)
class Audited:
    """A report, and how it came to be."""

    name: str
    """Of its record."""
    status: str
    """``written`` now, ``found`` with the same content, or ``unsigned``: only looked at."""
    body: Document
    digest: str
    """SHA-256 of the record's stored bytes; empty for one that is not stored."""


def make_report(store: Store, view: LogView, interval: Interval, terms: Terms, key: SigningKey | None, now: datetime) -> Audited:
    """The report of ``interval``. ``store`` is the coordination store; without ``key`` nothing is written.

    A report that is there is made again by its own terms, so that it can be checked when the configuration has changed since. Raises
    :class:`AuditDiffersError` when the outcome is another one, :class:`IncompleteError` before its time, :class:`NoLogYetError` when the
    run had none, :class:`~seawall.errors.FreshnessError` when proofs are missing.
    """
    ready = terms.cut(interval) + SETTLING
    if now < ready:
        raise IncompleteError(
            "the interval is not over for long enough",
            where=f"{view.run} {utc_text(interval.start)} to {utc_text(interval.end)}",
            why="what is proved late still counts, and clocks differ",
            do=f"make its report from {utc_text(ready)} on",
        )
    there = _read(store, view, interval.name)
    if there is not None:
        terms = parse_terms(canonical.object_field(there.body, "terms", where=_where(store, view, interval)), _where(store, view, interval))
    body = _made(store, view, interval, terms)
    if there is None and key is not None:
        try:
            record = sign_record(store, view.run, KIND, interval.name, body, [key])
            return Audited(interval.name, WRITTEN, body, record.digest)
        except ObjectExistsError:
            # Somebody made it at the same moment, perhaps with another key.
            there = _read(store, view, interval.name)
    if there is None:
        return Audited(interval.name, UNSIGNED, body, "")
    differences = list(_differences("", there.body, body))
    if differences:
        more = f", and {len(differences) - _NAMED} more" if len(differences) > _NAMED else ""
        raise AuditDiffersError(
            "the report of this interval cannot be made again",
            where=_where(store, view, interval),
            why=f"in the report and now: {'; '.join(differences[:_NAMED])}{more}",
            do="the signed report stays; compare the log with its mirrors (`seawall log verify`) and find out who was slow, or lied",
        )
    return Audited(interval.name, FOUND, body, there.digest)


def _made(store: Store, view: LogView, interval: Interval, terms: Terms) -> Document:
    entries = read_entries(store, view)
    first, last = (entries_at(entries, side + terms.lateness) for side in (interval.start, interval.end))
    if last == 0:
        raise NoLogYetError("the run had no log yet", where=f"{view.run} {utc_text(terms.cut(interval))}")
    before = fold_all(RunState(view.run, view.state.root), entries[:first])
    state = fold_all(before, entries[first:last])
    return audit(proofs_known(store, view, state), {*before.commits, *before.orphans}, interval, terms)


def _read(store: Store, view: LogView, name: str) -> Record | None:
    try:
        return read_record(store, view.run, KIND, name, _signers(view.state))
    except NoSuchObjectError:
        return None


def _signers(state: RunState) -> Callable[[str], PublicKey | None]:
    """Key id to public key, for keys that may sign a report."""
    resolvers = [state.resolver("verifier"), state.resolver("operator")]

    def resolve(key_id: str) -> PublicKey | None:
        return next((key for resolver in resolvers if (key := resolver(key_id)) is not None), None)

    return resolve


def _where(store: Store, view: LogView, interval: Interval) -> str:
    return f"{store.url} {view.run} {KIND} {interval.name}"


def _differences(at: str, there: object, now: object) -> Iterator[str]:
    """Every place where two documents differ, and how."""
    if isinstance(there, dict) and isinstance(now, dict):
        for name in sorted({*there, *now}):
            yield from _differences(f"{at}.{name}" if at else name, there.get(name), now.get(name))
    elif isinstance(there, list) and isinstance(now, list) and len(there) == len(now):
        for number, (one, other) in enumerate(zip(there, now, strict=True)):
            yield from _differences(f"{at}[{number}]", one, other)
    elif there != now:
        yield f"{at} {_short(there)} and {_short(now)}"


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} items"
    return str(value) if len(str(value)) <= 60 else f"{str(value)[:59]}…"
