"""A mirror's copy of a run's log against the coordination store's, entry by entry: all of it, not only its end."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from seawall.log.entries import FIRST_SEQ, entry_key, log_prefix, seq_of_key
from seawall.log.read import LogView, fetch_entry
from seawall.stores.base import Store

_READERS = 8
"""Pairs of requests at once."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a mirror holds. ``incidents`` is empty for one that is merely behind."""

    entries: int
    """Number of its last entry; 0 for none."""
    behind: int
    """Entries that it still lacks, which is normal."""
    incidents: tuple[str, ...]


def _hole(first: int, end: int, last: int) -> str:
    missing = f"entry {first} is" if first == end else f"entries {first} to {end} are"
    return f"{missing} missing, entry {last} is there"


def compare_mirror(source: Store, view: LogView, mirror: Store) -> Comparison:
    """Read both logs whole and compare their bytes. ``view`` was read from ``source``, which has authority.

    Incidents are an entry that differs, a hole, and an entry beyond the end of the source: each says that one of the two
    stores was changed after the fact, or put back to an older state.
    """
    there = sorted(seq for stored in mirror.list(log_prefix(view.run)) if (seq := seq_of_key(stored.key)) is not None)
    last = there[-1] if there else 0
    # A hole is told by its ends: the name of one object may claim any number, and counting up to it would never end.
    incidents = [_hole(before + 1, after - 1, last) for before, after in pairwise((FIRST_SEQ - 1, *there)) if after > before + 1]

    def differs(seq: int) -> str:
        ours, theirs = fetch_entry(source, view.run, seq), fetch_entry(mirror, view.run, seq)
        if ours is None:
            return f"entry {seq} is not in {source.url}"
        return "" if ours == theirs else f"entry {seq} has other bytes than in {source.url} ({entry_key(view.run, seq)})"

    with ThreadPoolExecutor(_READERS, "compare") as pool:
        incidents += [why for why in pool.map(differs, there) if why]
    return Comparison(last, max(0, view.seq - last), tuple(incidents))
