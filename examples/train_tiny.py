"""A small transformer that really trains, on text that every machine has, with everything that seawall gives a trainer.

    python examples/train_tiny.py --folder checkpoints --steps 100
    python -m torch.distributed.run --nproc-per-node 2 examples/train_tiny.py --folder checkpoints --steps 200 --resume-from checkpoints

It predicts the next byte of Python's own standard library. It resumes on another number of ranks; on one process with
``--deterministic`` it resumes exactly: the losses after it are those of a run that was never interrupted, bit for bit. ``--losses`` writes
them as hexadecimal floats, so that they can be compared. What of this belongs to seawall, and how to put it into another trainer, is in
docs/training.md.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import socket
import sysconfig
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn import functional as F

from seawall.training.checkpointer import Checkpointer
from seawall.training.epoch import EpochWatch, epoch_of
from seawall.training.heartbeat import Heartbeat
from seawall.training.notifier import Notifier
from seawall.training.proved import proved_copies_of
from seawall.training.ranks import Ranks
from seawall.training.resume import find, load


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.attention_in = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.attention_in(self.before_attention(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.dropout(self.attention_out(mixed))
        return x + self.dropout(self.mlp(self.before_mlp(x)))


class ByteTransformer(nn.Module):
    """5 million parameters as it comes; under 1 million with ``--width 128 --layers 4``."""

    def __init__(self, width: int, layers: int, context: int, dropout: float) -> None:
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, width // 32, dropout) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.out = nn.Linear(width, 256)

    def forward(self, text: Tensor) -> Tensor:
        x = self.bytes(text) + self.places.weight[: text.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.out(self.last(x))


class Text:
    """Windows of the standard library's sources, in an order shuffled anew for each pass. Where it is, is one number."""

    def __init__(self, nbytes: int, context: int, seed: int) -> None:
        sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
        raw = b"".join(path.read_bytes() for path in sources)[:nbytes]
        self.digest = hashlib.sha256(raw).hexdigest()
        self.bytes = torch.frombuffer(bytearray(raw), dtype=torch.uint8).long()
        self.context, self.seed = context, seed
        self.windows = (len(raw) - 1) // context
        self.position = 0
        self._pass, self._order = -1, torch.empty(0, dtype=torch.long)

    def next(self, count: int) -> Tensor:
        """The next ``count`` windows (count × (context + 1) bytes), whatever the number of ranks that share them."""
        found = []
        for at in range(self.position, self.position + count):
            if at // self.windows != self._pass:
                self._pass = at // self.windows
                self._order = torch.randperm(self.windows, generator=torch.Generator().manual_seed(self.seed + self._pass))
            start = int(self._order[at % self.windows]) * self.context
            found.append(self.bytes[start : start + self.context + 1])
        self.position += count
        return torch.stack(found)


class Trainer:
    def __init__(self, options: argparse.Namespace, rank: int, ranks: int) -> None:
        self.options, self.rank, self.ranks, self.step = options, rank, ranks, 0
        torch.manual_seed(options.seed)
        self.text = Text(options.text_bytes, options.context, options.seed)
        self.model: nn.Module = ByteTransformer(options.width, options.layers, options.context, options.dropout)
        if options.shard:
            from torch.distributed.fsdp import fully_shard

            for block in self.model.blocks:
                fully_shard(block)
            fully_shard(self.model)
        elif ranks > 1:
            self.model = nn.parallel.DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.learning_rate, weight_decay=0.1)
        # Each rank draws its own dropout.
        torch.manual_seed(options.seed * 1000 + rank)

    def state(self) -> dict[str, Any]:
        """All that the next step depends on. What differs between ranks has the rank in its name: DCP keeps one of equal names."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {
            "model": model,
            "optimizer": optimizer,
            "step": self.step,
            "text": {"position": self.text.position, "digest": self.text.digest},
            "random": {f"rank{self.rank}": torch.get_rng_state()},
        }

    def resume(self, folder: str, ranks: Ranks) -> None:
        found = find(folder, ranks)
        state = self.state()
        if found.world_size is not None and self.rank >= found.world_size:
            del state["random"]  # There were fewer ranks, so there is no random state of this one.
        load(found.path, state, leave=("random.",), ranks=ranks)
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        if state["text"]["digest"] != self.text.digest:
            say(self.rank, "this machine's standard library is another one: losses will not be those of the run that was saved")
        self.text.position, self.step = state["text"]["position"], state["step"]
        if "random" in state:
            torch.set_rng_state(state["random"][f"rank{self.rank}"])
        for warning in found.warnings:
            say(self.rank, f"warning: {warning}")
        say(self.rank, f"resumed from step {found.step} of epoch {found.epoch}, written by {found.world_size} ranks")

    def train_step(self) -> tuple[float, float]:
        """One step over ``--batch`` windows, shared by all ranks; loss (mean over ranks) and gradient norm."""
        windows = self.text.next(self.options.batch)[self.rank :: self.ranks]
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.learning_rate * min(1.0, (self.step + 1) / 20)
        loss = F.cross_entropy(self.model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        mean = loss.detach()
        if self.ranks > 1:
            dist.all_reduce(mean)
            mean /= self.ranks
        return mean.item(), float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)


def say(rank: int, what: str) -> None:
    if rank == 0:
        print(what, flush=True)


@contextlib.contextmanager
def protection(options: argparse.Namespace, rank: int) -> Iterator[tuple[Checkpointer, Heartbeat | None]]:
    """The part of seawall in this trainer: a heartbeat on every rank, and on rank 0 word to Airflow, a look at the epoch, and pruning."""
    with contextlib.ExitStack() as stack:
        heartbeat = watch = notifier = proved = None
        if options.board:
            heartbeat = Heartbeat(options.board, options.run, rank=rank, epoch=options.epoch, every=options.beat_seconds)
            stack.callback(heartbeat.close)
        if rank == 0 and options.notify:
            from seawall.training.airflow_events import AirflowEvents
            from seawall.training.credentials import from_environment, from_file

            credentials = from_file(Path(options.credentials)) if options.credentials else from_environment()
            notifier = Notifier(AirflowEvents(options.notify, credentials), options.run, Path(options.folder) / ".events")
            stack.callback(notifier.close)
        if rank == 0 and options.log:
            from seawall.stores.locate import open_store
            from seawall.vault.signing import PublicKey

            root = PublicKey.from_text(options.trust_root)
            watch = EpochWatch(epoch_of(open_store(options.log), options.run, root))
            stack.callback(watch.close)
            proved = proved_copies_of(open_store(options.log), options.run, root)
        yield (
            stack.enter_context(
                Checkpointer(
                    options.folder,
                    epoch=options.epoch,
                    keep=options.keep,
                    copies_before_pruning=options.copies,
                    proved_copies=proved,
                    epoch_watch=watch,
                    on_commit=notifier,
                    heartbeat=heartbeat,
                    timeout=timedelta(minutes=5),
                )
            ),
            heartbeat,
        )


def train(options: argparse.Namespace, rank: int, ranks: int, losses: TextIO | None) -> None:
    with protection(options, rank) as (checkpointer, heartbeat):
        trainer = Trainer(options, rank, ranks)
        if options.resume_from:
            with heartbeat.phase("loading") if heartbeat else contextlib.nullcontext():
                trainer.resume(options.resume_from, checkpointer.ranks)
        else:
            say(rank, f"{sum(p.numel() for p in trainer.model.parameters()) / 1e6:.1f} million parameters, {ranks} ranks")
        while trainer.step < options.steps:
            loss, norm = trainer.train_step()
            if heartbeat:
                heartbeat.report(trainer.step, loss=loss, gradient_norm=norm)
            if losses:
                line = {"step": trainer.step, "loss": loss.hex(), "gradient_norm": norm.hex(), "ranks": ranks, "host": socket.gethostname()}
                losses.write(json.dumps(line) + "\n")
                losses.flush()
            if trainer.step % options.save_every == 0 or trainer.step == options.steps:
                save = checkpointer.save_async if options.save_async else checkpointer.save
                save(trainer.step, trainer.state(), loss=loss, gradient_norm=norm)
                say(rank, f"step {trainer.step}: loss {loss:.4f} ({loss / math.log(2):.2f} bits a byte)")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--folder", required=True, help="where checkpoints are saved, shared by all ranks")
    add("--steps", type=int, default=100, help="train up to this step")
    add("--save-every", type=int, default=10)
    add("--async", dest="save_async", action="store_true", help="save in the background")
    add("--resume-from", help="a checkpoint, or a run's folder: then its newest complete one")
    add("--run", default="tiny", help="the run's name in seawall.toml")
    add("--epoch", type=int, default=1, help="the epoch of the run's log that this process is started in (seawall log show)")
    add("--log", help="url of the coordination store: lets this process notice that its epoch was closed, and prune what is proved")
    add("--trust-root", help="ed25519:…, with --log")
    add("--keep", type=int, default=3, help="newest steps that stay in the folder")
    add("--copies", type=int, default=2, help="proved copies elsewhere before an older step is removed (with --log)")
    add("--notify", help="base url of Airflow: creates an event of the asset checkpoint_ready after each save")
    add("--credentials", help="file (mode 0600) with a token, or username and password, for --notify; without it the environment")
    add("--board", help="folder of the health board")
    add("--beat-seconds", type=float, default=5.0)
    add("--losses", help="append each step's loss to this file, as JSON with hexadecimal floats")
    add("--seed", type=int, default=20261129)
    add("--deterministic", action="store_true", help="one thread, and operations whose result never depends on timing")
    add("--shard", action="store_true", help="FSDP2 instead of DDP (under torchrun)")
    add("--width", type=int, default=256)
    add("--layers", type=int, default=6)
    add("--context", type=int, default=128)
    add("--batch", type=int, default=16, help="windows a step, over all ranks")
    add("--dropout", type=float, default=0.1)
    add("--learning-rate", type=float, default=1e-3)
    add("--text-bytes", type=int, default=8 << 20)
    return parser.parse_args()


def main() -> None:
    options = parsed()
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    if options.deterministic:
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
    if "RANK" in os.environ:
        dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    with open(options.losses, "a") if options.losses and rank == 0 else contextlib.nullcontext() as losses:
        train(options, rank, ranks, losses)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
