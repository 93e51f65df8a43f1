"""``seawall prove``: that one file belongs to a committed checkpoint, as a document that anybody can check."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.options import ConfigOption, JsonOption, RecoveryKeyOption, RunArgument
from seawall.cli.output import emit, say, warn
from seawall.errors import CorruptError, NoSuchCopyError, SeawallError, StoreError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord


def prove(
    run: RunArgument,
    file: Annotated[str, typer.Argument(help="The file's path in the checkpoint, or with --object the name of a sealed object.")],
    step: Annotated[int | None, typer.Option("--step", help="The checkpoint of this step, instead of the newest.", min=0)] = None,
    is_object: Annotated[bool, typer.Option("--object", help="FILE is an object such as file-3.sea. Needs no key.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the proof here.", show_default=False)] = None,
    recovery_key: RecoveryKeyOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Write a proof that a file is in a sealing and the sealing in a signed commit. `seawall check-proof` verifies it without any store.

    Named by its path, the proof also opens the file's name, length and SHA-256, which needs a key that opens the sealing.
    """
    from seawall.cli.chosen_commits import chosen_commits
    from seawall.cli.config import find_config
    from seawall.cli.site import Site

    if json and output is None:
        raise UsageError("with --json the proof goes into a file", do="name it with --output")
    site = Site(find_config(config), recovery_key=recovery_key)
    view, _ = site.view(run)
    commit = chosen_commits(view, step)[-1]
    name, proof = _proof(site, view, commit, file, is_object)
    site.close()
    if output is None:
        say(proof.decode("ascii"))
        return 0
    try:
        with output.open("xb") as target:
            target.write(proof)
    except OSError as error:
        raise UsageError(
            "the proof cannot be written", where=str(output), why=error.strerror or "", do="name a path that is free"
        ) from error
    if json:
        emit({"run": run, "step": commit.step, "sealing": commit.sealing, "object": name, "opened": not is_object, "proof": str(output)})
    else:
        say(f"{file} of step {commit.step}: proof in {output}")
    return 0


def _proof(site: "Site", view: "LogView", commit: "CommitRecord", file: str, is_object: bool) -> tuple[str, bytes]:
    """From the first copy that is there and whole enough."""
    from seawall.vault.header import ObjectKind, object_name
    from seawall.vault.plaintext import find_file
    from seawall.vault.sealing import read_inventory, read_sealing, unlock
    from seawall.verify.inclusion import prove_inclusion

    problem: SeawallError | None = None
    for place_name in site.run(view.run).copies:
        try:
            store = site.place(place_name).store
            name, data_key = file, None
            if not is_object:
                opened = read_sealing(store, view.run, bytes.fromhex(commit.sealing), commit.manifest, view.state.writer_of(commit))
                data_key = unlock(opened, site.unwrappers(), view.state.resolver("operator"))
                name = object_name(ObjectKind.FILE, find_file(read_inventory(opened, data_key), file))
            return name, prove_inclusion(store, site.coordination.store, view, commit, name, data_key)
        except (StoreError, CorruptError, NoSuchCopyError) as error:
            if problem is not None:
                warn(f"{place_name}: {error}")
            problem = problem or error
    assert problem is not None, "a run has at least one store"
    raise problem
