"""Feeds one parser with damaged inputs, in a process of its own whose memory and time are bounded.

    python -m tests.checkpoint.fuzz SEEDS KIND COUNT SEED

SEEDS is the folder of cases. Exits 0 and prints the verdicts met. Any exception that is no SeawallError, a hang, or more than 512 MiB on
top of the bare interpreter ends it with 1 and the input's number, which together with the seed makes the input again.
"""

import collections
import io
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import zipfile
from pathlib import Path
from types import FrameType

import numpy  # noqa: F401  # its own memory is not the parser's

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.source import commit_mark_digest, list_source
from seawall.errors import SeawallError

MEMORY = 512 << 20
SECONDS = 5

KINDS: dict[str, list[tuple[str, str]]] = {
    "torch-zip": [
        ("zip-ok-mixed-dtypes", "model.pt"),
        ("zip-ok-quantised", "model.pt"),
        ("zip-ok-deflated", "model.pt"),
        ("zip-ok-torchscript", "model.pt"),
    ],
    "torch-pickle": [
        ("zip-ok-plain-python", "model.pt"),
        ("zip-ok-whole-module", "model.pt"),
        ("zip-ok-protocol-4", "model.pt"),
        ("zip-ok-random-states", "model.pt"),
        ("zip-ok-views-transposed-expanded", "model.pt"),
        ("zip-ok-sparse-coo-csr", "model.pt"),
        ("hostile-laughs", "model.pt"),
    ],
    "torch-legacy": [
        ("legacy-ok-tied-and-nested", "old.pth"),
        ("legacy-ok-dtypes", "old.pth"),
        ("legacy-ok-two-objects", "old.pth"),
    ],
    "bare-pickle": [
        ("unknown-bare-pickle", "state.pkl"),
        ("unknown-bare-pickle-protocol-0", "state.pkl"),
    ],
    "safetensors": [
        ("st-ok-unicode-zero-dim", "model.safetensors"),
        ("st-ok-all-integers", "model.safetensors"),
        ("st-ok-padded-header", "model.safetensors"),
    ],
    "sharded": [
        ("shards-ok-three", "model.safetensors.index.json"),
        ("bin-ok-sharded", "pytorch_model.bin.index.json"),
    ],
    "dcp-metadata": [
        ("dcp-ok-two-ranks", ".metadata"),
        ("dcp-ok-two-dimensions", ".metadata"),
        ("dcp-ok-planner-classes", ".metadata"),
    ],
    "dcp-chunks": [
        ("dcp-ok-uneven", "__0_0.distcp"),
        ("dcp-ok-objects-only", "__0_0.distcp"),
    ],
    "hf-trainer": [
        ("hf-ok-opaque-pickles", "checkpoint-200/trainer_state.json"),
        ("hf-ok-deepspeed", "checkpoint-200/latest"),
        ("hf-ok-old-bin", "checkpoint-200/optimizer.pt"),
    ],
    "deepspeed": [
        ("ds-ok-stage2", "latest"),
        ("ds-ok-stage2", "global_step100/mp_rank_00_model_states.pt"),
        ("ds-ok-stage-3", "global_step100/zero_pp_rank_0_mp_rank_00_optim_states.pt"),
    ],
    "megatron": [
        ("mg-ok-distributed", "iter_0000120/metadata.json"),
        ("mg-ok-distributed", "iter_0000120/common.pt"),
        ("mg-ok-pipeline", "latest_checkpointed_iteration.txt"),
    ],
    "rank-shards": [
        ("ranks-ok-nothing-said", "rank_00001.pt"),
        ("ranks-ok-mark-in-json", "_COMMITTED"),
        ("ranks-ok-safetensors", "rank_00001.safetensors"),
    ],
}
"""For each parser: cases, and the file in them that is damaged."""
WHOLE_FOLDER = {"sharded", "dcp-metadata", "dcp-chunks", "hf-trainer", "deepspeed", "megatron", "rank-shards"}
NUMBERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1, 1 << 40]


def mutate(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """One to four changes of different kinds."""
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(raw) + 1)
        length = min(rng.choice((1, 2, 4, 8, 64, 512)), len(raw) - at)
        match rng.randrange(10):
            case 0 | 1 if raw:
                raw[at % len(raw)] ^= 1 << rng.randrange(8)
            case 2 if raw:
                raw[at % len(raw)] = rng.randrange(256)
            case 3:
                del raw[at : at + length]
            case 4:
                raw[at:at] = rng.randbytes(length)
            case 5:
                raw[at : at + length] = bytes(length)
            case 6:
                del raw[at:]
            case 7:
                width = rng.choice((1, 2, 4, 8))
                raw[at : at + width] = (rng.choice(NUMBERS) & ((1 << (8 * width)) - 1)).to_bytes(width, rng.choice(("little", "big")))
            case 8 if other:
                start = rng.randrange(len(other))
                raw[at : at + length] = other[start : start + max(1, length)]
            case _:
                raw[at:at] = raw[at : at + length] * rng.choice((1, 3))
    return bytes(raw)


def mutate_structure(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Change the structure record of a torch zip and pack it again soundly, so that the change reaches the unpickler."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            raw = source.read(info)
            if info.filename.endswith("data.pkl"):
                raw = mutate(rng, raw, other)
            target.writestr(zipfile.ZipInfo(info.filename), raw)
    return out.getvalue()


class HangError(BaseException):
    """Not an Exception, so that nothing under test can swallow it."""


def _on_alarm(signum: int, frame: FrameType | None) -> None:
    raise HangError


def _grown() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()


def run(seeds: Path, kind: str, count: int, seed: int) -> collections.Counter[str]:
    met: collections.Counter[str] = collections.Counter()
    signal.signal(signal.SIGALRM, _on_alarm)
    resource.setrlimit(resource.RLIMIT_AS, (_grown() + MEMORY, resource.RLIM_INFINITY))
    originals = [(seeds / case / file).read_bytes() for case, file in KINDS[kind]]
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for number in range(count):
            rng = random.Random(f"{seed}:{kind}:{number}")
            which = rng.randrange(len(originals))
            case, file = KINDS[kind][which]
            change = mutate_structure if kind == "torch-pickle" else mutate
            damaged = change(rng, originals[which], rng.choice(originals))
            target = Path(scratch) / "case"
            if kind in WHOLE_FOLDER:
                if number == 0 or not (target / ".of").exists() or (target / ".of").read_text() != case:
                    shutil.rmtree(target, ignore_errors=True)
                    shutil.copytree(seeds / case, target, symlinks=True)
                    (target / ".of").write_text(case)
                else:
                    (target / file).write_bytes(b"")
                (target / file).write_bytes(damaged)
                inspected = target / "checkpoint-200" if kind == "hf-trainer" else target
            else:
                target.mkdir(exist_ok=True)
                inspected = target / Path(file).name
                inspected.write_bytes(damaged)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                found = inspect(inspected, deep=True)
                list_source(found.path)
                commit_mark_digest(found)
                met[found.verdict.word] += 1
            except SeawallError as error:
                met[type(error).__name__] += 1
            except BaseException as error:
                print(f"input {number} of {kind} with seed {seed}: {type(error).__name__}: {error}")
                raise
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if kind in WHOLE_FOLDER:
                (target / file).write_bytes(originals[which])
            if Path("PAYLOAD_RAN.marker").exists():
                raise AssertionError(f"input {number} of {kind} with seed {seed} ran a payload")
    return met


if __name__ == "__main__":
    print(dict(run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
