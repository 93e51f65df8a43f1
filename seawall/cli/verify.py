"""``seawall verify``: prove what the copies of a checkpoint are worth, and sign it."""

from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.options import ConfigOption, JsonOption, RecoveryKeyOption, RunArgument
from seawall.cli.output import TransferProgress, emit, say, warn
from seawall.cli.worst import worst_code
from seawall.errors import CorruptError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.cli.due_copies import DueCopies
    from seawall.cli.proof_desk import ProofDesk
    from seawall.cli.site import Site
    from seawall.log.state import CommitRecord
    from seawall.protect.place import Place
    from seawall.verify.check import Finding
    from seawall.verify.levels import Level


def verify(
    run: RunArgument,
    step: Annotated[int | None, typer.Option("--step", help="The checkpoint of this step, instead of the newest.", min=0)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every committed checkpoint.")] = False,
    due: Annotated[bool, typer.Option("--due", help="Copies that were not read back for long, the most urgent first.")] = False,
    budget: Annotated[str | None, typer.Option("--budget", help="With --due: stop after so many bytes, such as 2TB.")] = None,
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
    from seawall.cli.chosen_commits import chosen_commits
    from seawall.cli.config import find_config
    from seawall.cli.expected_copies import expected_copies
    from seawall.cli.proof_desk import ProofDesk
    from seawall.cli.site import Site
    from seawall.verify.check import FAILED

    if due and (step is not None or every):
        raise UsageError("--due chooses the copies itself", do="leave out --step and --all")
    if budget is not None and not due:
        raise UsageError("--budget is for --due", do="add --due, or name a checkpoint with --step")
    site = Site(find_config(config), recovery_key=recovery_key)
    names = tuple(store or site.run(run).copies)
    wanted = site.level_to_check(level, warn)
    key = None if unsigned else site.signing_key("verifier")
    view, _ = site.view(run)
    unreachable: dict[str, StoreError] = {}
    planned: DueCopies | None = None
    if due:
        from seawall.cli.due_copies import due_copies

        planned = due_copies(site, view, names, wanted, budget, unreachable)
        work = [(reading.commit, planned.names[reading.store], reading.level) for reading in planned.rotation.readings]
        if not json:
            planned.show()
    else:
        expected = expected_copies(site, view)
        commits = chosen_commits(view, step, every)
        work = [(commit, name, wanted) for commit in commits for name in names if store or expected(commit, name)]
    desk = ProofDesk(site, view, key)
    started = site.clock.monotonic()
    results = _check_all(site, desk, work, unreachable, shown=not json)
    seconds = site.clock.monotonic() - started
    site.close()
    failed = [result for result in results if result["result"] == FAILED]
    if json:
        document = {"run": run, "signed": desk.signed > 0, "copies": results, "failed": len(failed)}
        emit(document if planned is None else {**document, "due": planned.document(seconds)})
    else:
        if planned is not None and results:
            planned.show_outcome(seconds)
        if key is None:
            warn("nothing was signed: this look does not count as proof")
    return worst_code([*([CorruptError.exit_code] if failed else []), *unreachable.values()])


def _check_all(
    site: "Site",
    desk: "ProofDesk",
    work: "Sequence[tuple[CommitRecord, str, Level]]",
    unreachable: dict[str, StoreError],
    shown: bool,
) -> list[dict[str, object]]:
    """Check copy by copy. What was found is signed as it comes, also when something else stops the command."""
    from seawall.cli.copy_results import result_of, show_result, without_findings
    from seawall.verify.certify import proofs_of

    state = desk.view.state
    results: list[dict[str, object]] = []
    try:
        for commit, name, wanted in work:
            try:
                if name in unreachable:
                    raise unreachable[name]
                place = site.place(name)
                if state.is_deleted(commit.sealing, place.id):
                    results.append(without_findings(commit, name, "deleted", "the log has its tombstone"))
                else:
                    findings = _check(site, desk, commit, place, wanted, shown)
                    desk.add(proofs_of(findings, commit, place.id, site.clock))
                    results.append(result_of(site, desk.view, commit, place, findings))
            except StoreError as error:
                # What was found out about the other copies is worth signing all the same.
                unreachable[name] = error
                results.append(without_findings(commit, name, "unknown", str(error)))
            if shown:
                show_result(results[-1])
    finally:
        desk.sign()
    if shown and not work:
        say("nothing is due")
    return results


def _check(site: "Site", desk: "ProofDesk", commit: "CommitRecord", place: "Place", wanted: "Level", shown: bool) -> "list[Finding]":
    from seawall.verify.committed import check_committed

    progress = TransferProgress(shown)
    with progress.phase(f"verifying step {commit.step} in {place.name}", 0):
        return check_committed(
            place.store,
            desk.view,
            commit,
            wanted,
            site.unwrappers,
            scratch=site.scratch,
            transfers=site.config.transfer.transfers,
            progress=progress,
            store_id=place.id,
            clock=site.clock,
        )
