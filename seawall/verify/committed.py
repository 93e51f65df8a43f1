"""Checking the copy of a checkpoint that the log has: which keys its parts must be signed with comes from the log."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seawall.clock import Clock
from seawall.errors import CorruptError, KeyMissingError, NoSuchCopyError, NoSuchObjectError, TrustError
from seawall.log.identity import identify
from seawall.log.read import LogView
from seawall.log.state import CommitRecord, RunState
from seawall.stores.base import Store
from seawall.vault.receipt import Receipt
from seawall.vault.sealing import Sealing, read_inventory, read_sealing, unlock
from seawall.verify.check import Finding, Progress, Unlocked, check_copy
from seawall.verify.levels import Level
from seawall.verify.receipts import newest_receipt, receipt_signers

if TYPE_CHECKING:
    from seawall.vault.recipients import Unwrapper
    from seawall.verify.content_check import Before


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
    store_id: str = "",
    clock: Clock | None = None,
) -> list[Finding]:
    """:func:`~seawall.verify.check.check_copy` for ``commit``'s copy in ``store``. ``unwrappers`` is only asked from L3 on.

    ``store_id`` saves asking the store for its id.
    """
    state = view.state
    rewrappers = state.resolver("operator")

    def open_up(sealing: Sealing) -> Unlocked:
        data_key = unlock(sealing, unwrappers(), rewrappers)
        inventory = read_inventory(sealing, data_key)
        return Unlocked(data_key, inventory, lambda: before_in(store, state, commit, unwrappers()))

    receipt = usable_receipt(store, store_id, state, commit)
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
        versions=receipt.versions if receipt is not None else None,
        whole_at=(receipt.server_time or "") if receipt is not None else "",
        clock=clock,
    )


def usable_receipt(store: Store, store_id: str, state: RunState, commit: CommitRecord) -> Receipt | None:
    """The newest receipt, or None where it cannot be believed: then what the store has now is checked, whatever version it is.

    Without ``store_id`` the store is asked for its id.
    """
    try:
        resolve = receipt_signers(state)
        return newest_receipt(store, store_id or identify(store), state.run, commit.sealing, commit.manifest, resolve)
    except (CorruptError, TrustError):
        return None


def commit_before(state: RunState, commit: CommitRecord) -> CommitRecord | None:
    """The nearest earlier checkpoint that is not quarantined; what it is compared with must be trusted itself."""
    earlier = [
        other
        for other in state.commits.values()
        if (other.step, other.seq) < (commit.step, commit.seq) and not state.quarantine_reasons(other.sealing)
    ]
    return max(earlier, key=lambda other: (other.step, other.seq), default=None)


def before_in(store: Store, state: RunState, commit: CommitRecord, unwrappers: "Sequence[Unwrapper]") -> "Before | None":
    """The state dict of the checkpoint before, from its inventory in the same store; None where it is not there or does not open.

    An inventory without tensors was sealed as plain files, which is no state dict to compare with.
    """
    from seawall.verify.content_check import Before, keys_of

    earlier = commit_before(state, commit)
    if earlier is None:
        return None
    try:
        opened = read_sealing(store, state.run, bytes.fromhex(earlier.sealing), earlier.manifest, state.writer_of(earlier))
        inventory = read_inventory(opened, unlock(opened, unwrappers, state.resolver("operator")))
    except (NoSuchCopyError, NoSuchObjectError, CorruptError, TrustError, KeyMissingError):
        return None
    return Before(earlier.sealing, keys_of(inventory)) if inventory.tensors else None
