"""``seawall restore``: rebuild a checkpoint, one of its files, or a range of one, from a copy."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, RecoveryKeyOption, RunArgument
from seawall.cli.output import TransferProgress, emit, human_bytes, say, warn
from seawall.errors import SeawallError, StoreError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.protect.choose import Chosen
    from seawall.protect.from_copies import OpenedCopy
    from seawall.protect.place import Place
    from seawall.verify.levels import Level


def restore(
    run: RunArgument,
    target: Annotated[Path, typer.Argument(help="A path that does not exist; with --file '-' is standard output.")],
    step: Annotated[int | None, typer.Option("--step", help="Exactly this step.", min=0)] = None,
    nearest: Annotated[int | None, typer.Option("--nearest", help="The recovery point at or below this step.", min=0)] = None,
    level: Annotated[
        str | None, typer.Option("--level", help="Newest checkpoint proved at least to this, instead of the run's level.")
    ] = None,
    unproved: Annotated[bool, typer.Option("--unproved", help="The newest committed one, although nothing is proved about it.")] = False,
    quarantined: Annotated[bool, typer.Option("--quarantined", help="Take it although it is quarantined.")] = False,
    store: Annotated[str | None, typer.Option("--store", help="Restore from this store; name, or with --trust-root a URL.")] = None,
    file: Annotated[str | None, typer.Option("--file", help="Only this file.")] = None,
    range_: Annotated[str | None, typer.Option("--range", help="START:LENGTH in bytes of --file; only its records are read.")] = None,
    trust_root: Annotated[str | None, typer.Option("--trust-root", help="ed25519:…; then no seawall.toml is needed.")] = None,
    endpoint: Annotated[str | None, typer.Option("--endpoint", help="S3 server of a --store given by URL.")] = None,
    keyring: Annotated[Path | None, typer.Option("--keyring", help="Keyring file, with --trust-root.")] = None,
    recovery_key: RecoveryKeyOption = None,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Rebuild a checkpoint byte for byte: the newest that is proved to the run's level, unless another is named.

    With --store URL, --trust-root and a key, nothing else is needed: a lost site restores from one store.
    """
    from seawall.cli.site import alone, found_site
    from seawall.protect.choose import Wanted, choose
    from seawall.protect.from_copies import soonest_first
    from seawall.verify.certify import read_proofs
    from seawall.verify.chain_cache import ChainCache

    wanted = Wanted(step, nearest, quarantined, unproved)
    site = alone(run, trust_root, store, endpoint, keyring, recovery_key) if trust_root else found_site(config, recovery_key)
    view, report = site.view(run)
    if report.why:
        warn(f"freshness {report.freshness.value}: {report.why}")
    # A lost site has no folder of its own to remember anything in.
    known = read_proofs(site.coordination.store, view, cache=None if trust_root else ChainCache(site.state))
    for verifier, why in known.unknown.items():
        warn(f"what verifier {verifier} said is unknown: {why}")
    names = [store] if store and not trust_root else list(site.run(run).copies)
    places = _reachable(site, names)
    required = _level(level or site.run(run).required_level)
    policy = site.config.verify.policy({place.id: site.config.stores[place.name].medium for place in places})
    chosen = choose(view.state, known.proofs, [place.id for place in places], site.clock.now(), policy, required, wanted)
    for warning in chosen.warnings:
        warn(warning)
    if dry_run:
        document = _document(chosen, places, report.freshness.value)
        emit(document) if json else say(f"would restore step {chosen.commit.step} from {document['store']}")
        return 0
    order = soonest_first(sorted((p for p in places if p.id in chosen.stores), key=lambda place: chosen.stores.index(place.id)))
    for place in order[:1]:
        if place.retrieval:
            warn(f"objects are recalled from {place.name} first, which is said to take {place.retrieval}")
    document = _from_first_good(site, view, chosen, order, target, file, range_, json)
    document["freshness"] = report.freshness.value
    site.close()
    if json and str(target) != "-":
        emit(document)
    elif str(target) != "-":
        nbytes = human_bytes(int(str(document["plaintext_bytes"])))
        say(f"restored step {chosen.commit.step} from {document['store']}: {document['files']} files, {nbytes}, in {target}")
        say(f"  freshness {report.freshness.value}")
    return 0


def _level(text: str) -> "Level":
    from seawall.verify.levels import Level

    try:
        return Level.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _reachable(site: "Site", names: list[str]) -> "list[Place]":
    places, problem = [], None
    for name in names:
        try:
            places.append(site.place(name))
        except StoreError as error:
            warn(f"store {name} is passed over: {error}")
            problem = error
    if not places and problem is not None:
        raise problem
    return places


def _from_first_good(
    site: "Site", view: "LogView", chosen: "Chosen", places: "list[Place]", target: Path, file: str | None, range_: str | None, json: bool
) -> dict[str, object]:
    """Try the copies in order. A damaged or missing copy is said aloud and passed over; anything else ends the restore."""
    from seawall.protect.from_copies import from_first_good, open_copy

    def use(place: "Place") -> dict[str, object]:
        opened = open_copy(view, chosen.commit, place, site.unwrappers())
        if file is None:
            return _whole(site, view, opened, target, json)
        nbytes = _write_file(opened, target, file, range_)
        facts = {"store": place.name, "files": 1, "plaintext_bytes": str(nbytes), "path": str(target)}
        return {"run": view.run, "step": chosen.commit.step, **facts}

    said: list[Place] = []

    def on_problem(place: "Place", error: SeawallError) -> None:
        if said or len(places) > 1:
            warn(f"the copy in {place.name} cannot be used: {error}")
        said.append(place)

    return from_first_good(places, use, on_problem)


def _whole(site: "Site", view: "LogView", opened: "OpenedCopy", target: Path, json: bool) -> dict[str, object]:
    from seawall.protect.restore import restore as rebuild

    progress = TransferProgress(shown=not json)
    with progress.phase("restoring", opened.sealing.manifest.plaintext_bytes):
        done = rebuild(
            opened.sealing, opened.inventory, opened.data_key, target, transfers=site.config.transfer.transfers, progress=progress
        )
    return {
        "run": view.run,
        "step": done.step,
        "sealing": opened.inventory.sealing.hex(),
        "store": opened.place.name,
        "files": done.files,
        "plaintext_bytes": str(done.plaintext_bytes),
        "kept_files": done.kept,
        "path": done.path,
    }


def _write_file(opened: "OpenedCopy", target: Path, name: str, range_: str | None) -> int:
    from seawall.vault.plaintext import find_file, read_range

    number = find_file(opened.inventory, name)
    start, length = _range(range_, opened.inventory.files[number].size)
    return write_stream(read_range(opened.sealing, opened.inventory, number, opened.data_key, start, length), target)


def write_stream(chunks: Iterator[bytes], target: Path) -> int:
    """Chunks to a fresh file that appears when it is whole, or to standard output for ``-``."""
    import os

    total = 0
    if str(target) == "-":
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
            total += len(chunk)
        sys.stdout.buffer.flush()
        return total
    if target.exists() or target.is_symlink():
        raise UsageError("the target is there already", where=str(target), do="choose a path that does not exist")
    fresh = target.with_name(f".{target.name}.seawall-{os.getpid()}")
    try:
        with open(fresh, "xb") as out:
            for chunk in chunks:
                out.write(chunk)
                total += len(chunk)
            out.flush()
            os.fsync(out.fileno())
        os.rename(fresh, target)
    except OSError as error:
        raise UsageError("the file cannot be written", where=str(target), why=error.strerror or "") from error
    finally:
        fresh.unlink(missing_ok=True)
    return total


def _range(text: str | None, size: int) -> tuple[int, int]:
    if text is None:
        return 0, size
    start, separator, length = text.partition(":")
    if not separator or not start.isdecimal() or not length.isdecimal():
        raise UsageError("--range wants START:LENGTH in bytes", where=text)
    return int(start), int(length)


def _document(chosen: "Chosen", places: "list[Place]", freshness: str) -> dict[str, object]:
    names = {place.id: place.name for place in places}
    return {
        "status": "dry-run",
        "step": chosen.commit.step,
        "sealing": chosen.commit.sealing,
        "store": next((names[store] for store in chosen.stores if store in names), None),
        "level": chosen.level.name if chosen.level is not None else None,
        "freshness": freshness,
    }
