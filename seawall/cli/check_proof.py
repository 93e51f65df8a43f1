"""``seawall check-proof``: what a proof of `seawall prove` says, held against the trust root and nothing else."""

import os
from pathlib import Path
from typing import Annotated

import typer

from seawall.cli.options import ConfigOption, JsonOption
from seawall.cli.output import emit, human_bytes, say
from seawall.errors import UsageError


def check_proof(
    proof: Annotated[Path, typer.Argument(help="The proof.")],
    file: Annotated[Path | None, typer.Option("--file", help="The file that it should be about, as it was or sealed.")] = None,
    trust_root: Annotated[str | None, typer.Option("--trust-root", help="ed25519:…, instead of the one in seawall.toml.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Verify an inclusion proof off line. Exit 4 when it does not hold or FILE is another file, 10 when a signature does not count."""
    from seawall.cli.config import find_config, load_config
    from seawall.vault.signing import PublicKey
    from seawall.verify.inclusion import MAX_BYTES, check_file, check_inclusion

    root = PublicKey.from_text(trust_root if trust_root is not None else load_config(find_config(config)).trust_root)
    try:
        with proof.open("rb") as source:
            raw = source.read(MAX_BYTES + 1)
        # As a shell redirected it.
        included = check_inclusion(raw.rstrip(b"\n"), root, str(proof))
        checked = ""
        if file is not None:
            with file.open("rb") as candidate:
                checked = check_file(included, candidate, str(file))
    except OSError as error:
        raise UsageError("a file cannot be read", where=str(error.filename), why=error.strerror or "") from error
    footer = included.footer
    if json:
        emit(
            {
                "run": included.run,
                "step": included.step,
                "sealing": included.sealing,
                "entry": included.entry,
                "committed_at": included.committed_at,
                "writer": included.writer,
                "trust_version": included.trust_version,
                "object": included.row.name,
                "object_bytes": str(included.row.length),
                "name": None if footer is None else os.fsdecode(footer.name),
                "bytes": None if footer is None else str(footer.length),
                "sha256": None if footer is None else footer.digest.hex(),
                "file": checked or None,
            }
        )
        return 0
    say(f"{included.row.name} is in sealing {included.sealing} of step {included.step} of run {included.run}")
    if footer is not None:
        say(f"it holds {os.fsdecode(footer.name)}, {human_bytes(footer.length)}, SHA-256 {footer.digest.hex()}")
    say(f"committed as entry {included.entry} by writer {included.writer} at {included.committed_at} (its own clock)")
    say(f"the writer's key counts in trust list {included.trust_version}; whether the commit still counts, only the log knows")
    if file is not None:
        say(f"{file} is that {'file' if checked == 'plaintext' else 'sealed object'}")
    return 0
