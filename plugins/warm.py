"""What this process keeps of a run between two pages, so that a page costs what it shows.

Every page reads the log's end and the ends of the chains of proofs again, and asks the stores for the newest checkpoints: a constant number
of requests. What is kept is what was folded from log and proofs before. All copies are judged once for a log, its proofs and its settings,
and again after a minute, because verdicts age. Of that only verdicts are kept; sentences and evidence are made for the copies that are
shown.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from seawall.log.floor import Freshness
from seawall.log.state import CommitRecord
from seawall.plugins.earlier import History, made_until
from seawall.verify.cells import MatrixPolicy
from seawall.verify.certify import KnownProofs, read_proofs
from seawall.verify.chain_cache import ChainCache
from seawall.verify.folded_facts import Asked, Received, fold_facts
from seawall.verify.judge import judge
from seawall.verify.levels import Level
from seawall.verify.matrix import Dimension, Row, Verdict
from seawall.verify.matrix_facts import CopyFacts, StoreFacts
from seawall.verify.proofs import Proof
from seawall.verify.recovery import RecoveryDecision, recovery_point

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView

KEPT_RUNS = 4
"""Runs of which this process keeps proofs and verdicts; the one that was asked for longest ago goes first."""
KEPT_FOR = timedelta(minutes=1)
"""How old the verdicts of all copies may be."""
_AT_ONCE = 500
"""Checkpoints that are judged together: bounds the memory for sentences and evidence that nobody looks at."""
_GIVEN = ("freshness", "known", "received", "stores", "silent", "policy", "required")
"""Attributes of facts that can be compared; the log is compared by its digest."""
_PLACE = {dimension: number for number, dimension in enumerate(Dimension)}


@dataclass(frozen=True, slots=True)
class Judged:
    """One copy's verdicts, in the order of the dimensions."""

    commit: CommitRecord
    store: StoreFacts
    verdicts: tuple[Verdict, ...]
    worst: Verdict

    def of(self, dimension: Dimension | None) -> Verdict:
        """Its verdict in one dimension, or its worst."""
        return self.worst if dimension is None else self.verdicts[_PLACE[dimension]]


Rows = Mapping[tuple[str, str], tuple[CopyFacts, Row]]
"""(sealing, store id) → facts and row of a copy."""


@dataclass(frozen=True)
class Facts:
    """All that a run's verdicts rest on but the moment."""

    view: "LogView"
    freshness: Freshness
    known: KnownProofs
    received: Mapping[tuple[str, str], Received]
    """What the stores have of the newest checkpoints, now."""
    stores: tuple[StoreFacts, ...]
    silent: frozenset[str]
    """Ids of the stores that do not answer."""
    policy: MatrixPolicy
    required: Level

    def is_as(self, other: "Facts") -> bool:
        """Whether both give the same verdicts. Proofs that were read before are the same objects, so this is quick."""
        return (
            self.view.digest == other.view.digest
            and self.view.store_id == other.view.store_id
            and all(getattr(self, name) == getattr(other, name) for name in _GIVEN)
        )

    @cached_property
    def asked(self) -> Asked:
        """What is known beside log and proofs, at any time: what stores have now says nothing about earlier."""
        gaps = {verifier: self.known.unknown[verifier] for verifier in self.known.gaps}
        return Asked(fresh=self.freshness is Freshness.PROVED, unknown_verifiers=gaps)

    @cached_property
    def proofs(self) -> Mapping[str, Sequence[Proof]]:
        """By sealing, those about the manifest that was committed."""
        commits = self.view.state.commits
        found: dict[str, list[Proof]] = {}
        for proof in self.known.proofs:
            commit = commits.get(proof.sealing)
            if commit is not None and commit.manifest == proof.manifest:
                found.setdefault(proof.sealing, []).append(proof)
        return found

    @cached_property
    def history(self) -> History:
        """The folded log in time."""
        return History(self.view.state)

    def rows(self, commits: Sequence[CommitRecord], moments: Sequence[datetime], now: datetime) -> list[Rows]:
        """For each of ``moments`` the copies of ``commits`` that there were, judged. From ``now`` on all that is known counts."""
        shown = {commit.sealing for commit in commits}
        needed = self.history.around(shown, self.proofs, min(moments))
        proofs = [proof for commit in needed for proof in self.proofs.get(commit.sealing, ())]
        found: list[Rows] = []
        for moment in moments:
            state = self.history.at(moment, needed) if moment < now else self.history.now(needed)
            known = made_until(proofs, moment) if moment < now else proofs
            asked = self.asked if moment < now else replace(self.asked, received=self.received)
            there = [commit for commit in needed if commit.sealing in shown and commit.sealing in state.commits]
            facts = fold_facts(state, known, self.stores, moment, self.policy.ages, asked, there)
            rows = judge(facts, moment, self.policy).rows
            found.append({(row.sealing, row.store.id): (copy, row) for copy, row in zip(facts.copies, rows, strict=True)})
        return found


@dataclass(frozen=True)
class WarmRun:
    """A run's facts, and all its copies judged at one moment, newest checkpoint first."""

    facts: Facts
    at: datetime
    copies: tuple[Judged, ...]
    recovery: RecoveryDecision

    @cached_property
    def counts(self) -> Mapping[Dimension | None, Mapping[Verdict, int]]:
        """Dimension → how many copies have each verdict in it; under None by the worst of each copy."""
        found: dict[Dimension | None, dict[Verdict, int]] = {key: dict.fromkeys(Verdict, 0) for key in (None, *Dimension)}
        for copy in self.copies:
            found[None][copy.worst] += 1
            for dimension, verdict in zip(Dimension, copy.verdicts, strict=True):
                found[dimension][verdict] += 1
        return found

    def rows(self, shown: Sequence[Judged], moments: Sequence[datetime]) -> list[Rows]:
        """The copies of ``shown``, whole, at each of ``moments``."""
        commits = {copy.commit.sealing: copy.commit for copy in shown}
        return self.facts.rows(list(commits.values()), moments, self.at)


def judge_all(facts: Facts, now: datetime) -> WarmRun:
    """Every copy of the run at ``now``."""
    commits = facts.history.ordered[::-1]
    copies: list[Judged] = []
    for begin in range(0, len(commits), _AT_ONCE):
        (rows,) = facts.rows(commits[begin : begin + _AT_ONCE], [now], now)
        for copy, row in rows.values():
            copies.append(Judged(copy.sealing.commit, copy.store, tuple(cell.verdict for cell in row.cells.values()), row.verdict))
    recovery = recovery_point(facts.view.state, facts.known.proofs, now, facts.policy.ages, facts.required)
    return WarmRun(facts, now, tuple(copies), recovery)


@dataclass
class _Kept:
    """One run of one configuration. The lock makes several pages at once wait for one judging instead of doing each its own."""

    chains: ChainCache
    lock: Lock = field(default_factory=Lock)
    warm: WarmRun | None = None


class WarmRuns:
    """The runs that this process was asked for last."""

    def __init__(self, kept_runs: int = KEPT_RUNS) -> None:
        self._kept_runs = kept_runs
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._lock = Lock()

    def run(self, site: "Site", run: str, problems: list[str]) -> WarmRun:
        """A configured run as it is now. ``problems`` gets the stores that do not answer.

        Raises :class:`~seawall.errors.UsageError` for an unknown run, :class:`~seawall.errors.StoreError` when the coordination store does
        not answer, and what reading a log raises.
        """
        kept = self._slot(site, run)
        with kept.lock:
            facts = _read(site, run, kept.chains, problems)
            now = site.clock.now()
            warm = kept.warm
            if warm is None or not facts.is_as(warm.facts) or not warm.at <= now < warm.at + KEPT_FOR:
                warm = kept.warm = judge_all(facts, now)
            return warm

    def _slot(self, site: "Site", run: str) -> _Kept:
        name = (str(site.path), run)
        with self._lock:
            kept = self._kept.pop(name, None) or _Kept(ChainCache(site.state))
            self._kept[name] = kept
            while len(self._kept) > self._kept_runs:
                self._kept.popitem(last=False)
            return kept


def _read(site: "Site", run: str, chains: ChainCache, problems: list[str]) -> Facts:
    from seawall.cli.copy_table import store_names
    from seawall.cli.judged_run import received_now
    from seawall.cli.store_facts import store_facts

    settings = site.run(run)
    view, report = site.view(run)
    known = read_proofs(site.coordination.store, view, cache=chains)
    stores, places, silent_ids = [], [], []
    for name in settings.copies:
        silent: list[str] = []
        # A store that does not answer has the id that it had when it was last seen, so that its copies keep their proofs.
        (store,) = store_names(site, [name], silent.append)
        stores.append(store_facts(site, run, name, store))
        if silent:
            problems.extend(silent)
            silent_ids.append(store)
        else:
            places.append(site.place(name))
    policy = MatrixPolicy(site.config.verify.policy({store.id: store.medium for store in stores}), site.config.verify.matrix)
    received = received_now(site, view, places, problems.append)
    required = Level.parse(settings.required_level)
    return Facts(view, report.freshness, known, received, tuple(stores), frozenset(silent_ids), policy, required)
