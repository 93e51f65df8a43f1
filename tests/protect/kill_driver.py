"""Run a sync again and again, kill it at its next write each time, and report what the kill left. Used by test_kill.py.

    python -m tests.protect.kill_driver FOLDER FIRST STRIDE [S3-URL ENDPOINT]

One process imports everything and forks a child for each kill, because starting Python costs more than the sync. A
child ends by SIGKILL right before or right after its n-th write, whatever the write is: put, part, begin, finish, and
those of the log and its mirrors. After each kill the parent checks that there is no copy or a whole one, runs the sync to its
end, and checks that it gave one sealing, whole in every store. It prints one JSON line a kill.
"""

import json
import os
import shutil
import signal
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from seawall.clock import SystemClock
from seawall.stores.base import Store
from seawall.stores.file import FileStore
from seawall.stores.s3 import S3Store
from seawall.stores.wrapper import Wrapper
from seawall.verify.check import OK, Unlocked, check_copy
from seawall.verify.levels import Level
from tests.protect.little_site import RUN, LittleSite, tree

WRITES = {"put", "begin", "part", "finish", "abort", "replace", "delete"}
TRANSFERS = 3


class Later(SystemClock):
    """Two hours on: what the killed upload left is old enough to be swept."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=2)


class Countdown:
    """Kills this process at a write, counted over all stores."""

    def __init__(self, at: int, when: str) -> None:
        self.left, self.when = at, when

    def around(self, method: str, action: Any) -> Any:
        if method not in WRITES:
            return action()
        self.left -= 1
        strikes = self.left == 0
        if strikes and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = action()
        if strikes:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


class KillingStore(Wrapper):
    """A store whose writes count down."""

    def __init__(self, inner: Store, countdown: Countdown) -> None:
        super().__init__(inner)
        self._countdown = countdown

    def around(self, method: str, key: str, action: Any) -> Any:
        return self._countdown.around(method, action)


def stores_below(folder: Path, s3: tuple[str, str] | None) -> dict[str, Store]:
    """Fresh connections: a socket that parent and child share would mix up their answers."""
    c = FileStore(f"file://{folder}/c", create=True)
    if s3 is None:
        return {"a": FileStore(f"file://{folder}/a", create=True), "c": c}
    url, endpoint = s3
    return {"a": S3Store(f"{url}/{folder.name}", endpoint=endpoint), "c": c}


def killed_sync(site: LittleSite, stores: dict[str, Store], source: Path, at: int, when: str) -> bool:
    """Fork, sync, die at write ``at``. False when the sync came to its end before that."""
    child = os.fork()
    if child == 0:
        try:
            countdown = Countdown(at, when)
            for store in stores.values():
                # Probing writes too, and is no part of the sync.
                _ = store.capabilities
            site.stores = {name: KillingStore(store, countdown) for name, store in stores.items()}
            site.sync(source, transfers=TRANSFERS, batch_bytes=12 << 20)
        except BaseException as error:  # noqa: BLE001  # the child must never run on into the parent's code
            print(f"child failed: {error!r}", file=sys.stderr)
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise AssertionError("the child failed by itself")
    return False


def problems(site: LittleSite, source: Path, target: Path, must_be_whole: bool) -> list[str]:
    """What is wrong with the site as it is now. A commit in the log must have a whole copy in the first store."""
    state = site.view().state
    found = []
    if must_be_whole and len(state.commits) != 1:
        found.append(f"{len(state.commits)} commits")
    for sealing, commit in state.commits.items():
        for name in ("a", "c") if must_be_whole else ("a",):
            findings = check_copy(
                site.stores[name],
                RUN,
                bytes.fromhex(sealing),
                commit.manifest,
                state.writer_of(commit),
                state.resolver("operator"),
                Level.L3,
                unlock=lambda opened, name=name, sealing=sealing: Unlocked(site.opened(name, sealing)[2], site.opened(name, sealing)[1]),
            )
            if [finding.level for finding in findings if finding.result == OK][-1:] != [Level.L3]:
                found.append(f"{name}: {findings[-1]}")
    if must_be_whole and not found:
        from seawall.protect.restore import restore

        restore(*site.opened("a", next(iter(state.commits))), target)
        if tree(target) != tree(source):
            found.append("the restored tree differs")
        shutil.rmtree(target)
    return found


def main(folder: Path, first: int, stride: int, s3: tuple[str, str] | None) -> None:
    source = folder / "ck"
    number = first
    ended = False
    while not ended:
        # Right after write n is right before write n + 1, so "before" is only needed for the first.
        for when in ("before", "after") if number == 1 else ("after",):
            where = folder / f"site-{number}-{when}"
            site = LittleSite(stores_below(where, s3))
            site.open()
            ended = not killed_sync(site, stores_below(where, s3), source, number, when)
            left = problems(site, source, where / "out", must_be_whole=False)
            site.clock = Later()
            done = site.sync(source, transfers=TRANSFERS, batch_bytes=12 << 20)
            left += problems(site, source, where / "out", must_be_whole=True)
            leftovers = [leftover.key for store in site.stores.values() for leftover in store.leftovers()]
            row = {"write": number, "when": when, "ended": ended, "adopted": done.adopted, "problems": left, "leftovers": len(leftovers)}
            print(json.dumps(row), flush=True)
            shutil.rmtree(where)
        number += stride


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), (sys.argv[4], sys.argv[5]) if len(sys.argv) > 4 else None)
