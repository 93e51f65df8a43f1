"""A ``checkpoint-N`` folder of the Hugging Face Trainer (transformers 5.24, trainer.py).

``trainer_state.json`` is written last. Weights may be one safetensors file, shards with an index, an adapter, a distributed
checkpoint (FSDP), or a
DeepSpeed tag in a sub-folder; which optimizer files belong to it follows from that.
"""

import math
import re
from typing import Any

from seawall.checkpoint.facts import number, step_in_name
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.layouts.dcp import inspect_dcp, is_dcp
from seawall.checkpoint.layouts.deepspeed import inspect_tag, is_deepspeed
from seawall.checkpoint.layouts.loose import inspect_files
from seawall.checkpoint.layouts.sharded import indexes, inspect_sharded, numbered
from seawall.checkpoint.look import Look
from seawall.checkpoint.pickles.nodes import Node, lookup, pairs_of

STATE = "trainer_state.json"
OPTIMIZERS = ("optimizer.pt", "optimizer.bin")
SINGLE_WEIGHTS = (
    "model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin", "pytorch_model_fsdp.bin", "model.pt",
    "consolidated.safetensors", "tf_model.h5", "model.bin",
)  # fmt: skip
RESUME_FILES = ("optimizer.pt", "optimizer.bin", "scheduler.pt", "training_args.bin")
RANDOM = re.compile(r"rng_state(?:_(\d+))?\.pth")


def is_trainer(names: list[str], folder_name: str) -> bool:
    """Whether file names of one folder are those of a Trainer checkpoint."""
    if STATE in names:
        return True
    signs = sum(name in names for name in RESUME_FILES) + any(RANDOM.fullmatch(name) for name in names)
    return signs >= 2 or (signs >= 1 and re.fullmatch(r"checkpoint-\d+", folder_name) is not None)


def inspect_trainer(look: Look, name: str = "") -> None:
    """Judge the inspected folder, whose own name is ``name``."""
    _Trainer(look, name).run()


class _Trainer:
    def __init__(self, look: Look, name: str) -> None:
        self.look = look
        self.name = name
        self.names = look.folder.names()
        self.deepspeed = ""
        self.sharded_folders: list[str] = []

    def run(self) -> None:
        state = self.state()
        self.weights()
        self.resume()
        self.random_states()
        inspect_files(self.look)
        for name in ("config.json", "adapter_config.json", "generation_config.json"):
            if name in self.names:
                self.look.json(name)
        self.steps(state)

    def state(self) -> dict[str, Any] | None:
        if STATE not in self.names:
            self.look.found.add(Verdict.INCOMPLETE, f"{STATE}, which is written last, is not there", STATE)
            return None
        state = self.look.json(STATE)
        step = (state or {}).get("global_step")
        if isinstance(step, int) and not isinstance(step, bool) and 0 <= step < 1 << 62:
            self.look.found.step = step
        elif state is not None:
            self.look.found.add(Verdict.WARN, "global_step is not in the state", STATE)
        history = (state or {}).get("log_history")
        last = history[-1] if isinstance(history, list) and history and isinstance(history[-1], dict) else {}
        for key, value in last.items():
            if isinstance(value, float) and not math.isfinite(value):
                self.look.found.add(Verdict.WARN, f"the last logged {key} is {value}: the run had diverged", STATE)
                break
        return state

    def weights(self) -> None:
        """One of the forms must be there."""
        found = any(name in self.names for name in SINGLE_WEIGHTS)
        if indexes(self.names) or numbered(self.names):
            inspect_sharded(self.look)
            found = True
        for folder in self.look.folder.folders():
            names = self.look.folder.names(folder)
            if is_dcp(names):
                inspect_dcp(self.look, folder, "optimizer." if folder.startswith("optimizer") else "")
                self.sharded_folders.append(folder)
                found = found or not folder.startswith("optimizer")
            elif is_deepspeed(names):
                if not self.deepspeed or folder == self.latest():
                    self.deepspeed = folder
            elif folder.startswith(("pytorch_model_fsdp", "optimizer_")):
                self.look.found.add(Verdict.INCOMPLETE, "the distributed checkpoint in this folder has no files", f"{folder}/.metadata")
        if self.deepspeed or "latest" in self.names:
            self.tag()
            found = True
        if not found:
            self.look.found.add(Verdict.INCOMPLETE, "no file holds the weights (model.safetensors or its kin)", "model.safetensors")

    def latest(self) -> str:
        if "latest" not in self.names:
            return ""
        with self.look.guarded("latest"):
            return self.look.folder.read("latest", 4096).decode("utf-8", "replace").strip()
        return ""

    def tag(self) -> None:
        tag = self.latest() or self.deepspeed
        if "latest" not in self.names:
            self.look.found.add(Verdict.INCOMPLETE, "DeepSpeed's file latest, which is written after the tag, is not there", "latest")
        if not self.look.folder.has_folder(tag):
            self.look.found.add(Verdict.INCOMPLETE, f"latest names {tag}, which is not there", tag)
            return
        self.deepspeed = tag
        step = self.look.found.step
        inspect_tag(self.look, tag, tag)
        if step is not None:
            self.look.found.step = step

    def resume(self) -> None:
        """What is needed to go on training, as against serving."""
        if self.deepspeed or "latest" in self.names:
            return
        optimizer = [name for name in OPTIMIZERS if name in self.names] or [
            folder for folder in self.sharded_folders if folder.startswith("optimizer")
        ]
        scheduler = "scheduler.pt" in self.names
        random = any(RANDOM.fullmatch(name) for name in self.names)
        if optimizer and not scheduler:
            self.look.found.add(
                Verdict.INCOMPLETE,
                "scheduler.pt is not there, and the Trainer restores the optimizer only together with it",
                "scheduler.pt",
            )
        elif not optimizer and (scheduler or random):
            self.look.found.add(
                Verdict.INCOMPLETE, "optimizer.pt is not there: good enough to serve, not to go on training", "optimizer.pt"
            )
        elif not optimizer and not any(name.startswith("pytorch_model_fsdp") for name in self.names):
            self.look.found.add(Verdict.WARN, "only the model was saved: training cannot go on from it as it was", "optimizer.pt")

    def random_states(self) -> None:
        ranks = sorted(int(match[1]) for name in self.names if (match := RANDOM.fullmatch(name)) and match[1])
        alone = "rng_state.pth" in self.names
        if not ranks and not alone and any(name in self.names for name in OPTIMIZERS):
            self.look.found.add(Verdict.WARN, "no random state was saved: data order and dropout will differ", "rng_state.pth")
        wanted = self.look.found.world_size or (ranks[-1] + 1 if ranks else 0)
        for rank in range(min(wanted, 100_000) if ranks else 0):
            if rank not in ranks:
                self.look.found.add(Verdict.WARN, f"the random state of rank {rank} is not there", f"rng_state_{rank}.pth")
        if ranks and self.look.found.world_size is None:
            self.look.found.world_size = ranks[-1] + 1

    def steps(self, state: dict[str, Any] | None) -> None:
        """Parts of one save agree about the step. Where the optimizer was begun anew, it and the scheduler agree with each other
        and are behind."""
        step = self.look.found.step
        named = step_in_name(self.name) if re.fullmatch(r"checkpoint-\d+", self.name) else None
        if step is None or state is None:
            self.look.found.step = step if step is not None else named
            return
        optimizer = next((name for name in OPTIMIZERS if name in self.names), "")
        content = self.look.seen.get(optimizer) if optimizer else None
        counted = self.optimizer_steps(optimizer, content.top) if content is not None else None
        scheduler = self.look.seen.get("scheduler.pt")
        scheduled = number(scheduler.top, "last_epoch") if scheduler is not None else None
        if counted is not None and counted > step:
            late = STATE if scheduled == counted or named == counted else optimizer
            self.look.found.add(Verdict.CORRUPT, f"the optimizer is at step {counted}, {STATE} says {step}: a mix of saves", late)
        elif counted is not None and counted < step and scheduled == step and "scaler.pt" not in self.names:
            self.look.found.add(
                Verdict.CORRUPT, f"the optimizer is at step {counted}, {STATE} and the scheduler at {step}: a mix of saves", optimizer
            )
        elif scheduled is not None and counted == step and scheduled not in (0, step) and scheduled % step if step else False:
            self.look.found.add(
                Verdict.CORRUPT, f"the scheduler is at step {scheduled}, everything else at {step}: a mix of saves", "scheduler.pt"
            )
        if named is not None and named != step:
            verdict = Verdict.CORRUPT if named in (counted, scheduled) else Verdict.WARN
            self.look.found.add(verdict, f"{STATE} says step {step}, the folder is {self.name}", STATE)

    def optimizer_steps(self, file: str, top: Node) -> int | None:
        """The largest ``step`` of the per-parameter state; torch keeps it as a tensor of one number, whose bytes are read."""
        best: int | None = None
        for key, _ in pairs_of(lookup(top, "state"))[:64]:
            found = self.look.scalar(file, f"state.{key}.step")
            direct = number(next((value for name, value in pairs_of(lookup(top, "state")) if name is key), None), "step")
            value = direct if direct is not None else found
            if value is not None:
                best = value if best is None else max(best, value)
        return best
