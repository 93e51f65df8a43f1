"""A run's log and proofs as they were known at an earlier moment, for the columns of the integrity page. Pure.

A page may not read the whole log, so this goes by the folded state of today: what is later than the moment is left out, by the times that
the signers wrote. A lift is known no earlier than the next entry whose time the fold kept. So a column may look worse than it looked that
day, never better. It is a view for people; the audit's reports read the log itself and are what counts (docs/decisions/0010).
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import cached_property

from seawall.clock import parse_utc
from seawall.log.state import CommitRecord, Mark, RunState
from seawall.verify import evidence
from seawall.verify.evidence import count_of
from seawall.verify.levels import Level
from seawall.verify.proofs import Proof

COUNTS = (evidence.FLOATS, evidence.NONFINITE, evidence.ZEROS, evidence.SATURATED)


def columns(at: datetime, days: int) -> list[datetime]:
    """``days`` moments: midnights (UTC), then ``at`` itself."""
    midnight = datetime.combine(at.astimezone(UTC).date(), time(), UTC)
    return [*(midnight - timedelta(days=back) for back in range(days - 2, -1, -1)), at]


@dataclass(frozen=True)
class History:
    """What the moments of a run's folded log are."""

    state: RunState

    @cached_property
    def ordered(self) -> tuple[CommitRecord, ...]:
        """Commits in the order of their steps."""
        return tuple(sorted(self.state.commits.values(), key=lambda commit: (commit.step, commit.seq)))

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Sealing → its place in ``ordered``."""
        return {commit.sealing: number for number, commit in enumerate(self.ordered)}

    @cached_property
    def _marked(self) -> frozenset[str]:
        """Sealings that were ever quarantined or given up."""
        return frozenset([*(mark.sealing for mark in self.state.marks.values()), *self.state.written_off])

    @cached_property
    def _dated(self) -> list[tuple[int, str]]:
        """Entries whose number and time the fold kept, in the order of the log."""
        state = self.state
        groups = (state.epochs, state.commits, state.orphans, state.marks, state.written_off)
        return sorted((record.seq, record.at) for group in groups for record in group.values())

    def known_since(self, operation: str) -> datetime | None:
        """From when on an entry is surely known; None when no later entry tells."""
        done = self.state.done.get(operation)
        after = len(self._dated) if done is None else bisect_left(self._dated, (done.seq, ""))
        return parse_utc(self._dated[after][1]) if after < len(self._dated) else None

    def around(self, shown: Collection[str], proofs: Mapping[str, Sequence[Proof]], earliest: datetime) -> list[CommitRecord]:
        """The commits of ``shown``, and the earlier ones that the numbers of these are compared with at any moment since ``earliest``.

        Judging these gives what judging the whole run gives, because a checkpoint without counts is compared with nothing.
        """
        found = {self.place[sealing] for sealing in shown}
        seen: set[int] = set()
        for begin in sorted(found):
            for number in range(begin - 1, -1, -1):
                if number in seen:
                    break
                seen.add(number)
                commit = self.ordered[number]
                counted = [proof for proof in proofs.get(commit.sealing, ()) if _has_counts(proof)]
                if counted:
                    found.add(number)
                    if commit.sealing not in self._marked and any(parse_utc(proof.at) <= earliest for proof in counted):
                        break
        return [self.ordered[number] for number in sorted(found)]

    def now(self, commits: Sequence[CommitRecord]) -> RunState:
        """The fold of today with only these commits."""
        return replace(self.state, commits={commit.sealing: commit for commit in commits})

    def at(self, moment: datetime, commits: Sequence[CommitRecord]) -> RunState:
        """The fold with those of ``commits`` that were there at ``moment``, and the marks that stood."""
        state = self.state
        marks = {mark.op: self._mark_at(mark, moment) for mark in state.marks.values() if parse_utc(mark.at) <= moment}
        quarantined: dict[str, tuple[str, ...]] = {}
        for mark in marks.values():
            if mark.sealing and not mark.lifted_by:
                quarantined[mark.sealing] = (*quarantined.get(mark.sealing, ()), mark.op)
        return replace(
            state,
            commits={commit.sealing: commit for commit in commits if committed_at(commit) <= moment},
            marks=marks,
            quarantined=quarantined,
            held=tuple(mark.op for mark in marks.values() if not mark.sealing and not mark.lifted_by),
            written_off={sealing: record for sealing, record in state.written_off.items() if parse_utc(record.at) <= moment},
        )

    def _mark_at(self, mark: Mark, moment: datetime) -> Mark:
        since = self.known_since(mark.lifted_by) if mark.lifted_by else None
        return mark if since is not None and since <= moment else replace(mark, lifted_by="", lifted_why="")


def made_until(proofs: Sequence[Proof], moment: datetime) -> list[Proof]:
    """Those of ``proofs`` that were made until ``moment``."""
    return [proof for proof in proofs if parse_utc(proof.at) <= moment]


def committed_at(commit: CommitRecord) -> datetime:
    """The store's time of a commit's first receipt; the committer's where the store has no clock."""
    return parse_utc(commit.stored_at or commit.at)


def _has_counts(proof: Proof) -> bool:
    return proof.level is Level.L4 and all(count_of(proof.evidence, name) is not None for name in COUNTS)
