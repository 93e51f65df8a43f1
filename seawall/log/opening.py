"""Opening a run's log the way every command does: from the local snapshot, compared with the floor and the mirrors."""

from collections.abc import Mapping
from pathlib import Path

from seawall.log.floor import Floor, FreshnessReport, check_freshness, load_floor, raise_floor
from seawall.log.identity import identify
from seawall.log.read import LogView, read_log
from seawall.log.snapshot import load_snapshot, save_snapshot
from seawall.log.state import RunState
from seawall.stores.base import Store
from seawall.vault.signing import PublicKey


def open_log(
    store: Store,
    run: str,
    root: PublicKey,
    state_dir: Path | None = None,
    mirrors: Mapping[str, Store] | None = None,
    *,
    mirror: bool = False,
    store_id: str | None = None,
) -> tuple[LogView, FreshnessReport]:
    """The log of ``run`` in ``store``, and what it was compared with.

    ``store_id`` saves asking the store for an id that the caller has read just now. ``state_dir`` holds this host's
    snapshots and floors; without it nothing is remembered. An unchanged log costs four requests, and about two for each
    of ``mirrors``. With ``mirror``, ``store`` is one itself. Errors: those of :func:`~seawall.log.read.read_log` and
    :func:`~seawall.log.floor.check_freshness`.
    """
    store_id = store_id or identify(store)
    # The floor is taken before the log is read: one that another process raises meanwhile would be a false alarm.
    floor = load_floor(state_dir, run, root) if state_dir else None
    known = load_snapshot(state_dir, run, root, store_id) if state_dir else None
    view = read_log(store, run, root, known or LogView(RunState(run, root), store_id), mirror=mirror)
    if known is not None and (floor is None or floor.seq < known.seq):
        # The snapshot remembers as well as the floor does, and read_log has just held the store against it.
        floor = Floor(known.epoch, known.seq, known.digest)
    report = check_freshness(store, view, floor, mirrors or {})
    if state_dir:
        remember(state_dir, view, known)
    return view, report


def remember(state_dir: Path, view: LogView, known: LogView | None = None) -> None:
    """Raise the floor to ``view`` and keep it for the next process; ``known`` is the snapshot that is kept already.

    A state folder that cannot be written is no reason to stop: the floor then stays where it was.
    """
    try:
        raise_floor(state_dir, view)
    except OSError:
        return
    if known is None or known.digest != view.digest:
        save_snapshot(state_dir, view)
