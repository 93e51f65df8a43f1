"""Mirrors: the run's log copied, entry by entry and write-once, into other stores.

A mirror that is behind is normal. A mirror that holds other bytes under a number is an incident.
"""

from dataclasses import dataclass

from seawall.errors import FreshnessError, ObjectExistsError, StoreAmbiguousError, StoreUnavailableError
from seawall.log.entries import FIRST_SEQ, NO_ENTRY, entry_key, read_entry
from seawall.log.read import LogView, fetch_entry
from seawall.stores.base import Store
from seawall.vault import dsse


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What one mirror has after :func:`mirror_log`."""

    before: int
    """Last entry that was there before; 0 for none."""
    now: int
    copied: int


@dataclass(frozen=True, slots=True)
class MirrorEnd:
    """The last entry of a mirror; number 0 if it has none."""

    seq: int
    digest: str


def mirror_end(mirror: Store, run: str, hint: int) -> MirrorEnd:
    """The end of ``mirror``'s copy, found from ``hint`` (where the coordination store's log ends).

    Two requests when the mirror is at the hint; otherwise about two per doubling of how far it is away. Entries of a
    mirror are written in order, so the last one without a successor is the end.
    """
    known: dict[int, bytes | None] = {}

    def has(seq: int) -> bool:
        if seq < FIRST_SEQ:
            return True
        if seq not in known:
            known[seq] = fetch_entry(mirror, run, seq)
        return known[seq] is not None

    stride = 1
    low, high = hint, hint + 1
    if has(low):
        while has(high):
            low, high, stride = high, high + 2 * stride, 2 * stride
    else:
        while not has(low):
            low, high, stride = max(low - stride, 0), low, 2 * stride
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if has(middle) else (low, middle)
    data = known.get(low)
    return MirrorEnd(low, dsse.digest(data)) if low >= FIRST_SEQ and data is not None else MirrorEnd(0, NO_ENTRY)


def mirror_log(source: Store, view: LogView, mirror: Store) -> Mirrored:
    """Bring ``mirror`` up to ``view``, which was read from ``source``.

    Nothing is written before the missing entries were read and found to be exactly the ones that ``view`` verified.
    ``FreshnessError`` if the mirror has other bytes for a number, or goes on where the log of ``view`` and of
    ``source`` ends.
    """
    end = mirror_end(mirror, view.run, view.seq)
    check_agrees(source, view, end, mirror.url)
    if end.seq >= view.seq:
        return Mirrored(end.seq, end.seq, 0)
    missing = _verified_entries(source, view, end)
    for offset, data in enumerate(missing):
        _copy(mirror, view.run, end.seq + 1 + offset, data)
    return Mirrored(end.seq, view.seq, len(missing))


def check_agrees(source: Store, view: LogView, end: MirrorEnd, mirror_url: str) -> None:
    """``FreshnessError`` if the end of a mirror is no entry of the log in ``source``."""
    if end.seq == 0 or (end.seq == view.seq and end.digest == view.digest):
        return
    data = fetch_entry(source, view.run, end.seq)
    where = f"{mirror_url} {entry_key(view.run, end.seq)}"
    if data is None:
        raise FreshnessError(
            "a mirror's log goes further than the coordination store's",
            where=where,
            why=f"{source.url} has no entry {end.seq}",
            do="the coordination store lost entries or was put back to an older state; stop commits and deletions, compare both",
        )
    if dsse.digest(data) != end.digest or (end.seq == view.seq and end.digest != view.digest):
        raise FreshnessError(
            "one run has two histories",
            where=where,
            why=f"entry {end.seq} has digest {end.digest[:16]}… here and {dsse.digest(data)[:16]}… in {source.url}",
            do="stop commits and deletions; find out which of the two stores was changed",
        )


def _verified_entries(source: Store, view: LogView, end: MirrorEnd) -> list[bytes]:
    before = end.digest
    entries = []
    for seq in range(end.seq + 1, view.seq + 1):
        data = fetch_entry(source, view.run, seq)
        where = f"{source.url} {entry_key(view.run, seq)}"
        if data is None:
            raise FreshnessError("the log lost an entry while it was mirrored", where=where)
        if read_entry(data, where=where).entry.prev != before:
            raise FreshnessError("the log changed while it was mirrored", where=where, why="an entry does not follow the one before")
        before = dsse.digest(data)
        entries.append(data)
    if before != view.digest:
        raise FreshnessError(
            "the log changed while it was mirrored", where=f"{source.url} {view.run}", why="its end is not what was verified"
        )
    return entries


def _copy(mirror: Store, run: str, seq: int, data: bytes) -> None:
    key = entry_key(run, seq)
    for _ in range(3):
        try:
            mirror.put(key, data)
        except (ObjectExistsError, StoreAmbiguousError, StoreUnavailableError):
            there = fetch_entry(mirror, run, seq)
            if there is None:
                continue
            if there != data:
                raise FreshnessError(
                    "one run has two histories",
                    where=f"{mirror.url} {key}",
                    why=f"the mirror has {dsse.digest(there)[:16]}…, the log {dsse.digest(data)[:16]}…",
                    do="stop commits and deletions; find out which of the two stores was changed",
                ) from None
        return
    raise StoreAmbiguousError("a mirror did not take an entry", where=f"{mirror.url} {key}", do="run it again; entries are written once")
