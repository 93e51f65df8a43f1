"""``inspect``: what is at a path, whether it is whole, and what it holds. Nothing that it finds is run, imported or followed out
of the tree."""

import os
import re

from seawall.checkpoint.commit_marks import note_commit_mark
from seawall.checkpoint.detect import LAYOUTS, NOT_A_STEP, is_run, layout_of
from seawall.checkpoint.facts import step_in_name
from seawall.checkpoint.inspection import Inspection, Verdict
from seawall.checkpoint.layouts import dcp, deepspeed, hf_trainer, megatron, ranks, sharded
from seawall.checkpoint.layouts.foreign import foreign_folder
from seawall.checkpoint.layouts.loose import has_tensors, inspect_files, inspect_loose
from seawall.checkpoint.layouts.opaque import inspect_opaque
from seawall.checkpoint.layouts.single import inspect_file
from seawall.checkpoint.look import Look
from seawall.checkpoint.runs import Choice, resolve, steps_of
from seawall.checkpoint.tensor_sums import note_tensor_sums
from seawall.checkpoint.tree import Folder, Target, locate
from seawall.errors import UsageError

MAX_STEPS_TRIED = 8
"""Newest steps of a run without a pointer that are judged until one is complete."""


def inspect(path: str | os.PathLike[str], deep: bool = False, commit_mark: str = "_COMMITTED", layout: str = "auto") -> Inspection:
    """Judge the checkpoint at ``path``: a file, the folder of one step, or a run folder, which is judged by the step that its
    pointer names, else by its
    newest complete one.

    A shallow look reads structure only, a few kilobytes a file. ``deep`` reads every byte: checksums inside, and values that are
    not finite.
    What is wrong with the checkpoint comes back as reasons and a verdict. Raises ``NoSuchCopyError`` when nothing is there,
    ``UsageError`` for a layout
    that does not exist, and another ``SeawallError`` when the operating system refuses to show it.
    """
    if layout not in ("auto", *LAYOUTS):
        raise UsageError(f"there is no layout called {layout}", do="choose one of auto, " + ", ".join(LAYOUTS[:-1]))
    layout = "auto" if layout == "unknown" else layout
    target = locate(path)
    if target.kind == "file":
        return _inspect_one_file(target, deep, commit_mark)
    if target.kind != "folder":
        return _refuse(target, os.path.basename(os.path.abspath(os.fspath(path))))
    flat = Folder(target.real, target.boundary, recursive=False)
    if layout != "opaque" and is_run(flat):
        return _inspect_run(target, flat, deep, commit_mark, layout)
    return inspect_folder(Folder(target.real, target.boundary), deep, commit_mark, layout)


def _refuse(target: Target, name: str) -> Inspection:
    found = Inspection(target.real, "unknown")
    if target.kind == "outside":
        found.add(Verdict.HOSTILE, f"a link that leads out of its folder, to {target.real}", name)
    elif target.kind == "dangling":
        found.add(Verdict.INCOMPLETE, f"a link to {target.real}, which is not there", os.path.basename(target.real))
    elif target.kind == "loop":
        found.add(Verdict.CORRUPT, "a link that leads to itself", name)
    else:
        found.add(Verdict.HOSTILE, "neither file nor folder; such things are not opened", name)
    return found


def _inspect_one_file(target: Target, deep: bool, mark: str) -> Inspection:
    where, name = os.path.split(target.real)
    if sharded.INDEX.fullmatch(name) or name == dcp.METADATA:
        # The map of a checkpoint stands for the whole of it.
        return inspect_folder(Folder(where, target.boundary), deep, mark, "auto")
    look = Look(Folder.of_one_file(where, target.boundary, name), Inspection(target.real, "unknown", deep=deep), deep, mark)
    inspect_file(look, name)
    _drop_impossible(look.found)
    _judge_unfinished(look, target.real)
    return look.found


def _inspect_run(target: Target, flat: Folder, deep: bool, mark: str, layout: str) -> Inspection:
    folder, choice = resolve(target, flat)
    if choice.pointer or folder is None:
        if folder is None:
            found = Inspection(flat.path, choice.layout, deep=deep)
        else:
            found = inspect_folder(folder, deep, mark, layout)
            newer = [name for step, name in steps_of(flat) if found.step is not None and step > found.step]
            if newer:
                found.add(
                    Verdict.OK, f"{newer[-1]} is newer than what {choice.pointer} names: a save that is not finished, or not announced"
                )
        return _with(found, choice)
    tried: list[Inspection] = []
    for _, name in reversed(steps_of(flat)[-MAX_STEPS_TRIED:]):
        step = Target(os.path.join(flat.path, name), target.boundary, "folder")
        inner, further = resolve(step, Folder(step.real, target.boundary, recursive=False), depth=1)
        if inner is None:
            continue
        found = _with(inspect_folder(inner, deep, mark, layout), further)
        if found.verdict not in (Verdict.INCOMPLETE, Verdict.UNKNOWN):
            for other in tried:
                found.add(
                    Verdict.WARN, f"the newer {os.path.basename(other.path)} is {other.verdict.word}; this is the newest complete step"
                )
            return _with(found, choice)
        tried.append(found)
    return _with(tried[0] if tried else inspect_folder(Folder(flat.path, target.boundary), deep, mark, layout), choice)


def _with(found: Inspection, choice: Choice) -> Inspection:
    for reason in choice.reasons:
        found.add(reason.verdict, reason.text, reason.file, reason.tensor)
    return found


def inspect_folder(folder: Folder, deep: bool, mark: str, layout: str) -> Inspection:
    """Judge one folder that is a checkpoint by itself."""
    look = Look(folder, Inspection(folder.path, "unknown", deep=deep), deep, mark)
    look.found.files = list(folder.files())
    _judge_links(look)
    _judge_unfinished(look, folder.path)
    name = os.path.basename(folder.path)
    look.found.layout = layout_of(folder, mark) if layout == "auto" else layout
    kind = look.found.layout
    if kind == "hf-trainer":
        hf_trainer.inspect_trainer(look, name)
    elif kind == "megatron":
        megatron.inspect_iteration(look, "", name)
    elif kind == "deepspeed":
        deepspeed.inspect_tag(look, "", name)
    elif kind == "dcp" and dcp.is_dcp(folder.names()):
        dcp.inspect_dcp(look)
        inspect_files(look)
    elif kind == "rank-shards":
        ranks.inspect_ranks(look)
    elif kind in ("safetensors-sharded", "torch-sharded"):
        sharded.inspect_sharded(look)
        inspect_files(look)
    elif kind == "opaque":
        inspect_opaque(look)
    elif layout != "auto" and len(look.found.files) == 1:
        inspect_file(look, look.found.files[0])
    elif foreign_folder(folder):
        look.found.add(Verdict.UNKNOWN, f"this is {foreign_folder(folder)} and not a layout that seawall reads")
    elif has_tensors(look):
        inspect_loose(look)
    elif not look.found.files:
        look.found.add(Verdict.INCOMPLETE, "the folder is empty")
    elif all(part.startswith(".") for part in (file.split("/", 1)[0] for file in look.found.files)):
        # What a trainer keeps beside its checkpoints (a spool, a lock) is there before the first of them.
        look.found.add(Verdict.INCOMPLETE, "nothing but hidden files is there yet")
    else:
        inspect_files(look)
        look.found.add(Verdict.UNKNOWN, "nothing here is of a layout that seawall reads")
    _drop_impossible(look.found)
    if look.found.step is None:
        look.found.step = step_in_name(name)
    note_commit_mark(look)
    note_tensor_sums(look)
    return look.found


def _drop_impossible(found: Inspection) -> None:
    """Numbers come out of files: a step of -1 is one that was never set, and a sealing counts neither below 0 nor without end."""
    if found.step is not None and not 0 <= found.step < 1 << 63:
        found.step = None
    if found.world_size is not None and not 0 < found.world_size < 1 << 32:
        found.add(Verdict.WARN, f"a world size of {found.world_size} is claimed, which is not believed")
        found.world_size = None


def _judge_links(look: Look) -> None:
    for name, entry in look.folder.entries.items():
        if entry.kind == "outside":
            look.found.add(Verdict.HOSTILE, f"a link that leads out of the checkpoint, to {entry.linked}", name)
        elif entry.kind == "special":
            look.found.add(Verdict.HOSTILE, "neither file, folder nor link; such things are not opened", name)
        elif entry.kind == "loop":
            look.found.add(Verdict.CORRUPT, "a link that leads to itself", name)
        elif entry.kind == "dangling":
            needed = name.endswith((".pt", ".pth", ".bin", ".safetensors", ".distcp", ".ckpt", ".json", ".metadata"))
            look.found.add(Verdict.INCOMPLETE if needed else Verdict.WARN, f"a link to {entry.linked}, which is not there", name)
    for name in look.folder.vanished:
        look.found.add(Verdict.INCOMPLETE, "it vanished while the folder was listed: a save or a rotation is running", name)


def _judge_unfinished(look: Look, path: str) -> None:
    """Marks that a trainer sets while it writes or removes: NeMo's ``-unfinished`` file beside the checkpoint, temporary names of
    folders."""
    name = os.path.basename(path)
    if os.path.lexists(path + "-unfinished") or os.path.lexists(re.sub(r"\.ckpt$", "", path) + "-unfinished"):
        look.found.add(
            Verdict.INCOMPLETE, f"{name}-unfinished stands beside it: the trainer is writing or removing it", f"{name}-unfinished"
        )
    if NOT_A_STEP.fullmatch(name) and not name.startswith(".") and "orbax" not in name:
        look.found.add(Verdict.INCOMPLETE, "its name says that it is not finished", name)
    for file in look.folder.entries:
        if file.endswith("-unfinished"):
            look.found.add(Verdict.INCOMPLETE, "a mark that the trainer is still writing or removing what is beside it", file)
