"""``seawall verify``: prove what the copies of a checkpoint are worth, and sign it."""

from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.options import ConfigOption, JsonOption, RecoveryKeyOption, RunArgument
from seawall.cli.output import TransferProgress, emit, say, warn
from seawall.cli.worst import worst_code
from seawall.errors import CorruptError, NoSuchCopyError, StoreError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord
    from seawall.protect.place import Place
    from seawall.vault.inventory import Inventory
    from seawall.verify.check import Damage, Finding
    from seawall.verify.levels import Level

MAX_TENSORS = 100
"""Names in one damage."""
_SHOWN_TENSORS = 8


def verify(
    run: RunArgument,
    step: Annotated[int | None, typer.Option("--step", help="The checkpoint of this step, instead of the newest.", min=0)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every committed checkpoint.")] = False,
    store: Annotated[list[str] | None, typer.Option("--store", help="Only the copy in this store; may be given again.")] = None,
    level: Annotated[str | None, typer.Option("--level", help="L0 to L4; the highest that this host's keys allow by default.")] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Only look: write no proof. Needs no verifier key.")] = False,
    recovery_key: RecoveryKeyOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Check copies by reading them back and sign what was found. L0 to L2 need public keys alone.

    Exit 4 when a copy is damaged, 7 when a store does not answer.
    """
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.cli.spread import spread
    from seawall.verify.certify import certify, proofs_of
    from seawall.verify.check import FAILED

    site = Site(find_config(config), recovery_key=recovery_key)
    names = tuple(store or site.run(run).copies)
    wanted = site.level_to_check(level)
    key = None if unsigned else site.signing_key("verifier")
    view, _ = site.view(run)
    commits = _commits(view, step, every)
    results = []
    proofs = []
    unreachable: dict[str, StoreError] = {}
    for commit in commits:
        for name in names:
            try:
                if name in unreachable:
                    raise unreachable[name]
                place = site.place(name)
                if view.state.is_deleted(commit.sealing, place.id):
                    results.append(_without_findings(commit, name, "deleted", "the log has its tombstone"))
                else:
                    findings = _check(site, view, commit, place, wanted, shown=not json)
                    proofs += proofs_of(findings, commit, place.id, site.clock)
                    results.append(_result(site, view, commit, place, findings))
            except StoreError as error:
                # What was found out about the other copies is worth signing all the same.
                unreachable[name] = error
                results.append(_without_findings(commit, name, "unknown", str(error)))
            if not json:
                _show(results[-1])
    if key is not None and proofs:
        spread(site, certify(site.coordination.store, view, proofs, key, site.clock))
    site.close()
    failed = [result for result in results if result["result"] == FAILED]
    if json:
        emit({"run": run, "signed": key is not None and bool(proofs), "copies": results, "failed": len(failed)})
    elif key is None:
        warn("nothing was signed: this look does not count as proof")
    return worst_code([*([CorruptError.exit_code] if failed else []), *unreachable.values()])


def _commits(view: "LogView", step: int | None, every: bool) -> "list[CommitRecord]":
    commits = sorted(view.state.commits.values(), key=lambda commit: (commit.step, commit.seq))
    if step is not None:
        commits = [commit for commit in commits if commit.step == step]
    elif not every:
        commits = commits[-1:]
    if not commits:
        raise NoSuchCopyError(
            "the run has no such checkpoint",
            where=f"{view.run} step {step}" if step is not None else view.run,
            do="`seawall copies` lists them",
        )
    return commits


def _check(site: "Site", view: "LogView", commit: "CommitRecord", place: "Place", wanted: "Level", shown: bool) -> "list[Finding]":
    from seawall.verify.committed import check_committed

    progress = TransferProgress(shown)
    with progress.phase(f"verifying step {commit.step} in {place.name}", 0):
        return check_committed(
            place.store,
            view,
            commit,
            wanted,
            site.unwrappers,
            scratch=site.scratch,
            transfers=site.config.transfer.transfers,
            progress=progress,
        )


def _result(site: "Site", view: "LogView", commit: "CommitRecord", place: "Place", findings: "list[Finding]") -> dict[str, object]:
    from seawall.cli.file_names import any_inventory
    from seawall.verify.check import FAILED, OK

    proved = [finding.level.name for finding in findings if finding.result == OK]
    failed = [finding for finding in findings if finding.result == FAILED]
    damages = [damage for finding in failed for damage in finding.damages]
    inventory = any_inventory(site, view, commit, place) if damages else None
    return {
        "step": commit.step,
        "sealing": commit.sealing,
        "store": place.name,
        "result": FAILED if failed else OK,
        "level": proved[-1] if proved and not failed else None,
        "levels": {finding.level.name: finding.result for finding in findings},
        "damages": [_damage(damage, commit, place, inventory) for damage in damages],
        "why": "",
    }


def _without_findings(commit: "CommitRecord", name: str, result: str, why: str) -> dict[str, object]:
    """A copy whose store does not answer is neither good nor bad, and one that was deleted is not missed."""
    return {
        "step": commit.step,
        "sealing": commit.sealing,
        "store": name,
        "result": result,
        "level": None,
        "levels": {},
        "damages": [],
        "why": why,
    }


def _damage(damage: "Damage", commit: "CommitRecord", place: "Place", inventory: "Inventory | None") -> dict[str, object]:
    from seawall.cli.file_names import names_in

    file = None if inventory is None else names_in(inventory).get(damage.object)
    tensors = [] if inventory is None or file is None else _tensors_in(damage, commit, place, inventory)
    return {"object": damage.object, "file": file, "records": list(damage.records), "tensors": tensors[:MAX_TENSORS], "why": damage.why}


def _tensors_in(damage: "Damage", commit: "CommitRecord", place: "Place", inventory: "Inventory") -> list[str]:
    """The tensors that have bytes in the damaged records; all of the file's where its frame is damaged, which all records depend on."""
    from seawall.errors import SeawallError
    from seawall.vault.header import HEADER_BYTES, parse_header
    from seawall.vault.identity import sealing_folder

    number = int(damage.object.removeprefix("file-").removesuffix(".sea"))
    whole = inventory.tensors_in(number, 0, inventory.files[number].size)
    if not damage.records:
        return whole
    key = sealing_folder(inventory.run, bytes.fromhex(commit.sealing)) + damage.object
    try:
        chunk = parse_header(place.store.get(key, 0, HEADER_BYTES), key).chunk_bytes
    except SeawallError:
        return whole
    damaged = {name for record in damage.records for name in inventory.tensors_in(number, record * chunk, (record + 1) * chunk)}
    return [name for name in whole if name in damaged]


def _show(result: dict[str, object]) -> None:
    levels = result["levels"]
    assert isinstance(levels, dict)
    found = ", ".join(f"{level} {outcome}" for level, outcome in levels.items()) or f"{result['result']}, {result['why']}"
    say(f"step {result['step']} in {result['store']}: {found}")
    damages = result["damages"]
    assert isinstance(damages, list)
    for damage in damages:
        records = ", ".join(str(number) for number in damage["records"])
        say(f"  {damage['file'] or damage['object']}{' record ' + records if records else ''}: {damage['why']}")
        if damage["tensors"]:
            more = ", …" if len(damage["tensors"]) > _SHOWN_TENSORS else ""
            say(f"    tensors in it: {', '.join(damage['tensors'][:_SHOWN_TENSORS])}{more}")
