"""``seawall archive``: the newest proved checkpoint, copied as it is sealed into the run's archive store."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, RunArgument
from seawall.cli.output import TransferProgress, emit, human_bytes, say, warn
from seawall.errors import UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.estimate.transfer import Link
    from seawall.protect.archive import Archived
    from seawall.protect.place import Place


def archive(
    run: RunArgument,
    rate: Annotated[
        str | None, typer.Option("--rate", help="Of the link to the archive, such as 25Gbit/s, to say beforehand how long it takes.")
    ] = None,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Copy the newest proved checkpoint into the run's archive store, sealed as it is, lock it and label it. Decrypts nothing.

    Exit 6 when no checkpoint is proved to the run's required level.
    """
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.protect.archive import archive as bring
    from seawall.protect.archive import choose_for_archive, label_of
    from seawall.verify.certify import read_proofs
    from seawall.verify.chain_cache import ChainCache
    from seawall.verify.levels import Level

    site = Site(find_config(config))
    settings = site.run(run)
    link = _link(site, rate)
    target, sources = archive_places(site, run)
    view, _ = site.view(run)
    required = Level.parse(settings.required_level)
    known = read_proofs(site.coordination.store, view, cache=ChainCache(site.state))
    commit = choose_for_archive(view.state, known.proofs, site.clock.now(), site.config.verify.policy(), required)
    if dry_run:
        said = {"run": run, "status": "dry-run", "step": commit.step, "sealing": commit.sealing, "label": label_of(commit)}
        if json:
            emit({**said, "store": target.name})
        else:
            say(f"would archive step {commit.step} in {target.name} as {label_of(commit)}")
        return 0
    progress = TransferProgress(shown=not json)
    with progress.phase(f"archiving step {commit.step}", 0):
        done = bring(
            view,
            commit,
            sources,
            target,
            coordination=site.coordination.store,
            writer=site.signing_key("writer"),
            clock=site.clock,
            link=link,
            transfers=site.config.transfer.transfers,
            progress=progress,
            on_problem=lambda place, error: warn(f"the copy in {place.name} cannot be used: {error}"),
        )
    site.close()
    if json:
        emit({"run": run, "store": target.name, **document(done)})
    else:
        _show(done, target.name, run)
    return 0


def archive_places(site: "Site", run: str) -> "tuple[Place, list[Place]]":
    """The run's archive store, and those that it is filled from; :class:`UsageError` where the run has no archive."""
    from seawall.errors import StoreError

    settings = site.run(run)
    if not settings.archive:
        raise UsageError(
            "the run has no archive", where=run, why=f"[runs.{run}] names none", do='set archive = "NAME" to one of its copies'
        )
    sources = []
    for name in settings.synced:
        try:
            sources.append(site.place(name))
        except StoreError as error:
            warn(f"store {name} is not read from: {error}")
    return site.place(settings.archive), sources


def _link(site: "Site", rate: str | None) -> "Link | None":
    from seawall.estimate.transfer import Link
    from seawall.estimate.units import parse_bits_per_second

    limit = site.config.transfer.bandwidth_bits_per_second
    bits_per_second = limit if rate is None else parse_bits_per_second(rate)
    return None if bits_per_second is None else Link(bits_per_second, transfers=site.config.transfer.transfers)


def document(done: "Archived") -> dict[str, Any]:
    """The object of ``--json``."""
    from seawall.estimate.transfer import prediction_error

    predicted = None if done.predicted is None else done.predicted.seconds
    return {
        "status": done.status,
        "step": done.step,
        "sealing": done.sealing,
        "label": done.label,
        "source": done.source,
        "objects": done.copied_objects,
        "bytes": str(done.copied_bytes),
        "seconds": round(done.seconds, 3),
        "mode": None if done.predicted is None else done.predicted.mode,
        "predicted_seconds": None if predicted is None else round(predicted, 3),
        "prediction_error": None if predicted is None else round(prediction_error(predicted, done.seconds), 3),
    }


def _show(done: "Archived", store: str, run: str) -> None:
    said = document(done)
    if done.status == "unchanged":
        say(f"{store} has step {done.step} already: {done.label}")
    else:
        say(f"archived step {done.step} in {store} as {done.label}, {human_bytes(done.copied_bytes)} from {done.source}")
    if said["prediction_error"] is not None:
        say(f"  took {done.seconds:.1f} s, {said['predicted_seconds']:.1f} s were predicted ({said['prediction_error']:+.0%})")
    say(f"  next: `seawall verify {run} --store {store}` proves it where a verifier's key is")
