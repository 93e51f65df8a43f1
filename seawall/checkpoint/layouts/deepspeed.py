"""One tag folder of DeepSpeed ZeRO: model states and optimizer partitions (deepspeed/runtime/engine.py, zero/stage_1_and_2.py,
stage3.py as of 0.19).

How many partitions there must be is said inside the files (``partition_count``), never by counting what is there. Which tag counts
is said by the
file ``latest`` in the folder above, which belongs to the run and not to the tag.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from seawall.checkpoint.facts import number, step_in_name
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.look import Look
from seawall.checkpoint.paths import joined
from seawall.checkpoint.pickles.nodes import Node, lookup, pairs_of

MODEL = re.compile(r"mp_rank_(?P<mp>\d+)_model_states\.pt")
MODEL_ZERO3 = re.compile(r"(?:bf16_)?zero_pp_rank_(?P<dp>\d+)_mp_rank_(?P<mp>\d+)_model_states\.pt")
PIPELINE = re.compile(r"layer_(?P<layer>\d+)-model_(?P<mp>\d+)-model_states\.pt")
EXPERT = re.compile(r"(?:layer_(?P<layer>\d+)_)?expert_(?P<expert>\d+)_mp_rank_(?P<mp>\d+)_model_states\.pt")
OPTIMIZER = re.compile(r"(?P<prefix>(?:bf16_|fp16_)?zero_pp_rank_)(?P<dp>\d+)(?P<rest>_mp_rank_(?P<mp>\d+)_optim_states\.pt)")
EXPERT_OPTIMIZER = re.compile(r"expp_rank_(?P<rank>\d+)_mp_rank_(?P<mp>\d+)_optim_states\.pt")
ANY = (MODEL, MODEL_ZERO3, PIPELINE, EXPERT, OPTIMIZER, EXPERT_OPTIMIZER)
STEP_IN_TAG = re.compile(r"global_step(\d+)")
MAX_RANKS = 200_000


def is_deepspeed(names: Iterable[str]) -> bool:
    """Whether file names of one folder are those of a tag."""
    return any(pattern.fullmatch(name) for name in names for pattern in ANY)


@dataclass(slots=True)
class _File:
    name: str
    dp: int
    mp: int
    top: Node


def inspect_tag(look: Look, below: str = "", tag: str = "") -> None:
    """Judge the tag folder ``below``; ``tag`` is its own name."""
    _Tag(look, below, tag).run()


class _Tag:
    def __init__(self, look: Look, below: str, tag: str) -> None:
        self.look = look
        self.below = below
        self.tag = tag
        self.names = look.folder.names(below)

    def run(self) -> None:
        models = [*self.files(MODEL), *self.files(PIPELINE)]
        zero3 = self.files(MODEL_ZERO3)
        optimizers = self.files(OPTIMIZER)
        self.files(EXPERT)
        self.files(EXPERT_OPTIMIZER)
        universal = self.look.folder.has_folder(joined(self.below, "zero"))
        tops = [one.top for one in (*models, *zero3) if one.top is not None]
        self.model_states(tops, zero3)
        self.experts()
        if universal:
            self.universal()
        else:
            self.partitions(optimizers, tops)
        self.steps([*models, *zero3], optimizers)
        data = max((number(top, "dp_world_size") or 0 for top in tops), default=0)
        if data:
            self.look.found.world_size = data * max(number(top, "mp_world_size") or 1 for top in tops)

    def files(self, pattern: re.Pattern[str]) -> list[_File]:
        found = []
        for name in self.names:
            match = pattern.fullmatch(name)
            if match:
                content = self.look.read(joined(self.below, name))
                self.look.take(content, name)
                groups = match.groupdict()
                found.append(_File(name, int(groups.get("dp") or 0), int(groups.get("mp") or 0), content.top if content else None))
        return found

    def missing(self, name: str, why: str) -> None:
        self.look.missing(joined(self.below, name), f"{name} is not there: {why}")

    def countable(self, claimed: int) -> bool:
        """Whether that many files can be meant. The numbers stand in files and in names, and looking for each would never end."""
        if claimed > MAX_RANKS:
            self.look.found.add(Verdict.CORRUPT, f"{claimed} files of ranks are claimed", self.below)
        return claimed <= MAX_RANKS

    def model_states(self, tops: list[Node], zero3: list[_File]) -> None:
        present = set(self.names)
        model_parallel = min(max((number(top, "mp_world_size") or 1 for top in tops), default=1), MAX_RANKS)
        if any(MODEL_ZERO3.fullmatch(name) for name in present):
            data = max((number(one.top, "dp_world_size") or 0 for one in zero3), default=0) or max(one.dp for one in zero3) + 1
            if not self.countable(model_parallel * data):
                return
            for mp in range(model_parallel):
                for dp in range(data):
                    name = f"zero_pp_rank_{dp}_mp_rank_{mp:02d}_model_states.pt"
                    if name not in present and f"bf16_{name}" not in present:
                        self.missing(name, f"ZeRO stage 3 writes one for each of {data} ranks")
            return
        if not any(MODEL.fullmatch(name) or PIPELINE.fullmatch(name) for name in present):
            self.missing("mp_rank_00_model_states.pt", "no file holds the model")
            return
        for mp in range(model_parallel):
            name = f"mp_rank_{mp:02d}_model_states.pt"
            if name not in present:
                self.missing(name, f"the model is split over {model_parallel}")
        layers = [(int(match["layer"]), int(match["mp"])) for name in present if (match := PIPELINE.fullmatch(name))]
        if layers:
            # Layers without parameters write no file, so only the split of each one can be checked.
            width, there = max(mp for _, mp in layers) + 1, set(layers)
            numbers = sorted({layer for layer, _ in layers})
            for layer in numbers if self.countable(width * len(numbers)) else ():
                for mp in range(width):
                    if (layer, mp) not in there:
                        self.missing(f"layer_{layer:02d}-model_{mp:02d}-model_states.pt", f"its layers are split over {width}")

    def experts(self) -> None:
        groups: dict[tuple[str, str], set[int]] = {}
        for name in self.names:
            match = EXPERT.fullmatch(name)
            if match:
                groups.setdefault((match["layer"] or "", match["mp"]), set()).add(int(match["expert"]))
        most = max((max(found) + 1 for found in groups.values()), default=0)
        for (layer, mp), found in sorted(groups.items()) if self.countable(most * len(groups)) else ():
            for expert in range(most):
                if expert not in found:
                    start = f"layer_{layer}_" if layer else ""
                    self.missing(f"{start}expert_{expert}_mp_rank_{mp}_model_states.pt", f"there are {most} experts in a layer")

    def partitions(self, optimizers: list[_File], tops: list[Node]) -> None:
        if not optimizers:
            stage = max((self.stage(top) for top in tops), default=0)
            if stage > 0 and not any(EXPERT_OPTIMIZER.fullmatch(name) for name in self.names):
                self.missing("zero_pp_rank_0_mp_rank_00_optim_states.pt", f"ZeRO stage {stage} keeps the optimizer in such files")
            return
        said = {(one.dp, one.mp): self.partition_count(one.top) for one in optimizers}
        count = _agreed(said)
        if not count:
            count = max((number(top, "dp_world_size") or 0 for top in tops), default=0) or max(one.dp for one in optimizers) + 1
        pattern = OPTIMIZER.fullmatch(optimizers[0].name)
        prefix = pattern["prefix"] if pattern else "zero_pp_rank_"
        present = {(one.dp, one.mp) for one in optimizers}
        width = min(max((number(top, "mp_world_size") or 1 for top in tops), default=1), MAX_RANKS)
        parallel = sorted({one.mp for one in optimizers} | set(range(width)))
        for mp in parallel if self.countable(len(parallel) * count) else ():
            for dp in range(count):
                if (dp, mp) not in present:
                    self.missing(f"{prefix}{dp}_mp_rank_{mp:02d}_optim_states.pt", f"the optimizer is split over {count}")
        for one in optimizers:
            if one.dp >= count:
                self.look.found.add(
                    Verdict.WARN,
                    f"the optimizer is split over {count}, this is part {one.dp}: left over from a larger run",
                    joined(self.below, one.name),
                )

    def stage(self, top: Node) -> int:
        return number(lookup(lookup(top, "ds_config"), "zero_optimization"), "stage") or 0

    def partition_count(self, top: Node) -> int:
        inner = lookup(top, "optimizer_state_dict")
        value = lookup(inner, "partition_count")
        if isinstance(value, list):
            return max((part for part in value if isinstance(part, int) and part.bit_length() < 63), default=0)
        return number(inner, "partition_count") or 0

    def universal(self) -> None:
        """A universal checkpoint keeps a folder for each parameter, with its weights and moments
        (deepspeed/checkpoint/ds_to_universal.py)."""
        root = joined(self.below, "zero")
        folders = [name for name, entry in self.look.folder.entries.items() if entry.kind == "folder" and name.startswith(root + "/")]
        holders = {folder: {name for name in self.look.folder.names(folder) if name.endswith(".pt")} for folder in sorted(folders)}
        holders = {folder: names for folder, names in holders.items() if names or not self.look.folder.folders(folder)}
        usual: set[str] = set().union(*holders.values()) & {"fp32.pt", "exp_avg.pt", "exp_avg_sq.pt"} if holders else set()
        for folder, names in holders.items():
            for name in sorted(names):
                self.look.take(self.look.read(joined(folder, name)), joined(folder, name))
            for name in sorted((usual | {"fp32.pt"}) - names):
                self.look.found.add(Verdict.INCOMPLETE, f"{name} of this parameter is not there", joined(folder, name))
        if not holders:
            self.look.found.add(Verdict.INCOMPLETE, "the folder of parameters is empty", root)

    def steps(self, models: list[_File], optimizers: list[_File]) -> None:
        """Model states carry ``global_steps``; optimizers count their own steps, which can be fewer (skipped for overflow) but not more."""
        said = {one.name: step for one in models if (step := number(one.top, "global_steps")) is not None}
        match = STEP_IN_TAG.search(self.tag)
        if match:
            for name, step in said.items():
                if step != int(match[1]):
                    self.look.found.add(
                        Verdict.CORRUPT, f"it is of step {step}, the tag is {self.tag}: a mix of saves", joined(self.below, name)
                    )
        elif len(set(said.values())) > 1:
            for name, step in said.items():
                self.look.found.add(Verdict.CORRUPT, f"it is of step {step}, not all files are: a mix of saves", joined(self.below, name))
        if said:
            self.look.found.step = max(said.values(), key=list(said.values()).count)
        elif self.look.found.step is None:
            self.look.found.step = step_in_name(self.tag)
        counts = {one.name: step for one in optimizers if (step := optimizer_step(one.top)) is not None}
        usual = max(counts.values(), key=list(counts.values()).count, default=0)
        for name, step in counts.items():
            tied = len(set(counts.values())) > 1 and list(counts.values()).count(usual) * 2 <= len(counts)
            if step != usual or tied:
                self.look.found.add(
                    Verdict.CORRUPT, f"its optimizer is at step {step}, others at another: a mix of saves", joined(self.below, name)
                )
            elif self.look.found.step is not None and step > self.look.found.step:
                self.look.found.add(
                    Verdict.CORRUPT,
                    f"its optimizer is at step {step}, the model at {self.look.found.step}: a mix of saves",
                    joined(self.below, name),
                )


def _agreed(said: dict[tuple[int, int], int]) -> int:
    """How many partitions there are. When files differ, a smaller number counts if its partitions are all there and say so: others
    are left over."""
    for count in sorted(set(said.values())):
        if count and all(said.get((rank, 0)) == count for rank in range(min(count, len(said) + 1))):
            return count
    return max(said.values(), default=0)


def optimizer_step(top: Node) -> int | None:
    """The largest step that a partition's base optimizer counts, where it is a plain number."""
    state = lookup(lookup(lookup(top, "optimizer_state_dict"), "base_optimizer_state"), "state")
    steps = [step for _, value in pairs_of(state) if (step := number(value, "step")) is not None]
    return max(steps, default=None)
