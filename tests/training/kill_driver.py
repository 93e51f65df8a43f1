"""Kills a trainer at each of its file operations, and at chosen bytes of each file it writes. Imports torch once and forks.

    python -m tests.training.kill_driver FOLDER save|save_async STRIDE

Leaves a run's folder for each kill, and prints how many operations there were. A stride over 1 leaves some of them out.
"""

import os
import resource
import shutil
import signal
import sys
from pathlib import Path

from seawall.training.checkpointer import Checkpointer
from tests.training.states import state_of

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}
BYTES = (0, 1, 100, 1000, 2500, 4000, 10_000, 20_000)
"""Sizes at which a file's next byte kills: inside the mark, the map and the rank file."""


def train(folder: Path, how: str) -> None:
    """Two saves, and the first of them pruned. Step 0 is there already."""
    with Checkpointer(folder, epoch=1, keep=1, copies_before_pruning=1) as checkpointer:
        # Removal is counted in this thread; the background's would make the numbers of the operations differ between kills.
        checkpointer._proved_copies = lambda saved: 1
        for step in (1, 2):
            getattr(checkpointer, how)(step, state_of(step))
            checkpointer.wait()
            checkpointer.prune()


def count_and_kill(folder: Path, number: int) -> None:
    """SIGKILL before the ``number``-th operation that changes something under ``folder``."""
    prefix, left = f"{folder}/", [number]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR):
                return
        elif event in CHANGES:
            path = arguments[0]
        else:
            return
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(prefix):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    sys.addaudithook(hook)


def kill_at_byte(size: int) -> None:
    """SIGXFSZ, which ends a process as SIGKILL does, when a file grows beyond ``size``: setrlimit(2)."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def in_child(folder: Path, how: str, number: int | None, size: int | None) -> int:
    """The wait status of a trainer that is killed on the way."""
    shutil.copytree(folder.parent / "template", folder)
    child = os.fork()
    if child == 0:
        try:
            if number is not None:
                count_and_kill(folder, number)
            if size is not None:
                kill_at_byte(size)
            train(folder, how)
            os._exit(0)
        except BaseException:  # noqa: BLE001 -- the child ends here, whatever happened
            import traceback

            traceback.print_exc()
            os._exit(1)
    return os.waitpid(child, 0)[1]


def main() -> None:
    base, how, stride = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with Checkpointer(base / "template", epoch=1) as checkpointer:
        checkpointer.save(0, state_of(0))
    for size in BYTES:
        status = in_child(base / f"byte-{size}", how, None, size)
        assert status == signal.SIGXFSZ, (size, status)
    number = 0
    while (status := in_child(base / str(number), how, number, None)) == signal.SIGKILL:
        number += stride
    assert status == 0, status
    print(number)


if __name__ == "__main__":
    main()
