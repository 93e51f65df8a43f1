"""Two ranks, of which one has trouble: what each of them is told, as one JSON list a rank on standard output.

RANK=0 python -m tests.training.two_ranks_driver FOLDER RENDEZVOUS
"""

import json
import os
import resource
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from seawall.errors import SeawallError
from seawall.training.checkpointer import Checkpointer
from seawall.training.epoch import EpochWatch
from seawall.training.mark import MARK

NO_LIMIT = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def main() -> None:
    folder, rank = Path(sys.argv[1]), int(os.environ["RANK"])
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    told: list[str] = []
    state = {"mine": {f"rank{rank}": torch.full((5000,), float(rank))}}
    watch = EpochWatch(lambda: 1) if rank == 0 else None
    with Checkpointer(folder, epoch=1, epoch_watch=watch) as checkpointer:
        for step, name in enumerate(("save", "save_async"), start=1):
            if rank == 1:
                # Its disk is full: writes beyond this size fail.
                resource.setrlimit(resource.RLIMIT_FSIZE, (9000, resource.RLIM_INFINITY))
            try:
                getattr(checkpointer, name)(step, state)
                checkpointer.wait()
                told.append("saved")
            except SeawallError as error:
                told.append(f"{type(error).__name__}: {error.what} [{error.where.rpartition('/')[2]}]")
            resource.setrlimit(resource.RLIMIT_FSIZE, NO_LIMIT)
            if rank == 0:  # The other one may look when the next save has begun.
                told.append(str(sorted(path.name for path in folder.glob("step_*"))))
        committed = checkpointer.save(3, state)
        told.append(f"{committed.step} {committed.world_size} {(committed.path / MARK).exists()}")
        if watch is not None:
            watch._known = 2
        try:
            checkpointer.save(4, state)
        except SeawallError as error:
            told.append(f"{type(error).__name__}")
    print(json.dumps(told), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
