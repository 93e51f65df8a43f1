"""What DCP says it wrote, compared with what is there, before the mark makes a promise of it."""

import os
from pathlib import Path

from torch.distributed.checkpoint.metadata import Metadata  # noqa: TID253 -- this package is imported by training code, which has torch loaded


def missing_part(folder: Path, metadata: Metadata) -> str:
    """Why the files that ``metadata`` names are not all here, or empty.

    Ranks that each have a disk of their own save without an error, and nobody can load it afterwards (accelerate issue 3010).
    """
    needed: dict[str, int] = {}
    for place in (metadata.storage_data or {}).values():
        end = place.offset + place.length
        needed[place.relative_path] = max(needed.get(place.relative_path, 0), end)
    with os.scandir(folder) as entries:
        sizes = {entry.name: entry.stat().st_size for entry in entries if entry.is_file(follow_symlinks=False)}
    for name, size in sorted(needed.items()):
        if name not in sizes:
            return f"{name} is not there; do all ranks write to one shared folder?"
        if sizes[name] < size:
            return f"{name} has {sizes[name]} bytes of {size}"
    return "" if ".metadata" in sizes else ".metadata is not there"
