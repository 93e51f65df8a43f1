"""A folder of recognised files without a plan of their own: a saved model, an adapter, an ``accelerate`` state, a diffusers pipeline.

Every file that holds tensors is judged alone; the layout is named after the largest of them.
"""

import re

from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.kinds import WEIGHT_ENDINGS
from seawall.checkpoint.layouts.dcp import inspect_dcp, is_dcp
from seawall.checkpoint.layouts.ranks import inspect_ranks, rank_names
from seawall.checkpoint.layouts.sharded import NUMBERED, indexes, inspect_sharded, is_sharded, is_superseded
from seawall.checkpoint.look import Look
from seawall.checkpoint.paths import joined

TEMPORARY = re.compile(r"(?:^|.*/)(?:\.tmp\w*|tmp[-_]checkpoint.*|.*\.tmp|.*\.tmp\.\w+|.*\.partial|.*\.incomplete|.*\.part|\.~.*|.*~)$")
"""Names of files that somebody is still writing, or never finished: safetensors 0.8 writes ``.tmpXXXXXX`` beside the file and renames."""
WHOLE_CONFIGS = ("config.json", "adapter_config.json", "model_index.json", "generation_config.json", "scheduler_config.json")


def has_tensors(look: Look) -> bool:
    """Whether any file of the folder looks by name as if it held tensors."""
    return any(name.endswith(WEIGHT_ENDINGS) for name in look.folder.files())


def inspect_loose(look: Look) -> None:
    """Judge each sub-folder by its own plan where it has one, and each remaining file alone."""
    folders = ["", *sorted(name for name, entry in look.folder.entries.items() if entry.kind == "folder" and not entry.linked)]
    for below in folders:
        names = look.folder.names(below)
        if is_dcp(names):
            inspect_dcp(look, below, f"{below.replace('/', '.')}." if below else "")
        if is_sharded(names):
            inspect_sharded(look, below)
        if len(rank_names(names)) > 1:
            inspect_ranks(look, below)
        inspect_files(look, below)
    look.found.layout = _layout(look)
    for name in WHOLE_CONFIGS:
        if look.folder.has(name):
            look.json(name)
    _pipeline(look)


def inspect_files(look: Look, below: str = "", skip: tuple[str, ...] = ()) -> None:
    """Judge the files of one folder that hold tensors by their ending, or objects by their content."""
    names = look.folder.names(below)
    listed = bool(indexes(names))
    for name in names:
        path = joined(below, name)
        if path in look.seen or name in skip or (listed and NUMBERED.fullmatch(name)) or name.endswith(".distcp"):
            continue
        if TEMPORARY.fullmatch(name):
            look.found.add(Verdict.OK, "a temporary file of a save that did not finish", path)
        elif name.endswith(WEIGHT_ENDINGS):
            content = look.read(path, expected=not name.endswith(".tar"))
            if content is not None and content.ours:
                look.take(content)
        elif name.endswith((".pkl", ".pickle")):
            look.take(look.read(path, expected=False))


def _layout(look: Look) -> str:
    names = look.folder.names()
    if any(is_dcp(look.folder.names(below)) for below in ("", *look.folder.folders())):
        return "dcp"
    if is_sharded(names) and not is_superseded(names):
        return "safetensors-sharded" if any(".safetensors" in name for name in names) else "torch-sharded"
    kinds = {path: content.kind for path, content in look.seen.items() if content is not None and content.ours}
    if kinds:
        return kinds[max(kinds, key=lambda path: look.folder.entries[path].size)]
    sound = [path for path in look.seen if path.endswith(".safetensors")]
    return "safetensors" if sound else "torch-zip" if look.seen else "unknown"


def _pipeline(look: Look) -> None:
    """``model_index.json`` of diffusers names its parts: each is a folder."""
    if not look.folder.has("model_index.json"):
        return
    for part, made in (look.json("model_index.json") or {}).items():
        if isinstance(made, list) and len(made) == 2 and all(isinstance(word, str) for word in made) and not look.folder.has_folder(part):
            look.found.add(Verdict.INCOMPLETE, f"the pipeline's part {part} is not there", part)
