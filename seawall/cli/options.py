"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="seawall.toml; else $SEAWALL_CONFIG, else ./seawall.toml.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, whatever the exit code.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]
RunArgument = Annotated[str, typer.Argument(help="The run's name.")]
RecoveryKeyOption = Annotated[
    Path | None, typer.Option("--recovery-key", help="File with the offline recovery key, when the keyring is lost.", show_default=False)
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, for whoever reads the log.")]
