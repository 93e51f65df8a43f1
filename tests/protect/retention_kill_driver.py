"""Run an approved plan again and again, kill it at its next write each time, and report what the kill left. Used by test_retention_kill.py.

    python -m tests.protect.retention_kill_driver FOLDER FIRST STRIDE [tombstone-last]

The site is built once and copied for each kill. A child ends by SIGKILL right before or after its n-th write, whatever that is: lease,
intent, tombstone or delete. With the last argument the child deletes first and says so afterwards: a control that has to be found out.
The parent then looks at what is there, runs the plan to its end, and prints one JSON line a kill.
"""

import json
import os
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from seawall.clock import Clock, SystemClock
from seawall.errors import BusyError
from seawall.log.records import list_records, read_record
from seawall.protect import retention_work
from seawall.protect.retention import approve_plan, make_plan, run_plan
from seawall.protect.retention_copy import objects_of, remove
from seawall.protect.retention_document import INTENT
from seawall.protect.retention_facts import Site
from seawall.protect.retention_gather import Desk, gather
from seawall.protect.retention_plan import Deletion
from seawall.protect.retention_settings import RetentionSettings
from seawall.verify.certify import certify, proofs_of
from seawall.verify.committed import check_committed
from seawall.verify.levels import AgePolicy, Level
from tests.protect.kill_driver import Countdown, KillingStore, stores_below
from tests.protect.little_site import RUN, LittleSite, write_checkpoint

SETTINGS = RetentionSettings(keep_last=1, daily=0, weekly=0, monthly=0, keep_best=0, local_clock=True, lease_minutes=15)


class LaterClock(SystemClock):
    """So much later than this host's."""

    def __init__(self, by: timedelta) -> None:
        self.by = by

    def now(self) -> Any:
        return super().now() + self.by


AT_ONCE, A_DAY_ON, A_LEASE_LATER = (LaterClock(timedelta(minutes=minutes)) for minutes in (0, 25 * 60, 25 * 60 + 20))


def desk(site: LittleSite, clock: Clock) -> Desk:
    places = tuple(site.place(name) for name in "ac")
    sites = tuple(Site(place.id, place.name, "disk", place.name) for place in places)
    return Desk(RUN, places[1], places, sites, lambda: site.fresh_view(RUN), SETTINGS, AgePolicy(), clock)


def build(folder: Path) -> tuple[LittleSite, str]:
    """Three checkpoints, proved; the plan for the one in the middle, approved. The site, and the plan's name."""
    site = LittleSite(stores_below(folder, None), state=None)
    site.open()
    for step in (100, 200, 300):
        site.sync(write_checkpoint(folder / f"step_{step}", step))
    view = site.view()
    for commit in list(view.state.commits.values()):
        for name in "ac":
            findings = check_committed(site.stores[name], view, commit, Level.L3, lambda: site.keyring.keys)
            proofs = proofs_of(findings, commit, site.place(name).id, site.clock)
            view = certify(site.stores["c"], view, proofs, site.keys["verifier"], site.clock)
    planned = make_plan(desk(site, AT_ONCE), site.keys["operator"])
    assert planned.plan is not None, planned.decision
    gathered = gather(desk(site, AT_ONCE))
    approve_plan(desk(site, AT_ONCE), gathered.view, gathered.moment, planned.plan.name, site.keys["operator"])
    return site, planned.plan.name


def killed_run(site: LittleSite, folder: Path, name: str, at: int, when: str) -> bool:
    """Fork, run, die at write ``at``. False when the run came to its end before that."""
    child = os.fork()
    if child == 0:
        try:
            countdown = Countdown(at, when)
            stores = stores_below(folder, None)
            for store in stores.values():
                _ = store.capabilities
            site.stores = {key: KillingStore(store, countdown) for key, store in stores.items()}
            run_plan(desk(site, A_DAY_ON), name, site.keys["operator"], transfers=1)
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


def tombstone_last(worker: retention_work._Worker, deletion: Deletion, plan: str) -> retention_work.CopyOutcome:
    """The wrong order."""
    place = worker._desk.place_of(deletion.store)
    assert place is not None
    remove(place, RUN, deletion.sealing, objects_of(place, RUN, deletion.sealing, 1), 1)
    return RIGHT_ORDER(worker, deletion, plan)


RIGHT_ORDER = retention_work._Worker.delete


def sealed(folder: Path) -> dict[str, bytes]:
    """Every object of the sealings, by store and key."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for store in "ac"
        for path in (folder / store / "runs" / RUN / "sealings").rglob("*")
        if path.is_file()
    }


def wrong_after_kill(site: LittleSite, folder: Path, before: dict[str, bytes]) -> list[str]:
    """A copy has everything or a tombstone; what is half gone claims to be no copy; what is gone was written down."""
    found = []
    state = site.view().state
    now = sealed(folder)
    gone = set(before) - set(now)
    if any(now[key] != before[key] for key in now if key in before) or set(now) - set(before):
        found.append("an object changed or appeared")
    listed = {
        (intent.split("-")[1], item["key"])
        for intent in list_records(site.stores["c"], RUN, INTENT)
        for item in read_record(site.stores["c"], RUN, INTENT, intent, state.resolver("operator")).body["objects"]
    }
    for name in gone:
        store, _, key = name.partition("/")
        place = site.place(store)
        sealing = key.split("/")[3]
        if not state.is_deleted(sealing, place.id):
            found.append(f"{name} is gone without a tombstone")
        if (place.id, key) not in listed:
            found.append(f"{name} is gone and nobody wrote it down")
        if any(left.startswith(f"{store}/runs/{RUN}/sealings/{sealing}/receipt-") for left in now):
            found.append(f"half of {name} is gone and its receipt is there")
    return found


def wrong_at_the_end(site: LittleSite, folder: Path, before: dict[str, bytes]) -> list[str]:
    """What was planned is gone, and nothing else."""
    state = site.view().state
    (doomed,) = state.steps[200]
    wanted = {name: data for name, data in before.items() if f"/{doomed}/" not in name}
    found = [] if sealed(folder) == wanted else ["what is left is not what was to be kept"]
    if {sealing: len(records) for sealing, records in state.tombstones.items()} != {doomed: 2}:
        found.append("there are other tombstones than those of the plan")
    return found


def main(folder: Path, first: int, stride: int, control: str = "") -> None:
    if control:
        retention_work._Worker.delete = tombstone_last  # type: ignore[method-assign]  # the control
    site, name = build(folder / "built")
    number, ended = first, False
    while not ended:
        for when in ("before", "after") if number == 1 else ("after",):
            where = folder / f"kill-{number}-{when}"
            shutil.copytree(folder / "built", where)
            before = sealed(where)
            ended = not killed_run(site, where, name, number, when)
            site.stores = dict(stores_below(where, None))
            left = wrong_after_kill(site, where, before)
            waited = False
            try:
                run_plan(desk(site, A_DAY_ON), name, site.keys["operator"], transfers=1)
            except BusyError:
                # The lease of the killed process ends by the stores' clock alone.
                waited = True
                run_plan(desk(site, A_LEASE_LATER), name, site.keys["operator"], transfers=1)
            left += wrong_at_the_end(site, where, before)
            print(json.dumps({"write": number, "when": when, "ended": ended, "waited": waited, "problems": left}), flush=True)
            shutil.rmtree(where)
        number += stride


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
