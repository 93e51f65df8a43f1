"""Removing a step's folder: the mark first, then the rest by an explicit list, so that a kill leaves nothing that looks whole."""

import os
from pathlib import Path

from seawall.errors import UsageError
from seawall.training.mark import MARK, UNFINISHED, begin, withdraw
from seawall.training.steps import STEP_FOLDER


def remove_step(path: Path) -> bool:
    """Remove one step's folder. False when something was put into it meanwhile, and it stays, without a mark.

    Never follows a link. :class:`UsageError` for what is no step's folder; ``OSError`` when the file system refuses.
    """
    if not STEP_FOLDER.fullmatch(path.name) or path.is_symlink():
        raise UsageError("this is no folder of a step", where=str(path), do="only step folders that training wrote are removed by it")
    if (path / MARK).exists():
        withdraw(path)
    elif any(path.iterdir()) and not (path / UNFINISHED).exists():
        raise UsageError("this was not written by this checkpointer", where=str(path), why="it has neither commit mark nor its beginning")
    files, folders = _listed(path)
    for file in files:
        if file != path / UNFINISHED:
            file.unlink(missing_ok=True)
    try:
        for folder in folders:
            folder.rmdir()
        # Last, so that what a kill leaves is still known for the rest of a removal.
        (path / UNFINISHED).unlink(missing_ok=True)
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        if path.is_dir() and any(path.iterdir()):
            begin(path)
            return False
        raise
    return True


def _listed(path: Path) -> tuple[list[Path], list[Path]]:
    """Files and links, and folders with the inner ones first."""
    files: list[Path] = []
    folders: list[Path] = []
    for where, inner, names in os.walk(path, topdown=False, followlinks=False):
        here = Path(where)
        files += [here / name for name in names]
        files += [here / name for name in inner if (here / name).is_symlink()]
        if here != path:
            folders.append(here)
    return files, folders
