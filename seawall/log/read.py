"""Reading a run's log: from what was folded before to its present end, every entry verified.

An unchanged log costs three requests however long it is: the last known entry (still the same bytes?), the one after
it (still none?), and one listing behind that (no hole?).
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from seawall.errors import BusyError, FreshnessError, NoSuchCopyError, NoSuchObjectError, TrustError
from seawall.log.entries import MAX_ENTRY_BYTES, SignedEntry, entry_key, log_prefix, read_entry, seq_of_key
from seawall.log.fold import fold_all
from seawall.log.identity import identify
from seawall.log.state import RunState
from seawall.stores.base import Store
from seawall.vault import dsse
from seawall.vault.signing import PublicKey

MAX_WINDOW = 32
"""Most entries asked for at once. The window doubles from 1, so that an unchanged log costs one probe and a long one few rounds."""

_MAX_ROUNDS_AT_THE_END = 8
"""How often a hole is looked at again: each time somebody appended two entries between two requests of ours."""


@dataclass(frozen=True, slots=True)
class LogView:
    """A folded log and where it was read from."""

    state: RunState
    store_id: str
    """Id of the store that was read."""
    authoritative: bool = True
    """False when a mirror was read on purpose: then the log may be longer elsewhere."""

    @property
    def run(self) -> str:
        return self.state.run

    @property
    def seq(self) -> int:
        return self.state.seq

    @property
    def digest(self) -> str:
        return self.state.digest

    @property
    def epoch(self) -> int:
        return self.state.epoch


def empty_view(store: Store, run: str, root: PublicKey) -> LogView:
    """The view of a log that does not exist yet, to append its genesis to."""
    log_prefix(run)
    return LogView(RunState(run, root), identify(store))


def read_log(store: Store, run: str, root: PublicKey, start: LogView | None = None, *, mirror: bool = False) -> LogView:
    """The log of ``run`` as ``store`` has it now.

    ``start`` is an earlier view (of this process, or a local snapshot): it saves reading again what the digest of its
    last entry already fixes. It is never believed: if the store has no such entry any more, or another one in its
    place, that is a :class:`FreshnessError`.

    With ``mirror`` the store is read although it is not the coordination store; the view says so.

    ``NoSuchCopyError`` if there is no log; ``TrustError`` for an entry that may not be there and for a store that is
    not the one that the log names; ``CorruptError`` for malformed bytes.
    """
    if start is not None and (start.run != run or start.state.root.raw != root.raw):
        start = None
    if start is None or start.seq == 0:
        view = LogView(RunState(run, root), start.store_id if start else identify(store), not mirror)
    else:
        _check_known_entry(store, start)
        view = LogView(start.state, start.store_id, not mirror)
    view = read_on(store, view)
    if view.seq == 0:
        raise NoSuchCopyError("there is no such run", where=f"{store.url} {log_prefix(run)}", do="`seawall run open` begins one")
    check_authority(view, store.url)
    return view


def check_authority(view: LogView, where: str) -> None:
    """``TrustError`` unless the log was read from the store that it names, or as a mirror on purpose."""
    state = view.state
    if view.authoritative and state.coordination != view.store_id:
        moved = f"entry {state.moved_at} moved it" if state.moved_at else "its genesis says so"
        raise TrustError(
            "this store has no authority over the run's log",
            where=f"{where} {state.run}",
            why=f"this is store {view.store_id}, the log belongs to {state.coordination}: {moved}",
            do="set [coordination] in seawall.toml to the store with that id",
        )


def fetch_entry(store: Store, run: str, seq: int) -> bytes | None:
    """The stored bytes of entry ``seq`` (cut just above the bound, so that a huge object cannot fill memory), or None."""
    try:
        return store.get(entry_key(run, seq), 0, MAX_ENTRY_BYTES + 1)
    except NoSuchObjectError:
        return None


def _check_known_entry(store: Store, start: LogView) -> None:
    data = fetch_entry(store, start.run, start.seq)
    where = f"{store.url} {entry_key(start.run, start.seq)}"
    if data is None:
        raise FreshnessError(
            "the log is shorter than it was",
            where=where,
            why=f"entry {start.seq} was seen before and is not there",
            do="compare with the mirrors; entries are never deleted",
        )
    if dsse.digest(data) != start.digest:
        raise FreshnessError(
            "the log has two histories",
            where=where,
            why=f"entry {start.seq} was seen before with digest {start.digest[:16]}…, it now has {dsse.digest(data)[:16]}…",
            do="compare with the mirrors; entries are never changed",
        )


def read_on(store: Store, view: LogView) -> LogView:
    """``view`` and every entry after it, up to the end."""
    state = view.state
    for _ in range(_MAX_ROUNDS_AT_THE_END):
        state = _to_first_gap(store, state)
        beyond = _entry_beyond(store, state)
        if beyond is None:
            return LogView(state, view.store_id, view.authoritative)
        if fetch_entry(store, state.run, state.seq + 1) is None:
            raise FreshnessError(
                "the log has a hole",
                where=f"{store.url} {entry_key(state.run, state.seq + 1)}",
                why=f"entry {state.seq + 1} is missing and entry {beyond} is there",
                do="bring the entry back from a mirror; entries are never deleted",
            )
    raise BusyError("the end of the log was not found", where=f"{store.url} {log_prefix(state.run)}", why="it grows faster than it is read")


def _to_first_gap(store: Store, state: RunState) -> RunState:
    window = 1

    def fetch(seq: int, run: str = state.run) -> bytes | None:
        return fetch_entry(store, run, seq)

    while True:
        numbers = range(state.seq + 1, state.seq + 1 + window)
        if window == 1:
            found = [fetch(numbers[0])]
        else:
            with ThreadPoolExecutor(min(window, 16)) as pool:
                found = list(pool.map(fetch, numbers))
        entries: list[SignedEntry] = []
        for seq, data in zip(numbers, found, strict=True):
            if data is None:
                break
            entries.append(read_entry(data, where=f"{store.url} {entry_key(state.run, seq)}"))
        state = fold_all(state, entries)
        if len(entries) < window:
            return state
        window = min(2 * window, MAX_WINDOW)


def _entry_beyond(store: Store, state: RunState) -> int | None:
    for stored in store.list(log_prefix(state.run), after=entry_key(state.run, state.seq + 1)):
        seq = seq_of_key(stored.key)
        if seq is not None:
            return seq
    return None
