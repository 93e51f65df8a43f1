"""The ``seawall`` command. Each command returns its exit code; errors become a message and the code of their class (docs/cli.md).

Only the module of the command that was asked for is imported, or all of them where the list of commands is wanted.
"""

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import typer

from seawall.cli.output import report_error
from seawall.errors import SeawallError, UsageError

INTERRUPTED = 130
"""128 and the number of SIGINT, as a shell reports it (bash(1), "EXIT STATUS")."""

COMMANDS = {
    "init": "init",
    "doctor": "doctor",
    "inspect": "inspect",
    "sync": "sync",
    "copies": "copies",
    "score": "score",
    "verify": "verify",
    "matrix": "matrix",
    "prove": "prove",
    "check-proof": "check_proof",
    "heal": "heal",
    "archive": "archive",
    "respond": "respond",
    "audit": "audit",
    "restore": "restore",
    "open": "open_object",
    "metrics": "metrics",
    "flips": "flips",
}
"""Command → its function, in the module of ``seawall.cli`` that bears the command's name (with ``_`` for ``-``). ``--help`` lists them in
this order."""
GROUPS = {
    "run": "runs",
    "log": "log",
    "retention": "retention",
    "keys": "keys",
    "store": "store",
    "alerts": "alerts",
    "estimate": "estimate",
    "dev": "dev",
}
"""Group of commands → the module of ``seawall.cli`` whose ``app`` it is."""


def main(arguments: Sequence[str]) -> int:
    """Run one command; the exit code. Nothing is raised, and with ``--json`` one object is printed whatever happens."""
    as_json = "--json" in arguments
    try:
        code = _outcome(arguments, as_json)
        # What cannot be written is noticed here and not at the interpreter's exit, where it would change the exit code.
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of our output went away (`seawall ... | head`); there is nobody to tell.
        _forget_output()
        return SeawallError.exit_code


def _outcome(arguments: Sequence[str], as_json: bool) -> int:
    try:
        return _invoke(arguments)
    except SeawallError as error:
        report_error(error, as_json)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        interrupted = SeawallError("interrupted", do="run the same command again: it goes on where it stopped")
        report_error(interrupted, as_json, INTERRUPTED)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001  # the process boundary: a bug, too, must leave a JSON object and its exit code
        return _unexpected(error, as_json)


def _invoke(arguments: Sequence[str]) -> int:
    # Not `app(...)`: that turns Ctrl-C into an exit code without a word, and a closed pipe into SystemExit.
    command = typer.main.get_command(application(arguments))
    try:
        with command.make_context("seawall", list(arguments)) as context:
            code = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return code if isinstance(code, int) else 0


def application(arguments: Sequence[str] = ()) -> typer.Typer:
    """The command line that these arguments need: only their command where they begin with one, else all of it."""
    app = typer.Typer(
        name="seawall",
        help="Disaster recovery for LLM training: encrypted, signed checkpoint copies whose restorability is proved.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    # A callback makes Typer keep the command's name even where it is the only one.
    app.callback()(_nothing)
    first = arguments[0] if arguments else ""
    alone = first in COMMANDS or first in GROUPS
    for name, function in COMMANDS.items():
        if name == first or not alone:
            app.command(name)(getattr(import_module(f"seawall.cli.{name.replace('-', '_')}"), function))
    for name, module in GROUPS.items():
        if name == first or not alone:
            app.add_typer(import_module(f"seawall.cli.{module}").app, name=name)
    return app


def _nothing() -> None:
    pass


def _unexpected(error: Exception, as_json: bool) -> int:
    # Typer has its own copy of click's exceptions in some versions and click's own in others; all of them have this method.
    message = getattr(error, "format_message", None)
    if message is None:
        traceback.print_exc()
        why = f"{type(error).__name__}: {error}"
        report_error(SeawallError("an unexpected error, which is a bug in seawall", why=why, do="report it with the lines above"), as_json)
        return SeawallError.exit_code
    if type(error).__name__ == "NoArgsIsHelpError" and not as_json:
        sys.stderr.write(message() + "\n")
    else:
        report_error(UsageError(message(), do="`seawall COMMAND --help` lists the options"), as_json)
    return UsageError.exit_code


def _forget_output() -> None:
    """Let the interpreter's last flush of standard output go nowhere (docs.python.org, library/signal, "Note on SIGPIPE")."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
