"""``seawall heal``: make damaged copies whole again from what the copies together hold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, RunArgument
from seawall.cli.output import TransferProgress, emit, human_bytes, say, warn
from seawall.cli.worst import worst_code
from seawall.errors import CorruptError, NoSuchCopyError, SeawallError, StoreError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord
    from seawall.protect.heal import Healed
    from seawall.protect.place import Place
    from seawall.vault.signing import SigningKey


def heal(
    run: RunArgument,
    step: Annotated[
        int | None, typer.Option("--step", help="The checkpoint of this step, instead of the newest and all with a failed proof.", min=0)
    ] = None,
    store: Annotated[list[str] | None, typer.Option("--store", help="Only the copy in this store; may be given again.")] = None,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Look at every stored byte of copies, and make what is damaged or missing right from the other copies. Needs no key that opens them.

    Exit 4 when the copies together do not hold it: nothing was overwritten.
    """
    from seawall.cli.config import find_config
    from seawall.cli.expected_copies import expected_copies
    from seawall.cli.site import Site

    site = Site(find_config(config))
    names = tuple(store or site.run(run).copies)
    writer = None if dry_run else site.signing_key("writer")
    view, _ = site.view(run)
    results, problems = [], []
    expected = expected_copies(site, view)
    for commit in _commits(site, view, step):
        for name in names:
            if not store and not expected(commit, name):
                continue
            result, problem = _one(site, view, commit, name, writer, shown=not json)
            results.append(result)
            problems += [problem] if problem is not None else []
            if not json:
                _show(run, result)
    site.close()
    if json:
        emit({"run": run, "status": "dry-run" if dry_run else "done", "copies": results})
    return worst_code([*problems, *(CorruptError.exit_code for result in results if result["unmendable"])])


def _commits(site: "Site", view: "LogView", step: int | None) -> "list[CommitRecord]":
    commits = sorted(view.state.commits.values(), key=lambda commit: (commit.step, commit.seq))
    if step is not None:
        commits = [commit for commit in commits if commit.step == step]
    if not commits:
        raise NoSuchCopyError(
            "the run has no such checkpoint",
            where=f"{view.run} step {step}" if step is not None else view.run,
            do="`seawall copies` lists them",
        )
    if step is not None:
        return commits
    failed = _failed(site, view)
    return [*(commit for commit in commits[:-1] if commit.sealing in failed), commits[-1]]


def _failed(site: "Site", view: "LogView") -> set[str]:
    """Sealings of which a copy's failure stands."""
    from seawall.verify.certify import read_proofs
    from seawall.verify.chain_cache import ChainCache
    from seawall.verify.recovery import copy_states

    known = read_proofs(site.coordination.store, view, cache=ChainCache(site.state))
    now, policy = site.clock.now(), site.config.verify.policy()
    suspects = {proof.sealing for proof in known.failures if proof.sealing in view.state.commits}
    states = {
        sealing: copy_states(sealing, [proof for proof in known.proofs if proof.sealing == sealing], now, policy) for sealing in suspects
    }
    return {sealing for sealing, copies in states.items() if any(copy.failure is not None for copy in copies.values())}


def _one(
    site: "Site", view: "LogView", commit: "CommitRecord", name: str, writer: "SigningKey | None", shown: bool
) -> tuple[dict[str, Any], SeawallError | None]:
    from seawall.protect.heal import HealError
    from seawall.protect.heal import heal as make_whole
    from seawall.protect.respond import Hands, report_unhealed

    hands = Hands(site.coordination.store, site.clock, writer, scratch=site.scratch, transfers=site.config.transfer.transfers)
    result: dict[str, Any] = {"step": commit.step, "sealing": commit.sealing, "store": name, "result": "", "objects": [], "receipt": None}
    result |= {"fetched_bytes": {}, "unmendable": {}, "silent": {}, "incident": None, "why": ""}
    try:
        target = site.place(name)
        if view.state.is_deleted(commit.sealing, target.id):
            return {**result, "result": "deleted", "why": "the log has its tombstone"}, None
        others = _others(site, view, commit, name)
        with TransferProgress(shown).phase(f"reading step {commit.step} in {name}", 0):
            done = make_whole(
                view,
                commit,
                target,
                others,
                coordination=hands.coordination,
                writer=writer,
                clock=site.clock,
                scratch=hands.scratch,
                transfers=hands.transfers,
            )
    except HealError as error:
        if writer is not None:
            result["incident"] = report_unhealed(view, commit.sealing, [target.id], error, hands)
        return {**result, "result": "not healed", "why": str(error)}, error
    except StoreError as error:
        return {**result, "result": "unknown", "why": str(error)}, error
    result |= {"result": _word(done, writer is not None), "objects": _objects(site, view, commit, target, done)}
    result |= {"receipt": None if done.receipt is None else done.receipt.sequence, "unmendable": done.unmendable, "silent": done.silent}
    return {**result, "fetched_bytes": {place: str(count) for place, count in done.fetched_bytes.items()}}, None


def _others(site: "Site", view: "LogView", commit: "CommitRecord", name: str) -> "list[Place]":
    """The run's other copies. A store that does not even tell its id is among them: it may have what is needed, and is asked last."""
    from seawall.protect.place import Place

    answering, silent = [], []
    for other in site.run(view.run).copies:
        if other == name:
            continue
        try:
            place = site.place(other)
        except StoreError:
            silent.append(Place(other, "", site.store(other)))
        else:
            if not view.state.is_deleted(commit.sealing, place.id):
                answering.append(place)
    return [*answering, *silent]


def _word(done: "Healed", wrote: bool) -> str:
    if done.repairs:
        return "healed" if wrote else "would heal"
    return "whole"


def _objects(site: "Site", view: "LogView", commit: "CommitRecord", place: "Place", done: "Healed") -> list[dict[str, Any]]:
    from seawall.cli.file_names import file_names

    names = file_names(site, view, commit, place) if done.repairs else {}
    return [
        {
            "object": repair.object,
            "file": names.get(repair.object),
            "missing": repair.created,
            "records": list(repair.records),
            "sources": list(repair.sources),
        }
        for repair in done.repairs
    ]


def _show(run: str, result: dict[str, Any]) -> None:
    fetched = sum(int(count) for count in result["fetched_bytes"].values())
    read = f", {human_bytes(fetched)} read from other copies" if result["objects"] else ""
    say(f"step {result['step']} in {result['store']}: {result['result']}{read}{': ' + result['why'] if result['why'] else ''}")
    for item in result["objects"]:
        what = f"{item['file'] or item['object']}{' (missing)' if item['missing'] else _records(item['records'])}"
        say(f"  {what}{_from(item['sources'])}")
    for name, why in result["unmendable"].items():
        warn(f"{name}: {why}")
    for name, why in result["silent"].items():
        warn(f"{name} did not answer, and was not needed: {why}")
    if result["incident"]:
        warn(f"this is an incident: record {result['incident']}")
    if result["result"] == "healed":
        say(f"  receipt {result['receipt']}; `seawall verify {run} --step {result['step']} --store {result['store']}` proves it again")


def _records(records: Sequence[int]) -> str:
    if not records:
        return ""
    shown = ", ".join(str(number) for number in records[:8]) + (", …" if len(records) > 8 else "")
    return f" record{'s' if len(records) > 1 else ''} {shown}"


def _from(sources: Sequence[str]) -> str:
    return f" from {', '.join(sources)}" if sources else ""
