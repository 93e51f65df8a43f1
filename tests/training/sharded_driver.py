"""Two ranks that save one tensor between them, and load it again: a JSON line of what each was told, on standard output.

RANK=0 python -m tests.training.sharded_driver FOLDER RENDEZVOUS
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from seawall.errors import SeawallError
from seawall.training.checkpointer import Checkpointer
from seawall.training.resume import load

ROWS, COLUMNS = 7, 500


def full(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(ROWS * COLUMNS, dtype=torch.float32).reshape(ROWS, COLUMNS).to(dtype)


def state_on(mesh: Any, filled: bool = True) -> dict[str, Any]:
    """By rows (of which one rank has more), by columns, one copy each, and one row that only rank 0 has a part of."""
    made = {
        "rows": distribute_tensor(full(), mesh, [Shard(0)]),
        "columns": distribute_tensor(full(torch.bfloat16), mesh, [Shard(1)]),
        "copies": distribute_tensor(full(), mesh, [Replicate()]),
        "one-row": distribute_tensor(full()[:1].clone(), mesh, [Shard(0)]),
        "plain": full(torch.float64),
    }
    if not filled:
        for tensor in made.values():
            (tensor.to_local() if hasattr(tensor, "to_local") else tensor).zero_()
    return made


def whole(tensor: Any) -> torch.Tensor:
    """All of it, on every rank."""
    gathered: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return gathered


def main() -> None:
    folder, rank = Path(sys.argv[1]), int(os.environ["RANK"])
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    told: list[Any] = []
    with Checkpointer(folder, epoch=1) as checkpointer:
        checkpointer.save(1, state_on(mesh))
        checkpointer.save_async(2, state_on(mesh))
        checkpointer.wait()
        if rank == 0:
            # Rank 1 wrote this file, and rank 0 or rank 1 will read it.
            path = folder / "step_00000002" / "__1_0.distcp"
            raw = path.read_bytes()
            at = raw.index(full()[-1].numpy().tobytes())
            path.write_bytes(raw[: at + 9] + bytes([raw[at + 9] ^ 4]) + raw[at + 10 :])
        dist.barrier()
        state = state_on(mesh, filled=False)
        load(folder / "step_00000001", state, ranks=checkpointer.ranks)
        told.append(all(torch.equal(whole(state[name]), whole(expected)) for name, expected in state_on(mesh).items()))
        try:
            load(folder / "step_00000002", state_on(mesh), ranks=checkpointer.ranks)
        except SeawallError as error:
            told.append(f"{type(error).__name__} {error.where.rpartition('step_00000002 ')[2]}")
    print(json.dumps(told), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
