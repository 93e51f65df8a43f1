"""Which layout is at a path. Names of files propose, their content decides; see :func:`detect`."""

import os
import re
from contextlib import suppress

from seawall.checkpoint.kinds import WEIGHT_ENDINGS, kind_of
from seawall.checkpoint.layouts import dcp, deepspeed, hf_trainer, megatron, ranks, sharded
from seawall.checkpoint.layouts.foreign import foreign_folder
from seawall.checkpoint.reading import Readable
from seawall.checkpoint.torch_zip import zip_kind
from seawall.checkpoint.tree import Folder, locate, open_regular
from seawall.checkpoint.zips import read_archive
from seawall.errors import SeawallError

LAYOUTS = (
    "torch-zip", "torch-legacy", "torch-sharded", "safetensors", "safetensors-sharded", "dcp", "hf-trainer", "deepspeed",
    "megatron", "rank-shards", "opaque", "unknown",
)  # fmt: skip
"""Every name that :attr:`Inspection.layout` takes."""

STEP_FOLDER = re.compile(
    r"(?:.*[-_. ])?(?:checkpoint|ckpt|global_step|globalstep|step|iter|iteration|epoch|version|e)[-_= ]?\d+(?:[-_.].*)?"
    r"|\d+|release|latest|last|best",
    re.I,
)
"""Names that trainers give to the folder of one step."""
NOT_A_STEP = re.compile(r"tmp[-_].*|\..*|.*[-_.](?:tmp|unfinished|incomplete|deleting|partial)|.*orbax-checkpoint-tmp.*", re.I)
"""Names of folders that are being written or removed."""
POINTERS = ("latest", megatron.TRACKER, "latest_universal", "latest_checkpoint.txt", "latest_checkpoint", "latest.txt", "last_checkpoint")


def detect(path: str | os.PathLike[str]) -> str:
    """The layout of the checkpoint at ``path``, one of ``LAYOUTS``; a run folder has the layout of the step that counts.

    Reads a few kilobytes. Raises ``NoSuchCopyError`` when nothing is there.
    """
    target = locate(path)
    if target.kind == "file":
        opened = open_regular(target.real, os.path.basename(target.real))
        try:
            kind = _kind(opened)
        finally:
            opened.close()
        return kind if kind in LAYOUTS else "unknown"
    if target.kind != "folder":
        return "unknown"
    from seawall.checkpoint.runs import resolve

    folder, _ = resolve(target, Folder(target.real, target.boundary, recursive=False))
    return layout_of(folder) if folder is not None else "unknown"


def _kind(source: Readable) -> str:
    """The kind of a file, with zip archives told apart by their records."""
    kind = kind_of(source)
    if kind == "torch-zip":
        with suppress(SeawallError):
            return zip_kind(read_archive(source))
    return kind


def is_run(folder: Folder) -> bool:
    """Whether a folder holds several steps (or a pointer to one) and is no checkpoint by itself. ``folder`` may be listed flat."""
    names, folders = folder.names(), folder.folders()
    if any(re.fullmatch(r"checkpoint-\d+", name) for name in folders) and not any(name in names for name in hf_trainer.OPTIMIZERS):
        return True
    name = os.path.basename(folder.path)
    if (
        foreign_folder(folder)
        or hf_trainer.is_trainer(names, name)
        or dcp.is_dcp(names)
        or megatron.is_megatron(folders, names)
        or deepspeed.is_deepspeed(names)
    ):
        return False
    if any(pointer in folder.entries for pointer in POINTERS):
        return True
    if ranks.rank_names(names) or sharded.is_sharded(names) or any(name.endswith(WEIGHT_ENDINGS) for name in names):
        return False
    return any(STEP_FOLDER.fullmatch(child) and not NOT_A_STEP.fullmatch(child) for child in folders)


def layout_of(folder: Folder, mark: str = "_COMMITTED") -> str:
    """The layout of a folder that is one checkpoint, by its names and the first bytes of a single file."""
    names, folders = folder.names(), folder.folders()
    if foreign_folder(folder):
        return "unknown"
    if hf_trainer.is_trainer(names, os.path.basename(folder.path)):
        return "hf-trainer"
    if megatron.is_megatron(folders, names):
        return "megatron"
    if deepspeed.is_deepspeed(names):
        return "deepspeed"
    if dcp.is_dcp(names):
        return "dcp"
    if ranks.rank_names([*names, *(name for name, entry in folder.entries.items() if entry.kind != "folder" and "/" not in name)]):
        return "rank-shards"
    if sharded.is_sharded(names) and not sharded.is_superseded(names):
        return "safetensors-sharded" if any(".safetensors" in name for name in names) else "torch-sharded"
    weights = [name for name in folder.files() if name.endswith(WEIGHT_ENDINGS)]
    if any(dcp.is_dcp(folder.names(below)) for below in folders):
        return "dcp"
    if weights:
        largest = max(weights, key=lambda name: folder.entries[name].size)
        with folder.open(largest) as source:
            kind = _kind(source)
        if kind == "binary" and mark in names and all(name.endswith(".bin") for name in weights):
            # ".bin" is anybody's ending: with a commit mark beside it, a raw dump is a checkpoint that only its writer can read.
            return "opaque"
        return kind if kind in LAYOUTS else "safetensors" if largest.endswith(".safetensors") else "torch-zip"
    return "opaque" if mark in names else "unknown"
