"""Whether a file system creates a name only once."""

import os
from pathlib import Path

from seawall.errors import ObjectExistsError, StoreError
from seawall.stores.file_folders import TEMPORARY, DurableFolders, open_temporary
from seawall.stores.file_temporary import TemporaryFile, temporary_name


def creates_once(root: Path) -> tuple[bool, str]:
    """Try it inside the temporary folder, leaving nothing. Returns whether it holds, and why not."""
    key = f"{TEMPORARY}/{temporary_name('probe')}"
    folders = DurableFolders()
    refused = False
    try:
        TemporaryFile(root, key).publish(folders)
        try:
            TemporaryFile(root, key).publish(folders)
        except ObjectExistsError:
            refused = True
        folder = open_temporary(root)
        try:
            os.unlink(key.split("/", 1)[1], dir_fd=folder)
        finally:
            os.close(folder)
    except StoreError as error:
        return False, str(error)
    return (True, "") if refused else (False, "a second create of the same name was not refused")
