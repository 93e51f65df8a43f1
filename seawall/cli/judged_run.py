"""A run judged now: its log, its proofs and what its stores say, as the integrity matrix. For `respond`, `metrics`, and their tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seawall.cli.store_facts import store_facts
from seawall.clock import parse_utc
from seawall.errors import CorruptError, SeawallError, StoreError
from seawall.log.floor import Freshness
from seawall.protect.archive import archived_steps
from seawall.protect.checkpoint_source import read_source
from seawall.protect.fill import has_copy
from seawall.verify.cells import MatrixPolicy
from seawall.verify.certify import read_proofs
from seawall.verify.chain_cache import ChainCache
from seawall.verify.committed import usable_receipt
from seawall.verify.due import newest_commit
from seawall.verify.folded_facts import Asked, Received, fold_facts
from seawall.verify.judge import judge
from seawall.verify.levels import Level
from seawall.verify.matrix import Matrix
from seawall.verify.matrix_facts import Newest
from seawall.verify.receipts import versions_digest
from seawall.verify.recovery import CopyState, RecoveryDecision, copy_states, recovery_point

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.floor import FreshnessReport
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord
    from seawall.protect.place import Place
    from seawall.stores.base import Capabilities

ASKED_CHECKPOINTS = 3
"""Of so many of the newest checkpoints the stores are asked whether they have them; of older ones proofs tell."""


@dataclass(frozen=True)
class JudgedRun:
    """What a run is worth at a moment."""

    view: "LogView"
    report: "FreshnessReport"
    matrix: Matrix
    recovery: RecoveryDecision
    newest_copies: Mapping[str, CopyState]
    """Store id → what its copy of the newest checkpoint is proved to."""
    places: "tuple[Place, ...]"
    """Those of the run's stores that answered."""
    gaps: dict[str, str] = field(default_factory=dict)
    """Verifiers of whose proofs some are missing, and why."""
    silent: dict[str, str] = field(default_factory=dict)
    """Stores of the run that did not answer, by name, and why. The matrix has no row of them."""


def judged_run(site: "Site", run: str, on_problem: Callable[[str], None]) -> JudgedRun:
    """Judge ``run`` now. ``on_problem`` hears of what could not be asked; that is unknown then, and no failure."""
    settings = site.run(run)
    view, report = site.view(run)
    known = read_proofs(site.coordination.store, view, cache=ChainCache(site.state))
    places = []
    silent = {}
    for name in settings.copies:
        try:
            places.append(site.place(name))
        except (StoreError, CorruptError) as error:
            silent[name] = str(error)
            on_problem(f"store {name} is not asked: {error}")
    stores = [store_facts(site, run, place.name, place.id) for place in places]
    now = site.clock.now()
    policy = MatrixPolicy(site.config.verify.policy({store.id: store.medium for store in stores}), site.config.verify.matrix)
    gaps = {verifier: known.unknown[verifier] for verifier in known.gaps}
    asked = Asked(
        received=received_now(site, view, places, on_problem),
        fresh=report.freshness is Freshness.PROVED,
        newest_source=_newest_source(site, run, on_problem),
        unknown_verifiers=gaps,
    )
    facts = fold_facts(view.state, known.proofs, stores, now, policy.ages, asked)
    required = Level.parse(settings.required_level)
    recovery = recovery_point(view.state, known.proofs, now, policy.ages, required)
    newest = newest_commit(view.state)
    copies: Mapping[str, CopyState] = {}
    if newest is not None:
        about = [proof for proof in known.proofs if (proof.sealing, proof.manifest) == (newest.sealing, newest.manifest)]
        copies = copy_states(newest.sealing, about, now, policy.ages)
    return JudgedRun(view, report, judge(facts, now, policy), recovery, copies, tuple(places), gaps, silent)


def received_now(
    site: "Site", view: "LogView", places: "Sequence[Place]", on_problem: Callable[[str], None]
) -> dict[tuple[str, str], Received]:
    """Whether stores have their copies of the newest checkpoints that came to them: one request a copy. The archive gets some only, and its
    labels tell which; of older ones they are believed, until a proof says more."""
    commits = sorted(view.state.commits.values(), key=lambda commit: commit.seq)
    archive = site.run(view.run).archive
    received = {}
    for place in places:
        try:
            came = commits
            if place.name == archive:
                steps = archived_steps(site.coordination.store, view.run)
                came = [commit for commit in commits if commit.step in steps]
                received.update({(commit.sealing, place.id): Received(True) for commit in came[:-ASKED_CHECKPOINTS]})
            for commit in came[-ASKED_CHECKPOINTS:]:
                received[commit.sealing, place.id] = _received(view, place, commit)
        except StoreError as error:
            on_problem(f"store {place.name} does not say what it has: {error}")
    return received


def _received(view: "LogView", place: "Place", commit: "CommitRecord") -> Received:
    # What the store can do is not probed for this: a command that has read or written there has remembered it.
    known: Capabilities | None = getattr(place.store, "known_capabilities", None)
    receipt = usable_receipt(place.store, place.id, view.state, commit) if known is not None and known.versions else None
    if receipt is None:
        return Received(has_copy(place, view.run, bytes.fromhex(commit.sealing)))
    return Received(True, None if receipt.server_time is None else parse_utc(receipt.server_time), versions_digest(receipt.versions))


def _newest_source(site: "Site", run: str, on_problem: Callable[[str], None]) -> Newest | None:
    """The newest finished checkpoint where this host sees training write; None where it sees none."""
    settings = site.run(run)
    if not settings.paths:
        return None
    try:
        folder = site.source_folder(run)
        if not folder.is_dir():
            return None
        source = read_source(str(folder), exclude=settings.exclude, layout=settings.layout, commit_mark=settings.commit_mark)
    except SeawallError as error:
        on_problem(f"where training writes nothing can be told: {error}")
        return None
    return None if source.inspection.step is None else Newest(source.inspection.step, parse_utc(source.saved_at))
