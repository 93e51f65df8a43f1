"""``seawall copies``: which checkpoints are where, what is proved about each copy now, and which one is the recovery point."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, JsonOption, RecoveryKeyOption, RunArgument
from seawall.cli.output import emit, human_bytes, say, warn
from seawall.errors import CorruptError, NoSuchCopyError, SeawallError, StoreError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord, RunState
    from seawall.verify.recovery import CopyState

_NEWEST = 20


def copies(
    run: RunArgument,
    every: Annotated[bool, typer.Option("--all", help="All checkpoints, instead of the newest 20.")] = False,
    step: Annotated[int | None, typer.Option("--step", help="Only the checkpoint of this step.", min=0)] = None,
    files: Annotated[bool, typer.Option("--files", help="With --step: the names and sizes of its files. Needs a key.")] = False,
    recovery_key: RecoveryKeyOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """List a run's checkpoints, newest first, with the level that each copy is proved to now. Reads the log and the proofs, no copies."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.verify.certify import read_proofs
    from seawall.verify.levels import Level
    from seawall.verify.recovery import copy_states, recovery_point

    if files and step is None:
        raise UsageError("--files is about one checkpoint", do="name it with --step")
    site = Site(find_config(config), recovery_key=recovery_key)
    settings = site.run(run)
    view, report = site.view(run)
    state = view.state
    known = read_proofs(site.coordination.store, view)
    names = _store_names(site, list(settings.copies))
    now, policy = site.clock.now(), site.config.verify.policy()
    required = Level.parse(settings.required_level)
    decision = recovery_point(state, known.proofs, now, policy, required)
    passed_over = {commit.sealing: why for commit, why in decision.passed_over}
    chosen = _chosen(state, step, every)
    by_sealing: dict[str, list[Any]] = {commit.sealing: [] for commit in chosen}
    for proof in known.proofs:
        if proof.sealing in by_sealing:
            by_sealing[proof.sealing].append(proof)
    rows = []
    for commit in chosen:
        relevant = [proof for proof in by_sealing[commit.sealing] if proof.manifest == commit.manifest]
        states = copy_states(commit.sealing, relevant, now, policy)
        is_point = decision.point is not None and decision.point.commit.sealing == commit.sealing
        rows.append(_row(state, commit, states, names, is_point, passed_over.get(commit.sealing, "")))
    listed = _files(site, view, chosen) if files else None
    site.close()
    total = len(state.commits) + len(state.orphans)
    if json:
        document: dict[str, Any] = {
            "run": run,
            "epoch": view.epoch,
            "freshness": report.freshness.value,
            "required_level": required.name,
            "recovery_point": _point(decision.point, names),
            "held": state.hold_reasons(),
            "unknown_verifiers": known.unknown,
            "checkpoints": rows,
            "total": total,
        }
        emit(document if listed is None else {**document, "files": listed})
        return 0
    for verifier, why in known.unknown.items():
        warn(f"what verifier {verifier} said is unknown: {why}")
    _show(run, rows, required.name, state, total, step is None)
    for file in listed or ():
        say(f"  {human_bytes(int(file['size'])):>10}  {file['name']}")
    if report.why:
        warn(f"freshness {report.freshness.value}: {report.why}")
    return 0


def _store_names(site: "Site", configured: list[str]) -> dict[str, str]:
    """Store id → configured name. A store that does not answer has the id that it had when it was last seen."""
    from seawall.cli.store_ids import KnownStore, keep_stores, known_stores

    known = known_stores(site)
    names: dict[str, str] = {}
    seen = {}
    for name in configured:
        try:
            place = site.place(name)
        except (StoreError, CorruptError) as error:
            warn(f"store {name} cannot be asked for its id: {error}")
            if name in known and known[name].url == site.config.stores[name].url:
                names[known[name].id] = name
            else:
                names[f"?{name}"] = name
            continue
        names[place.id] = name
        seen[name] = KnownStore(site.config.stores[name].url, place.id)
    keep_stores(site, seen)
    return names


def _chosen(state: "RunState", step: int | None, every: bool) -> "list[CommitRecord]":
    records = [*state.commits.values(), *state.orphans.values()]
    records.sort(key=lambda record: (record.step, record.seq), reverse=True)
    if step is not None:
        records = [record for record in records if record.step == step]
        if not records:
            raise NoSuchCopyError("the run has no such checkpoint", where=f"{state.run} step {step}", do="`seawall copies` lists them")
        return records
    return records if every else records[:_NEWEST]


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


def _files(site: "Site", view: "LogView", commits: "list[CommitRecord]") -> list[dict[str, Any]]:
    """Names and sizes from the inventory of the first copy that opens."""
    from seawall.vault.sealing import read_inventory, read_sealing, unlock

    commit = max(commits, key=lambda commit: (not commit.orphan, commit.seq))
    problem: SeawallError | None = None
    for name in site.run(view.run).copies:
        try:
            store = site.place(name).store
            opened = read_sealing(store, view.run, bytes.fromhex(commit.sealing), commit.manifest, view.state.writer_of(commit))
            inventory = read_inventory(opened, unlock(opened, site.unwrappers(), view.state.resolver("operator")))
        except (StoreError, CorruptError, NoSuchCopyError) as error:
            problem = problem or error
            continue
        return [{"name": file.name, "size": str(file.size), "mode": f"{file.mode & 0o7777:04o}"} for file in inventory.files]
    assert problem is not None, "a run has at least one store"
    raise problem


def _show(run: str, rows: list[dict[str, Any]], required: str, state: "RunState", total: int, summary: bool) -> None:
    for reason in state.hold_reasons():
        say(f"run {run} is on hold: {reason}")
    for row in rows:
        where = ", ".join(f"{name} {_word(copy)}" for name, copy in row["copies"].items())
        mark = "*" if row["recovery_point"] else " "
        say(f"{mark} step {row['step']:>9}  {row['sealing'][:12]}  {row['committed_at'][:19]}Z  {where}")
        if row["orphan"]:
            say(f"      orphan: {row['orphan']}")
        for reason in row["quarantine"]:
            say(f"      quarantined: {reason}")
        if row["why_not"] and not row["quarantine"]:
            say(f"      not the recovery point: {row['why_not']}")
    if not rows:
        say(f"run {run} has no checkpoint yet")
        return
    if summary and total > len(rows):
        say(f"  {total - len(rows)} older ones; --all lists them")
    if any(row["recovery_point"] for row in rows):
        say(f"* the recovery point: newest with a copy proved to {required}")
    elif summary:
        say(f"  no recovery point among these: none has a copy proved to {required}; `seawall verify {run}` proves copies")


def _word(copy: dict[str, Any]) -> str:
    if copy["state"] == "proved":
        return str(copy["level"])
    if copy["state"] == "failed":
        return f"FAILED {copy['failed']['level']}"
    return str(copy["state"])
