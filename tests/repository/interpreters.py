"""Finds Pythons of the versions that the project promises to run on."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def _candidates(version: str) -> Iterator[str]:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        yield sys.executable
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    # pyenv keeps versions that its shims do not run unless they are selected.
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from (str(path) for path in sorted(root.glob(f"versions/{version}.*/bin/python")))


def find_python(version: str) -> str | None:
    """A working interpreter of that version ("3.12"), or None."""
    for candidate in _candidates(version):
        try:
            said = subprocess.run(
                [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, timeout=30
            )
        except OSError:
            continue
        if said.returncode == 0 and said.stdout.strip() == version:
            return candidate
    return None
