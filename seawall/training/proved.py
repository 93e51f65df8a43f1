"""How many copies of a checkpoint on this disk are proved elsewhere, from the run's log and its verifiers' proofs."""

import threading
from collections.abc import Callable, Mapping

from seawall.checkpoint.inspection import Inspection
from seawall.checkpoint.source import commit_mark_digest
from seawall.clock import Clock, SystemClock
from seawall.log.read import LogView, read_log
from seawall.log.state import CommitRecord, RunState
from seawall.protect.planning import MAX_ATTEMPTS
from seawall.stores.base import Store
from seawall.training.mark import MARK
from seawall.training.steps import SavedStep
from seawall.vault.identity import sealing_id
from seawall.vault.signing import PublicKey
from seawall.verify.certify import KnownProofs, read_proofs
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.recovery import copy_states

ProvedCopies = Callable[[SavedStep], int]
"""Number of proved copies of exactly this checkpoint. Raises a ``SeawallError`` when that cannot be found out."""

_SAME_LOOK = 30.0
"""Seconds for which one reading of log and proofs answers: a pruning asks about several steps in a row."""


def proved_copies_of(
    store: Store,
    run: str,
    trust_root: PublicKey,
    *,
    level: Level = Level.L3,
    policy: AgePolicy | None = None,
    fault_domains: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> ProvedCopies:
    """Counts copies at ``level`` or better, by the run's log in its coordination store.

    A copy counts when its proofs are fresh under ``policy``, it has no tombstone, and its checkpoint is neither an orphan nor
    quarantined; while the run is held nothing counts, because nothing may be deleted. With ``fault_domains`` (store id → domain)
    copies in one domain count once, and those in a domain called ``""``, training's own, not at all.
    """
    return _Counter(store, run, trust_root, level, policy or AgePolicy(), fault_domains, clock or SystemClock())


class _Counter:
    def __init__(
        self,
        store: Store,
        run: str,
        trust_root: PublicKey,
        level: Level,
        policy: AgePolicy,
        domains: Mapping[str, str] | None,
        clock: Clock,
    ) -> None:
        self._store = store
        self._run = run
        self._root = trust_root
        self._level = level
        self._policy = policy
        self._domains = domains
        self._clock = clock
        self._lock = threading.Lock()
        self._view: LogView | None = None
        self._proofs = KnownProofs(())
        self._looked = float("-inf")

    def __call__(self, saved: SavedStep) -> int:
        with self._lock:
            view, proofs = self._look()
        state = view.state
        if state.held:
            return 0
        commit = commit_of(state, saved)
        if commit is None or state.quarantine_reasons(commit.sealing):
            return 0
        relevant = [proof for proof in proofs.proofs if proof.manifest == commit.manifest]
        copies = copy_states(commit.sealing, relevant, self._clock.now(), self._policy).values()
        good = {
            copy.store
            for copy in copies
            if copy.level is not None and copy.level >= self._level and not state.is_deleted(commit.sealing, copy.store)
        }
        if self._domains is None:
            return len(good)
        return len({self._domains.get(store, store) for store in good} - {""})

    def _look(self) -> tuple[LogView, KnownProofs]:
        if self._view is None or self._clock.monotonic() - self._looked > _SAME_LOOK:
            view = read_log(self._store, self._run, self._root, self._view)
            self._proofs = read_proofs(self._store, view)
            self._view = view
            self._looked = self._clock.monotonic()
        return self._view, self._proofs


def commit_of(state: RunState, saved: SavedStep) -> CommitRecord | None:
    """The log's newest commit of exactly this checkpoint, or None.

    By the sealing's id, which the commit mark's bytes go into: after a failover or a rollback another checkpoint may have the same
    step, and its copies are not copies of this one. ``IncompleteError`` when the mark is gone.
    """
    mark = bytes.fromhex(commit_mark_digest(Inspection(str(saved.path), "dcp", commit_mark=MARK)))
    found = None
    for attempt in range(MAX_ATTEMPTS):
        commit = state.commits.get(sealing_id(state.run, saved.epoch, saved.step, mark, attempt).hex())
        if commit is None:
            break
        found = commit
    return found
