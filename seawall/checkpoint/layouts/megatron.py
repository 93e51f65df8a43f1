"""One ``iter_`` (or ``release``) folder of Megatron-LM and Megatron Core (megatron/training/checkpointing.py as of core 0.16).

Old format: ``mp_rank_<tp>[_<pp>][_<ep>]/model_optim_rng.pt``. Distributed format: a DCP directory with ``common.pt`` and
``metadata.json``, which says
which. Which iteration counts is said by the tracker in the folder above.
"""

import re

from seawall.checkpoint.facts import number, step_in_name
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.layouts.dcp import inspect_dcp, is_dcp
from seawall.checkpoint.look import Look
from seawall.checkpoint.paths import joined
from seawall.checkpoint.pickles.nodes import lookup

TRACKER = "latest_checkpointed_iteration.txt"
RANK_FOLDER = re.compile(r"mp_rank_(?P<tp>\d{2,})(?:_(?P<pp>\d{3,}))?(?:_(?P<ep>\d{3,}))?")
MODEL_FILES = ("model_optim_rng.pt", "model_rng.pt")
MAX_RANKS = 100_000


def is_megatron(folders: list[str], names: list[str]) -> bool:
    """Whether names of sub-folders and files are those of one iteration."""
    return any(RANK_FOLDER.fullmatch(folder) for folder in folders) or "common.pt" in names or ("metadata.json" in names and is_dcp(names))


def inspect_iteration(look: Look, below: str = "", name: str = "") -> None:
    """Judge the folder ``below``, whose own name is ``name``."""
    names = look.folder.names(below)
    folders = [folder for folder in look.folder.folders(below) if RANK_FOLDER.fullmatch(folder)]
    if folders:
        _Old(look, below, name, folders).run()
    else:
        _distributed(look, below, name, names)
    if look.found.step is None:
        look.found.step = step_in_name(name)


def _distributed(look: Look, below: str, name: str, names: list[str]) -> None:
    backend, common = "torch_dist", "torch"
    if "metadata.json" in names:
        found = look.json(joined(below, "metadata.json"))
        if found is not None:
            backend, common = str(found.get("sharded_backend", backend)), str(found.get("common_backend", common))
    else:
        look.found.add(
            Verdict.INCOMPLETE, "metadata.json, which says how the folder is stored, is not there", joined(below, "metadata.json")
        )
    if "common.pt" in names:
        content = look.read(joined(below, "common.pt"))
        look.take(content)
        if content is not None:
            _same_iteration(look, joined(below, "common.pt"), number(content.top, "iteration"), name)
            args = lookup(content.top, "args")
            width = (number(args, "tensor_model_parallel_size") or 1) * (number(args, "pipeline_model_parallel_size") or 1)
            look.found.world_size = number(args, "world_size") or (width if width > 1 else None)
    elif common == "torch" and backend in ("torch_dist", "zarr"):
        look.found.add(Verdict.INCOMPLETE, "common.pt, which holds what is not sharded, is not there", joined(below, "common.pt"))
    if backend == "zarr":
        look.found.add(Verdict.WARN, "tensors are stored by zarr, which is not looked into", joined(below, "metadata.json"))
    else:
        inspect_dcp(look, below)


def _same_iteration(look: Look, path: str, said: int | None, name: str) -> None:
    if said is None:
        return
    if look.found.step is None:
        look.found.step = said
    match = re.fullmatch(r"iter_0*(\d+)", name)
    if match and int(match[1]) != said:
        look.found.add(Verdict.CORRUPT, f"it is of iteration {said}, the folder is {name}: a mix of saves", path)


class _Old:
    """The format before Megatron Core's distributed one: a folder for each rank of the model-parallel group."""

    def __init__(self, look: Look, below: str, name: str, folders: list[str]) -> None:
        self.look = look
        self.below = below
        self.name = name
        self.folders = folders

    def run(self) -> None:
        tensor, pipeline, expert = 0, 0, 1
        said: dict[str, int] = {}
        optimizers: list[str] = []
        for folder in self.folders:
            names = self.look.folder.names(joined(self.below, folder))
            path = joined(self.below, f"{folder}/{MODEL_FILES[0]}")
            model = next((name for name in MODEL_FILES if name in names), "")
            if "distrib_optim.pt" in names:
                optimizers.append(folder)
                self.look.take(self.look.read(joined(self.below, f"{folder}/distrib_optim.pt")), f"{folder}/optimizer")
            if not model:
                self.look.missing(path, f"{MODEL_FILES[0]} of this rank is not there")
                continue
            path = joined(self.below, f"{folder}/{model}")
            content = self.look.read(path)
            self.look.take(content, folder)
            if content is None:
                continue
            args = lookup(content.top, "args")
            tensor = max(tensor, number(args, "tensor_model_parallel_size") or 0)
            pipeline = max(pipeline, number(args, "pipeline_model_parallel_size") or 0)
            expert = max(expert, number(args, "expert_model_parallel_size") or 1)
            iteration = number(content.top, "iteration")
            if iteration is not None:
                said[path] = iteration
        self.missing(tensor, pipeline, expert)
        self.iterations(said)
        for folder in self.folders:
            if optimizers and folder not in optimizers:
                path = joined(self.below, f"{folder}/distrib_optim.pt")
                self.look.missing(path, "the distributed optimizer of this rank is not there, others have theirs")
        if tensor or pipeline:
            self.look.found.world_size = max(tensor, 1) * max(pipeline, 1)

    def missing(self, tensor: int, pipeline: int, expert: int) -> None:
        """Ranks by the arguments that training stored; by gaps in the numbering without them."""
        ranks = [match for folder in self.folders if (match := RANK_FOLDER.fullmatch(folder))]
        if not tensor:
            tensor = max(int(match["tp"]) for match in ranks) + 1
        numbers = sum(1 for group in ("pp", "ep") if any(match[group] for match in ranks))
        if not pipeline:
            pipeline = max(int(match["pp"] or 0) for match in ranks) + 1 if numbers and not (expert > 1 and numbers == 1) else 1
        if tensor * pipeline * max(expert, 1) > MAX_RANKS:
            self.look.found.add(Verdict.CORRUPT, f"{tensor} x {pipeline} x {expert} model-parallel ranks are claimed", self.below)
            return
        have = set(self.folders)
        for tp in range(tensor):
            for pp in range(pipeline):
                name = f"mp_rank_{tp:02d}" + (f"_{pp:03d}" if pipeline > 1 else "")
                if not any(folder == name or folder.startswith(name + "_") for folder in have):
                    path = joined(self.below, f"{name}/{MODEL_FILES[0]}")
                    self.look.found.add(
                        Verdict.INCOMPLETE, f"{name} is not there: training used {tensor} x {pipeline} model-parallel ranks", path
                    )
                for ep in range(expert if expert > 1 and numbers > (pipeline > 1) else 0):
                    if f"{name}_{ep:03d}" not in have:
                        path = joined(self.below, f"{name}_{ep:03d}/{MODEL_FILES[0]}")
                        self.look.missing(path, f"expert rank {ep} is not there: training used {expert}")

    def iterations(self, said: dict[str, int]) -> None:
        if re.fullmatch(r"iter_\d+", self.name):
            for path, iteration in said.items():
                _same_iteration(self.look, path, iteration, self.name)
        elif len(set(said.values())) > 1:
            for path, iteration in said.items():
                self.look.found.add(Verdict.CORRUPT, f"it is of iteration {iteration}, not all ranks are: a mix of saves", path)
        if said and self.name != "release":
            self.look.found.step = max(said.values(), key=list(said.values()).count)
