"""``seawall sync``: take a checkpoint to the run's stores, encrypted and signed."""

from pathlib import Path
from typing import Annotated

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, RunArgument
from seawall.cli.output import TransferProgress, emit, human_bytes, say, warn
from seawall.errors import StoreError


def sync(
    run: RunArgument,
    path: Annotated[Path | None, typer.Option("--path", help="A checkpoint or run folder, instead of the configured one.")] = None,
    step: Annotated[int | None, typer.Option("--step", help="The checkpoint of this step.", min=0)] = None,
    codec: Annotated[
        str | None, typer.Option("--codec", help="none, zstd, fast, balanced or small, instead of the configured one.")
    ] = None,
    as_opaque: Annotated[bool, typer.Option("--as-opaque", help="Seal what is no good checkpoint as plain files.")] = False,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Seal the newest checkpoint into the run's stores and commit it. Safe to run again; a killed one goes on by file."""
    from seawall.checkpoint.source import find_checkpoints
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.protect.checkpoint_source import read_source
    from seawall.protect.sync import SyncKeys
    from seawall.protect.sync import sync as take
    from seawall.vault.codecs import codec_named

    site = Site(find_config(config))
    settings = site.run(run)
    packing = codec_named(codec or settings.codec)
    where = str(path or site.source_folder(run))
    if step is not None:
        steps = dict(find_checkpoints(where))
        where = steps.get(step, where)
    source = read_source(
        where, exclude=settings.exclude, layout=settings.layout, commit_mark=settings.commit_mark, as_opaque=as_opaque, step=step
    )
    for warning in source.warnings:
        warn(warning)
    total = sum(file.size for file in source.files)
    if dry_run:
        return _dry_run(run, source.root, source.inspection.step, len(source.files), total, list(settings.synced), json)
    keys = SyncKeys(site.signing_key("writer"), site.recipients(), site.unwrappers())
    view, report = site.view(run)
    places, absent = site.answering_places(run)
    for place in places[1:]:
        if not place.store.capabilities.conditional_put:
            warn(f"store {place.name} holds further copies only: {'; '.join(place.store.capabilities.reasons)}")
    progress = TransferProgress(shown=not json)
    with progress.phase("sealing", total):
        done = take(
            source,
            run,
            view,
            places=places,
            coordination=site.coordination.store,
            keys=keys,
            clock=site.clock,
            codec=packing,
            batch_bytes=settings.batch_bytes,
            transfers=site.config.transfer.transfers,
            mirrors_behind=(*report.behind, *report.unreachable),
            progress=progress,
        )
    done.missing.update(absent)
    site.remember(done.view)
    site.close()
    if json:
        emit(
            {
                "status": done.status,
                "run": run,
                "step": done.step,
                "sealing": done.sealing,
                "files": done.files,
                "plaintext_bytes": str(done.plaintext_bytes),
                "adopted_files": done.adopted,
                "copies": done.copies,
                "missing": done.missing,
                "quarantine": done.quarantine,
            }
        )
    else:
        say(f"{done.status}: step {done.step}, {done.files} files, {human_bytes(done.plaintext_bytes)}, sealing {done.sealing}")
        say(f"  copies: {', '.join(done.copies)}")
        if done.quarantine:
            say(f"  quarantined: {done.quarantine}")
        for name, why in done.missing.items():
            warn(f"{name} has no whole copy yet: {why}")
    return StoreError.exit_code if done.missing else 0


def _dry_run(run: str, root: str, step: int | None, files: int, total: int, copies: list[str], json: bool) -> int:
    if json:
        emit({"status": "dry-run", "run": run, "root": root, "step": step, "files": files, "plaintext_bytes": str(total), "stores": copies})
    else:
        say(f"would seal step {step}: {files} files, {human_bytes(total)} from {root} to {', '.join(copies)}")
    return 0
