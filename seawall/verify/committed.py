"""Checking the copy of a checkpoint that the log has: which keys its parts must be signed with comes from the log."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seawall.log.read import LogView
from seawall.log.state import CommitRecord
from seawall.stores.base import Store
from seawall.vault.sealing import Sealing, read_inventory, unlock
from seawall.verify.check import Finding, Progress, Unlocked, check_copy
from seawall.verify.levels import Level

if TYPE_CHECKING:
    from seawall.vault.recipients import Unwrapper


def check_committed(
    store: Store,
    view: LogView,
    commit: CommitRecord,
    up_to: Level,
    unwrappers: "Callable[[], Sequence[Unwrapper]]",
    *,
    scratch: Path | None = None,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
) -> list[Finding]:
    """:func:`~seawall.verify.check.check_copy` for ``commit``'s copy in ``store``. ``unwrappers`` is only asked from L3 on."""
    state = view.state
    rewrappers = state.resolver("operator")

    def open_up(sealing: Sealing) -> Unlocked:
        data_key = unlock(sealing, unwrappers(), rewrappers)
        return Unlocked(data_key, read_inventory(sealing, data_key))

    return check_copy(
        store,
        view.run,
        bytes.fromhex(commit.sealing),
        commit.manifest,
        state.writer_of(commit),
        rewrappers,
        up_to,
        unlock=open_up,
        scratch=scratch,
        transfers=transfers,
        progress=progress,
    )
