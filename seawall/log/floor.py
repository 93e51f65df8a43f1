"""The freshness floor: a log that is shorter or other than what was seen before is an incident (DESIGN section 4).

A store can be put back to yesterday's snapshot, by an attacker or by an operator in good faith, and every signature in
it still holds. Only memory elsewhere tells: this host's floor file, and the mirrors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from seawall.errors import FreshnessError, StoreError
from seawall.log.entries import entry_key
from seawall.log.local import local_file, locked, read_local, write_local
from seawall.log.mirror import check_agrees, mirror_end
from seawall.log.read import LogView, fetch_entry
from seawall.stores.base import Store
from seawall.vault import dsse
from seawall.vault.signing import PublicKey


class Freshness(Enum):
    """Whether a log was compared with anything but the store it was read from."""

    PROVED = "proved"
    """The coordination store's log is not behind the local floor or any reachable mirror, and there was at least one of them."""
    UNPROVED = "unproved"
    """Read from one store alone, or from a mirror: it may be an old state."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The highest entry of a run that was ever seen."""

    epoch: int
    seq: int
    digest: str


@dataclass(frozen=True, slots=True)
class FreshnessReport:
    """What the log was compared with."""

    freshness: Freshness
    compared: tuple[str, ...] = ()
    """``local`` and the names of mirrors."""
    behind: tuple[str, ...] = ()
    """Mirrors that lack entries, which is normal."""
    unreachable: tuple[str, ...] = ()
    why: str = ""
    """Why freshness is unproved; empty otherwise."""


def load_floor(state_dir: Path, run: str, root: PublicKey) -> Floor | None:
    """The floor that this host remembers; None if there is none, or its file is damaged."""
    content = read_local(local_file(state_dir, "floors", run, root))
    if content is None:
        return None
    try:
        return Floor(int(content["epoch"]), int(content["seq"]), str(content["digest"]))
    except (KeyError, TypeError, ValueError):
        return None


def raise_floor(state_dir: Path, view: LogView) -> Floor:
    """Remember ``view`` if it is the highest; the floor never goes down. ``OSError`` if it cannot be written."""
    known = load_floor(state_dir, view.run, view.state.root)
    if known is not None and known.seq >= view.seq:
        return known
    path = local_file(state_dir, "floors", view.run, view.state.root)
    with locked(path):
        # Another process may have raised it since.
        known = load_floor(state_dir, view.run, view.state.root)
        if known is not None and known.seq >= view.seq:
            return known
        write_local(path, {"epoch": view.epoch, "seq": view.seq, "digest": view.digest})
    return Floor(view.epoch, view.seq, view.digest)


def check_floor(store: Store, view: LogView, floor: Floor) -> None:
    """``FreshnessError`` if ``view``, read from ``store``, is below ``floor`` or of another history."""
    where = f"{store.url} {entry_key(view.run, floor.seq)}"
    if view.seq < floor.seq or view.epoch < floor.epoch:
        raise FreshnessError(
            "the log is older than what this host has seen",
            where=where,
            why=f"it ends at entry {view.seq} of epoch {view.epoch}, entry {floor.seq} of epoch {floor.epoch} was there",
            do="the store was put back to an older state, or it is another store; stop and compare with the mirrors",
        )
    if view.seq == floor.seq:
        found: str | None = view.digest
    else:
        data = fetch_entry(store, view.run, floor.seq)
        found = None if data is None else dsse.digest(data)
    if found != floor.digest:
        raise FreshnessError(
            "one run has two histories",
            where=where,
            why=f"entry {floor.seq} had digest {floor.digest[:16]}…, it now has {found[:16] + '…' if found else 'none'}",
            do="stop commits and deletions; compare with the mirrors",
        )


def check_freshness(store: Store, view: LogView, floor: Floor | None, mirrors: Mapping[str, Store]) -> FreshnessReport:
    """Compare ``view``, read from ``store``, with this host's memory and every mirror that answers.

    ``FreshnessError`` when the log is below the floor, or a mirror goes further or has other bytes for a number.
    A mirror that does not answer, or is behind, is reported and no more.
    """
    compared: list[str] = []
    behind: list[str] = []
    unreachable: list[str] = []
    if floor is not None and (view.authoritative or view.seq >= floor.seq):
        check_floor(store, view, floor)
        compared.append("local")
    for name, mirror in mirrors.items():
        try:
            end = mirror_end(mirror, view.run, view.seq)
        except StoreError:
            unreachable.append(name)
            continue
        if end.seq == 0:
            behind.append(name)
            continue
        check_agrees(store, view, end, mirror.url)
        compared.append(name)
        if end.seq < view.seq:
            behind.append(name)
    why = ""
    if not view.authoritative:
        why = "the log was read from a mirror; the coordination store may have gone on"
        if floor is not None and view.seq < floor.seq:
            why = f"the mirror ends at entry {view.seq}, this host has seen entry {floor.seq}"
    elif not compared:
        why = "nothing but the store itself was there to compare with"
    return FreshnessReport(Freshness.UNPROVED if why else Freshness.PROVED, tuple(compared), tuple(behind), tuple(unreachable), why)
