"""Run folders: which step counts. A pointer decides where there is one; nothing is believed of it but the name."""

import os
import re
from dataclasses import dataclass, field

from seawall.checkpoint.detect import NOT_A_STEP, STEP_FOLDER, is_run
from seawall.checkpoint.facts import step_in_name
from seawall.checkpoint.inspection import Reason, Verdict
from seawall.checkpoint.layouts import deepspeed
from seawall.checkpoint.layouts.megatron import TRACKER
from seawall.checkpoint.paths import inside
from seawall.checkpoint.tree import Folder, Target, within
from seawall.errors import IncompleteError, SeawallError

MAX_POINTER = 4096
TEXT_POINTERS = ("latest", "latest_universal", "latest_checkpoint.txt", "latest_checkpoint", "latest.txt", "last_checkpoint")


@dataclass(slots=True)
class Choice:
    """What a run folder says about itself."""

    pointer: str = ""
    """The pointer's file name, empty without one."""
    wanted: str = ""
    """The folder that it names, relative to the run folder."""
    reasons: list[Reason] = field(default_factory=list)
    layout: str = "unknown"
    """The layout of the run's steps, as far as names tell."""


def steps_of(folder: Folder) -> list[tuple[int, str]]:
    """(step, name) of the step folders in a run folder, oldest first. Folders being written or removed are left out; links are, too."""
    found = []
    for name in folder.folders():
        if STEP_FOLDER.fullmatch(name) and not NOT_A_STEP.fullmatch(name) and not folder.entries[name].linked:
            step = step_in_name(name)
            if step is None:
                digits = re.findall(r"\d+", name)
                step = int(digits[-1][:18]) if digits else -1
            found.append((step, name))
    return sorted(found)


def choose(folder: Folder) -> Choice:
    """Read the pointer of a run folder, if it has one."""
    choice = Choice(layout=_layout(folder))
    names = folder.names()
    if TRACKER in names:
        choice.layout = "megatron"
        choice.pointer = TRACKER
        choice.wanted = _tracked(folder, choice)
        return choice
    for pointer in TEXT_POINTERS:
        entry = folder.entries.get(pointer)
        if entry is None:
            continue
        choice.pointer = pointer
        if entry.kind == "outside":
            choice.reasons.append(
                Reason(Verdict.HOSTILE, f"{pointer} is a link that leads out of the run's folder, to {entry.linked}", pointer)
            )
        elif entry.kind == "loop":
            choice.reasons.append(Reason(Verdict.CORRUPT, f"{pointer} is a link that leads to itself", pointer))
        elif entry.kind == "special":
            choice.reasons.append(Reason(Verdict.HOSTILE, f"{pointer} is neither file, folder nor link", pointer))
        elif entry.kind in ("folder", "dangling"):
            choice.wanted = os.path.relpath(entry.linked, folder.path) if entry.linked else pointer
            if entry.kind == "dangling":
                choice.reasons.append(Reason(Verdict.INCOMPLETE, f"{pointer} leads to {choice.wanted}, which is not there", choice.wanted))
        else:
            choice.wanted = _text(folder, pointer, choice)
        return choice
    if choice.layout in ("deepspeed", "megatron") and steps_of(folder):
        missing = "latest" if choice.layout == "deepspeed" else TRACKER
        choice.reasons.append(Reason(Verdict.INCOMPLETE, f"{missing}, which is written after everything else, is not there", missing))
    return choice


def _layout(folder: Folder) -> str:
    for child in folder.folders():
        if re.fullmatch(r"iter_\d+", child):
            return "megatron"
        if child.startswith("global_step") and child[11:12].isdigit():
            try:
                names = Folder(os.path.join(folder.path, child), folder.boundary, recursive=False).names()
            except SeawallError:
                names = []
            if deepspeed.is_deepspeed(names) or "zero_to_fp32.py" in folder.names():
                return "deepspeed"
    if "zero_to_fp32.py" in folder.names():
        return "deepspeed"
    return "unknown"


def _text(folder: Folder, pointer: str, choice: Choice) -> str:
    """The name in a pointer file; empty (and a reason) when it is none that can be followed."""
    wanted = _raw_text(folder, pointer, choice)
    if os.path.isabs(wanted) and within(folder.path, os.path.normpath(wanted)):
        wanted = os.path.relpath(os.path.normpath(wanted), folder.path)
    if wanted and not inside(wanted):
        choice.reasons.append(Reason(Verdict.HOSTILE, f"{pointer} names a place outside of the run's folder: {wanted[:200]}", pointer))
        return ""
    return wanted.rstrip("/")


def _raw_text(folder: Folder, pointer: str, choice: Choice) -> str:
    try:
        raw = folder.read(pointer, MAX_POINTER)
    except SeawallError as error:
        verdict = Verdict.INCOMPLETE if isinstance(error, IncompleteError) else Verdict.CORRUPT
        choice.reasons.append(Reason(verdict, str(error), pointer))
        return ""
    # os.fsdecode keeps names that are not UTF-8 as the file system has them.
    wanted = os.fsdecode(raw.strip(b" \t\r\n"))
    if not wanted.strip("\0"):
        choice.reasons.append(Reason(Verdict.CORRUPT, f"{pointer} is empty", pointer))
        return ""
    return wanted


def _tracked(folder: Folder, choice: Choice) -> str:
    text = _raw_text(folder, TRACKER, choice)
    if not text or text == "release":
        return text
    if text.startswith("/") or ".." in text.split("/"):
        choice.reasons.append(Reason(Verdict.HOSTILE, f"the tracker names a place outside of the run's folder: {text[:200]}", TRACKER))
        return ""
    if not re.fullmatch(r"\d{1,18}", text):
        choice.reasons.append(
            Reason(Verdict.CORRUPT, f"the tracker holds {text[:80]!r}, which is neither an iteration nor release", TRACKER)
        )
        return ""
    for child in folder.folders():
        # verl keeps the tracker of Megatron and calls its folders global_step_N.
        if re.fullmatch(r"(?:iter|global_step)_0*" + str(int(text)), child):
            return child
    return f"iter_{int(text):07d}"


def resolve(target: Target, folder: Folder, depth: int = 0) -> tuple[Folder | None, Choice]:
    """The folder of the step that counts, listed whole, or None when the pointer's step cannot be reached. For no run folder, the
    folder itself.

    Without a pointer this is the newest step; whether it is complete is for the inspection to find out.
    """
    if depth >= 3 or not is_run(folder):
        return Folder(folder.path, target.boundary), Choice()
    choice = choose(folder)
    if choice.pointer:
        if not choice.wanted or any(reason.verdict >= Verdict.INCOMPLETE for reason in choice.reasons):
            return None, choice
        return _enter(target, folder, choice.wanted, choice, depth), choice
    steps = steps_of(folder)
    if not steps:
        return Folder(folder.path, target.boundary), choice
    return _enter(target, folder, steps[-1][1], choice, depth), choice


def _enter(target: Target, folder: Folder, name: str, choice: Choice, depth: int) -> Folder | None:
    """A step folder by its name, links resolved inside the boundary."""
    real = os.path.realpath(os.path.join(folder.path, name))
    if not within(target.boundary, real):
        choice.reasons.append(Reason(Verdict.HOSTILE, f"{name} leads out of the run's folder, to {real}", name))
        return None
    if not os.path.isdir(real):
        choice.reasons.append(Reason(Verdict.INCOMPLETE, f"{choice.pointer or 'the run'} names {name}, which is not there", name))
        return None
    flat = Folder(real, target.boundary, recursive=False)
    if real != folder.path and is_run(flat):
        inner, further = resolve(target, flat, depth + 1)
        choice.reasons.extend(further.reasons)
        return inner
    return Folder(real, target.boundary)
