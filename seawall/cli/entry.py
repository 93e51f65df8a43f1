"""The console script: sets up the interpreter for a short life, then hands over to the commands."""

import gc
import os
import sys


def run() -> None:
    """Entry point of ``seawall``."""
    # A command makes its modules and models once and ends soon: at Python's own thresholds, looking through them again and
    # again takes about a tenth of the CPU of a small command. Before the imports, because they make most of the objects.
    gc.set_threshold(200_000, 20, 50)
    # Looking for plugins of pydantic reads the metadata of everything that is installed (17 ms), for none that a command has use for.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from seawall.cli.main import main

    code = main(sys.argv[1:])
    # What is left goes with the process: looking through all of it once more at the end would free nothing that matters.
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    run()
