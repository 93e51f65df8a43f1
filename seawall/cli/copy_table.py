"""A run's checkpoints and what is proved about each of their copies, as one document: for the command line, and for Airflow's page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seawall.errors import CorruptError, StoreError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.floor import FreshnessReport
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord, RunState
    from seawall.verify.recovery import CopyState


@dataclass(frozen=True)
class CopyTable:
    """``document`` is what ``seawall copies --json`` prints."""

    view: "LogView"
    report: "FreshnessReport"
    commits: "Sequence[CommitRecord]"
    document: dict[str, Any]


def newest_first(state: "RunState") -> "list[CommitRecord]":
    """Every committed checkpoint and every orphan, the highest step first."""
    records = [*state.commits.values(), *state.orphans.values()]
    return sorted(records, key=lambda record: (record.step, record.seq), reverse=True)


def copy_table(
    site: "Site", run: str, choose: "Callable[[RunState], Sequence[CommitRecord]]", on_problem: Callable[[str], None]
) -> CopyTable:
    """Read log and proofs, no copies, and describe the checkpoints that ``choose`` picks. ``on_problem`` hears of stores that do not
    answer."""
    from seawall.verify.certify import read_proofs
    from seawall.verify.chain_cache import ChainCache
    from seawall.verify.levels import Level
    from seawall.verify.recovery import copy_states, recovery_point

    settings = site.run(run)
    view, report = site.view(run)
    state = view.state
    known = read_proofs(site.coordination.store, view, cache=ChainCache(site.state))
    names = store_names(site, list(settings.copies), on_problem)
    media = {store: site.config.stores[name].medium for store, name in names.items()}
    now, policy = site.clock.now(), site.config.verify.policy(media)
    required = Level.parse(settings.required_level)
    decision = recovery_point(state, known.proofs, now, policy, required)
    passed_over = {commit.sealing: why for commit, why in decision.passed_over}
    commits = choose(state)
    by_sealing: dict[str, list[Any]] = {commit.sealing: [] for commit in commits}
    for proof in known.proofs:
        if proof.sealing in by_sealing:
            by_sealing[proof.sealing].append(proof)
    rows = []
    for commit in commits:
        relevant = [proof for proof in by_sealing[commit.sealing] if proof.manifest == commit.manifest]
        states = copy_states(commit.sealing, relevant, now, policy)
        is_point = decision.point is not None and decision.point.commit.sealing == commit.sealing
        rows.append(_row(state, commit, states, names, is_point, passed_over.get(commit.sealing, "")))
    document = {
        "run": run,
        "epoch": view.epoch,
        "freshness": report.freshness.value,
        "required_level": required.name,
        "recovery_point": _point(decision.point, names),
        "held": state.hold_reasons(),
        "unknown_verifiers": known.unknown,
        "checkpoints": rows,
        "total": len(state.commits) + len(state.orphans),
    }
    return CopyTable(view, report, commits, document)


def store_names(site: "Site", configured: list[str], on_problem: Callable[[str], None]) -> dict[str, str]:
    """Store id → configured name. A store that does not answer has the id that it had when it was last seen."""
    from seawall.cli.store_ids import KnownStore, keep_stores, known_stores

    known = known_stores(site)
    names: dict[str, str] = {}
    seen = {}
    for name in configured:
        try:
            place = site.place(name)
        except (StoreError, CorruptError) as error:
            on_problem(f"store {name} cannot be asked for its id: {error}")
            if name in known and known[name].url == site.config.stores[name].url:
                names[known[name].id] = name
            else:
                names[f"?{name}"] = name
            continue
        names[place.id] = name
        seen[name] = KnownStore(site.config.stores[name].url, place.id)
    keep_stores(site, seen)
    return names


def _row(
    state: "RunState", commit: "CommitRecord", states: "dict[str, CopyState]", names: dict[str, str], is_point: bool, why_not: str
) -> dict[str, Any]:
    places = {**names, **{store: f"store {store[:12]}" for store in states if store not in names}}
    return {
        "step": commit.step,
        "sealing": commit.sealing,
        "committed_at": commit.at,
        "stored_at": commit.stored_at,
        "epoch": commit.epoch,
        "recovery_point": is_point,
        "why_not": why_not,
        "orphan": commit.orphan,
        "quarantine": state.quarantine_reasons(commit.sealing),
        "copies": {
            name: _copy(states.get(store), state.is_deleted(commit.sealing, store), store == commit.store) for store, name in places.items()
        },
    }


def _copy(copy: "CopyState | None", deleted: bool, first: bool) -> dict[str, Any]:
    status = "never proved"
    if deleted:
        status = "deleted"
    elif copy is not None:
        status = "failed" if copy.failure is not None else "lapsed" if copy.level is None else "proved"
    failure = copy.failure if copy is not None and status == "failed" else None
    return {
        "state": status,
        "level": copy.level.name if copy is not None and copy.level is not None and not deleted else None,
        "proved_at": copy.proved_at if copy is not None else None,
        "lapses_at": copy.lapses_at.isoformat().replace("+00:00", "Z") if copy is not None and copy.lapses_at is not None else None,
        "failed": {"level": failure.level.name, "at": failure.at, "evidence": dict(failure.evidence)} if failure is not None else None,
        "first": first,
    }


def _point(point: Any, names: dict[str, str]) -> dict[str, Any] | None:
    if point is None:
        return None
    stores = [names.get(store, f"store {store[:12]}") for store in point.stores]
    return {"step": point.commit.step, "sealing": point.commit.sealing, "level": point.level.name, "stores": stores}
