"""Restore again and again, each time killed a little later, and report what the kill left. Used by test_restore.py.

    python -m tests.protect.restore_driver FOLDER STRIDE

One process imports everything and forks a child for each kill. The child ends by SIGKILL at its n-th read of the store, or at
the n-th piece of plaintext that it has written. After each kill the parent restores to the same target and compares. One JSON line a kill.
"""

import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from seawall.protect.restore import restore
from seawall.stores.file import FileStore
from seawall.testing.faulty import FaultyStore
from tests.protect.little_site import LittleSite, file_site, tree


def kill_at(number: int) -> Callable[..., None]:
    """Something to call that ends this process at its n-th call."""
    calls = itertools.count(1)

    def strike(*_: object) -> None:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return strike


def killed_restore(site: LittleSite, folder: Path, sealing: str, target: Path, number: int, at: str) -> bool:
    """Fork, restore, die. False when the restore came to its end before that."""
    child = os.fork()
    if child == 0:
        try:
            strike = kill_at(number)
            store = FaultyStore(FileStore(f"file://{folder}/a"))
            site.stores["a"] = store
            opened = site.opened("a", sealing)
            if at == "read":
                store.before("get", strike, times=None).before("read_into", strike, times=None)
            restore(*opened, target, transfers=3, progress=strike if at == "write" else lambda nbytes, files: None)
        except BaseException as error:  # noqa: BLE001  # the child must never run on into the parent's code
            print(f"child failed: {error!r}", file=sys.stderr)
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise AssertionError("the child failed by itself")
    return os.WIFSIGNALED(status)


def main(folder: Path, stride: int) -> None:
    source = folder / "ck"
    site = file_site(folder)
    sealing = site.sync(source).sealing
    wanted = tree(source)
    target = folder / "out"
    for at in ("read", "write"):
        for number in itertools.count(1, stride):
            killed = killed_restore(site, folder, sealing, target, number, at)
            appeared = target.exists()
            kept = 0
            if killed:
                kept = restore(*site.opened("a", sealing), target, transfers=3).kept
            beside = [name for name in os.listdir(folder) if "seawall-restore" in name]
            row = {"at": at, "call": number, "killed": killed, "appeared": appeared, "kept": kept}
            print(json.dumps(row | {"same": tree(target) == wanted, "beside": beside}), flush=True)
            shutil.rmtree(target)
            if not killed:
                break


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
