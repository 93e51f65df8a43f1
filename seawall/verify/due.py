"""Which copies of a run's newest checkpoint are to be proved now. Pure: log, proofs, policy and a moment decide."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from seawall.clock import parse_utc
from seawall.log.state import CommitRecord, RunState
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.proofs import Proof
from seawall.verify.recovery import copy_states


def newest_commit(state: RunState) -> CommitRecord | None:
    """The committed checkpoint of the highest step; of two of one step, the later commit. None when there is none."""
    return max(state.commits.values(), key=lambda commit: (commit.step, commit.seq), default=None)


def copies_due(
    state: RunState,
    commit: CommitRecord,
    proofs: Sequence[Proof],
    whole: Mapping[str, bool],
    now: datetime,
    policy: AgePolicy,
    wanted: Level,
    every: timedelta,
) -> list[str]:
    """Ids of the stores whose copy of ``commit`` is to be proved to ``wanted``, in the order of ``whole``.

    ``whole`` says of each store (id) whether the copy's receipt is there. A copy that was never proved and has no receipt
    is still being filled: to call it damaged would be wrong. One that was proved before, or the one that was committed, is
    checked whether or not its receipt is there, so that nobody escapes a check by taking the receipt away. What was found
    out less than ``every`` ago, up to ``wanted`` or as a failure, is not looked at again: events may be delivered twice.
    """
    relevant = [proof for proof in proofs if proof.sealing == commit.sealing and proof.manifest == commit.manifest]
    states = copy_states(commit.sealing, relevant, now, policy)
    due = []
    for store, is_whole in whole.items():
        known = states.get(store)
        if state.is_deleted(commit.sealing, store) or (known is None and not is_whole and store != commit.store):
            continue
        if known is not None:
            newest = [parse_utc(proof.at) for proof in relevant if proof.store == store and parse_utc(proof.at) <= now]
            settled = known.failure is not None or (known.level is not None and known.level >= wanted)
            if settled and newest and now - max(newest) < every:
                continue
        due.append(store)
    return due
