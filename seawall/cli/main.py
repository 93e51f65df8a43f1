"""The ``seawall`` command. Each command returns its exit code; errors become a message and the code of their class (docs/cli.md)."""

import sys
from collections.abc import Sequence

import typer

from seawall.cli import init, inspect, open, restore, runs, sync, verify
from seawall.cli.output import report_error
from seawall.errors import SeawallError, UsageError

app = typer.Typer(
    name="seawall",
    help="Disaster recovery for LLM training: encrypted, signed checkpoint copies whose restorability is proved.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("init")(init.init)
app.command("inspect")(inspect.inspect)
app.command("sync")(sync.sync)
app.command("verify")(verify.verify)
app.command("restore")(restore.restore)
app.command("open")(open.open_object)
app.add_typer(runs.app, name="run")


def main(arguments: Sequence[str]) -> int:
    """Run one command; the exit code."""
    import click

    as_json = "--json" in arguments
    try:
        code = app(args=list(arguments), standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SeawallError as error:
        report_error(error, as_json)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return UsageError.exit_code
    except click.ClickException as error:
        report_error(UsageError(error.format_message(), do="`seawall COMMAND --help` lists the options"), as_json)
        return UsageError.exit_code
    except (KeyboardInterrupt, click.Abort):
        report_error(SeawallError("interrupted", do="run the same command again: it goes on where it stopped"), as_json)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`seawall ... | head`); there is nobody to tell.
        sys.stderr.close()
        return 1


def run() -> None:
    """Entry point of the console script."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
