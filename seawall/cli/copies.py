"""``seawall copies``: which checkpoints are where, what is proved about each copy now, and which one is the recovery point."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, JsonOption, RecoveryKeyOption, RunArgument
from seawall.cli.output import emit, human_bytes, say, warn
from seawall.errors import CorruptError, NoSuchCopyError, SeawallError, StoreError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord, RunState

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
    from seawall.cli.copy_table import copy_table
    from seawall.cli.site import Site

    if files and step is None:
        raise UsageError("--files is about one checkpoint", do="name it with --step")
    site = Site(find_config(config), recovery_key=recovery_key)
    table = copy_table(site, run, lambda state: _chosen(state, step, every), warn)
    document, report = table.document, table.report
    listed = _files(site, table.view, table.commits) if files else None
    site.close()
    if json:
        emit(document if listed is None else {**document, "files": listed})
        return 0
    for verifier, why in document["unknown_verifiers"].items():
        warn(f"what verifier {verifier} said is unknown: {why}")
    _show(run, document["checkpoints"], document["required_level"], table.view.state, document["total"], step is None)
    for file in listed or ():
        say(f"  {human_bytes(int(file['size'])):>10}  {file['name']}")
    if report.why:
        warn(f"freshness {report.freshness.value}: {report.why}")
    return 0


def _chosen(state: "RunState", step: int | None, every: bool) -> "list[CommitRecord]":
    from seawall.cli.copy_table import newest_first

    records = newest_first(state)
    if step is not None:
        records = [record for record in records if record.step == step]
        if not records:
            raise NoSuchCopyError("the run has no such checkpoint", where=f"{state.run} step {step}", do="`seawall copies` lists them")
        return records
    return records if every else records[:_NEWEST]


def _files(site: "Site", view: "LogView", commits: "Sequence[CommitRecord]") -> list[dict[str, Any]]:
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
