"""``seawall run``: begin the log of a run."""

import os
from pathlib import Path
from typing import Annotated

import typer

from seawall.cli.options import ConfigOption, JsonOption, RunArgument
from seawall.cli.output import emit, say
from seawall.errors import ConfigurationError, NoSuchObjectError, UsageError

app = typer.Typer(no_args_is_help=True, help="Runs.")


@app.callback()
def _group() -> None:
    """Keeps `open` a subcommand although it is the only one."""


@app.command("open")
def open_run(
    run: RunArgument,
    path: Annotated[
        Path | None, typer.Option("--path", help="Where training writes checkpoints; added to seawall.toml for a new run.")
    ] = None,
    copies: Annotated[str | None, typer.Option("--copies", help="Stores for copies, ',' between; all of them by default.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Begin a run: its entry in seawall.toml if there is none, the genesis of its log, and epoch 1. Safe to run again."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.log.mirror import mirror_log
    from seawall.log.trust_lists import stored_lists
    from seawall.log.verbs import open_run as begin
    from seawall.vault.identity import checked_run

    site = Site(find_config(config))
    checked_run(run)
    if run not in site.config.runs:
        if path is None:
            raise UsageError("the configuration has no such run", where=run, do="name its folder with --path")
        _add_run(site.path, run, path, (copies or ",".join(site.config.stores)).split(","))
        site = Site(site.path)
    coordination = site.coordination
    # The newest: a run that began with an older list would admit keys that are revoked since.
    lists = stored_lists(coordination.store, site.trust_root)
    if not lists:
        raise NoSuchObjectError("the store has no trust list", where=coordination.store.url, do="`seawall init` puts it there")
    writer = site.signing_key("writer")
    view = begin(coordination.store, run, site.trust_root, lists[-1], site.signing_key("coordinator"), [writer.key_id], site.clock)
    for store in site.mirrors(run).values():
        mirror_log(coordination.store, view, store)
    site.close()
    if json:
        emit({"run": run, "epoch": view.epoch, "entries": view.seq, "coordination": coordination.id, "digest": view.digest})
    else:
        say(f"run {run} is open: epoch {view.epoch}, log in store {coordination.name}")
    return 0


def _add_run(config: Path, run: str, path: Path, copies: list[str]) -> None:
    """Append the run's table, and keep the file as it was if the result does not hold."""
    from seawall.log.local import locked

    if not path.is_dir():
        raise UsageError("there is no such folder", where=str(path))
    # A link to the file stays one.
    config = Path(os.path.realpath(config))
    try:
        # Two that add a run at once would each write the file with its own, and one of them would be lost.
        with locked(config):
            _append(config, run, path, copies)
    except OSError as error:
        raise ConfigurationError("the configuration cannot be written", where=str(config), why=error.strerror or "") from error


def _append(config: Path, run: str, path: Path, copies: list[str]) -> None:
    from seawall.cli.config import load_config
    from seawall.cli.init import toml_string

    known = load_config(config)
    if run in known.runs:
        return
    copies = [name.strip() for name in copies]
    zone = known.stores[copies[0]].zone if copies[0] in known.stores else ""
    lines = [
        "",
        f"[runs.{toml_string(run)}]",
        f"paths = {{ {toml_string(zone or 'here')} = {toml_string(str(path.absolute()))} }}",
        f"copies = [{', '.join(toml_string(name) for name in copies)}]",
        "",
    ]
    fresh = config.with_name(f".{config.name}.new")
    try:
        # Whoever may not read the file may not read the next one, and after a power cut one of the two is whole.
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(config.read_text(encoding="utf-8") + "\n".join(lines))
            os.fchmod(descriptor, config.stat().st_mode & 0o777)
            file.flush()
            os.fsync(descriptor)
        load_config(fresh)
        fresh.replace(config)
    finally:
        fresh.unlink(missing_ok=True)
