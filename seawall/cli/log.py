"""``seawall log``: read, compare and mirror the log of a run. What is appended to it by people is in marks.py and epoch.py."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli import epoch, marks
from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, RunArgument
from seawall.cli.output import emit, say, warn
from seawall.errors import FreshnessError, StoreError, StoreUnavailableError

if TYPE_CHECKING:
    from seawall.log.entries import SignedEntry
    from seawall.log.state import RunState

app = typer.Typer(no_args_is_help=True, help="The log of a run: its one ordered, signed history.")
app.command("quarantine")(marks.quarantine)
app.command("hold")(marks.hold)
app.command("lift")(marks.lift)
app.command("epoch")(epoch.epoch)


@app.command()
def show(
    run: RunArgument,
    last: Annotated[int, typer.Option("--last", help="This many of the newest entries; 0 for all.", min=0)] = 20,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Print the newest entries of a run's log, oldest first, after verifying all of it."""
    from seawall.cli.config import find_config
    from seawall.cli.log_page import entry_document, newest_entries, role_of
    from seawall.cli.site import Site

    site = Site(find_config(config))
    view, report = site.view(run)
    entries = newest_entries(site, view, last or view.seq)
    site.close()
    if json:
        document = {"run": run, "epoch": view.epoch, "entries": view.seq, "digest": view.digest, "freshness": report.freshness.value}
        emit({**document, "shown": [entry_document(view.state, entry) for entry in entries]})
        return 0
    for entry in entries:
        body = entry.entry
        role = role_of(view.state, entry)
        say(f"{body.seq:>6}  {body.at[:19]}Z  epoch {body.epoch}  {body.kind:<11} {role:<11} {_line(view.state, entry)}")
    say(f"{view.seq} entries, epoch {view.epoch}, freshness {report.freshness.value}{': ' + report.why if report.why else ''}")
    return 0


def _line(state: "RunState", signed: "SignedEntry") -> str:
    """What an entry says, in a line. Marks show the operation id that lifts them."""
    from seawall.log import bodies

    match signed.entry.body:
        case bodies.Genesis(store=store):
            return f"the log belongs to store {store[:12]}"
        case bodies.Epoch(number=number, writers=writers, reason=reason):
            return f"epoch {number} for {', '.join(writers) or 'no writer'}: {reason}"
        case bodies.Commit(sealing=sealing, step=step, quarantine=quarantine):
            orphan = state.orphans.get(sealing)
            late = f", orphan: {orphan.orphan}" if orphan is not None and orphan.seq == signed.entry.seq else ""
            mark = f", quarantined: {quarantine} (operation {signed.entry.op})" if quarantine else ""
            return f"step {step}, sealing {sealing[:12]}{mark}{late}"
        case bodies.Quarantine(sealing=sealing, reason=reason):
            return f"sealing {sealing[:12]}: {reason} (operation {signed.entry.op})"
        case bodies.Hold(reason=reason):
            return f"{reason} (operation {signed.entry.op})"
        case bodies.Lift(lifts=lifts, reason=reason):
            return f"operation {lifts}: {reason}"
        case bodies.Tombstone(sealing=sealing, store=store, plan=plan):
            return f"sealing {sealing[:12]} is deleted in store {store[:12]} by plan {plan[:12]}"
        case bodies.Lease(holder=holder, purpose=purpose, taken=taken, until=until):
            return f"{purpose} {'given back' if until == taken else f'until {until[:19]}Z'} by {holder}"
        case bodies.WriteOff(sealing=sealing):
            record = state.written_off.get(sealing)
            who = f" by {' and '.join(signer[:12] for signer in record.signers)}: {record.reason}" if record is not None else ""
            return f"sealing {sealing[:12]} is written off{who}"
        case bodies.ProofHeads(heads=heads):
            return ", ".join(f"verifier {head.verifier[:12]} is at proof {head.seq}" for head in heads)
        case bodies.Move(store=store, reason=reason):
            return f"the log goes on in store {store[:12]}: {reason}"
        case bodies.TrustChange():
            return "the next trust list counts from here on (`seawall keys trust show`)"
        case other:
            return f"{other.kind} is kept without meaning"


@app.command()
def verify(run: RunArgument, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Read the whole log again from every store and compare. Exit 10 when it is older than before or has two histories."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.log.compare import compare_mirror
    from seawall.log.floor import check_floor, load_floor
    from seawall.log.read import read_log

    site = Site(find_config(config))
    site.run(run)
    floor = load_floor(site.state, run, site.trust_root)
    source = site.coordination
    view = read_log(source.store, run, site.trust_root)
    incidents: list[str] = []
    try:
        if floor is not None:
            check_floor(source.store, view, floor)
    except FreshnessError as error:
        incidents.append(f"{source.name}: {error}")
    stores: dict[str, dict[str, Any]] = {source.name: {"entries": view.seq, "behind": 0, "authority": True}}
    unreachable: dict[str, str] = {}
    for name, mirror in site.mirrors(run).items():
        try:
            compared = compare_mirror(source.store, view, mirror)
        except StoreError as error:
            unreachable[name] = str(error)
            continue
        stores[name] = {"entries": compared.entries, "behind": compared.behind, "authority": False}
        incidents += [f"{name}: {why}" for why in compared.incidents]
    if not incidents:
        site.remember(view)
    site.close()
    code = FreshnessError.exit_code if incidents else StoreUnavailableError.exit_code if unreachable else 0
    if json:
        document = {"run": run, "epoch": view.epoch, "entries": view.seq, "digest": view.digest, "floor": floor.seq if floor else None}
        emit({**document, "stores": stores, "unreachable": unreachable, "incidents": incidents, "exit_code": code})
        return code
    for name, facts in stores.items():
        say(f"{name}: {facts['entries']} entries{', the authority' if facts['authority'] else ''}" + _behind(facts["behind"]))
    for name, why in unreachable.items():
        warn(f"{name} was not compared: {why}")
    for incident in incidents:
        say(f"incident: {incident}")
    if incidents:
        say("Stop commits and deletions of this run until it is explained which store was changed.")
    else:
        say(f"the log of {run} holds: {view.seq} entries, epoch {view.epoch}, digest {view.digest}")
    return code


def _behind(count: int) -> str:
    return f", {count} behind" if count else ""


@app.command()
def mirror(run: RunArgument, dry_run: DryRunOption = False, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Copy the entries and proofs that the run's other stores lack, and bring proofs back from them that the coordination store lost.

    Exit 7 when one of the stores cannot be reached, 10 when proofs stay lost.
    """
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.log.mirror import mirror_end, mirror_log
    from seawall.verify.mirror_proofs import BroughtBack, bring_back, mirror_proofs

    site = Site(find_config(config))
    site.run(run)
    view, _ = site.view(run)
    mirrors: dict[str, dict[str, int]] = {}
    unreachable: dict[str, str] = {}
    source = site.coordination.store
    back = BroughtBack() if dry_run else bring_back(source, view, site.mirrors(run))
    for name, other in site.mirrors(run).items():
        try:
            if dry_run:
                end = mirror_end(other, run, view.seq)
                mirrors[name] = {"before": end.seq, "now": end.seq, "copied": 0, "proofs": 0}
            else:
                # Proofs first, so that no mirror's log names one that the mirror lacks.
                proofs = 0 if back.lost else mirror_proofs(source, view, other)
                done = mirror_log(source, view, other)
                mirrors[name] = {"before": done.before, "now": done.now, "copied": done.copied, "proofs": proofs}
        except StoreError as error:
            unreachable[name] = str(error)
    site.close()
    code = FreshnessError.exit_code if back.lost else StoreUnavailableError.exit_code if unreachable else 0
    if json:
        document: dict[str, Any] = {"status": "dry-run" if dry_run else "mirrored", "run": run, "entries": view.seq, "mirrors": mirrors}
        document |= {"proofs_brought_back": back.batches, "proofs_lost": back.lost, "unreachable": unreachable}
        emit({**document, "exit_code": code})
        return code
    if back.batches:
        say(f"{back.batches} batches of proofs were brought back")
    for verifier, why in back.lost.items():
        warn(f"proofs of verifier {verifier} stay lost: {why}")
    for name, facts in mirrors.items():
        copied = f"{facts['copied']} copied, {facts['proofs']} batches of proofs"
        say(f"{name}: {facts['now']} of {view.seq} entries, {copied}" + (" (dry run)" if dry_run else ""))
    for name, why in unreachable.items():
        warn(f"{name} was not reached: {why}")
    return code
