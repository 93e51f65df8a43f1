"""Damage a copy, heal it, kill the heal at its next write each time, and report what the kill left. Used by test_heal_kill.py.

    python -m tests.protect.heal_kill_driver FOLDER FIRST STRIDE [S3-URL ENDPOINT]

As kill_driver does with a sync. After each kill the parent checks that every object is as it was, damaged, or whole, heals again, and
checks that the copy is whole and ends with a receipt that counts. It prints one JSON line a kill.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from seawall.kernels.crc64 import crc64
from seawall.log.records import list_records
from seawall.protect.acts import OUTCOME, RESPONSE
from seawall.protect.heal import Healed, heal
from seawall.protect.heal_receipt import read_receipts
from seawall.stores.base import Store
from seawall.vault.header import HEADER_BYTES
from seawall.vault.identity import sealing_folder
from seawall.verify.check import OK, check_copy
from seawall.verify.levels import Level
from seawall.verify.receipts import receipt_signers
from tests.protect.kill_driver import Countdown, KillingStore, stores_below
from tests.protect.little_site import RUN, LittleSite

DAMAGED = ("file-1.sea", "file-2.sea", "inventory.sea", "objects.json")
MISSING = ("file-3.sea", "file-4.sea", "keys-1.json", "manifest.json")


def damage(store: Store, folder: str) -> dict[str, bytes | None]:
    """What lies under each name afterwards."""
    left: dict[str, bytes | None] = {}
    for name in DAMAGED:
        raw = bytearray(store.get(folder + name))
        raw[HEADER_BYTES + 7 if name.endswith(".sea") else 30] ^= 1
        store.replace(folder + name, bytes(raw), store.head(folder + name).version, crc64(raw))
        left[name] = bytes(raw)
    for name in MISSING:
        store.delete(folder + name)
        left[name] = None
    return left


def healed(site: LittleSite) -> Healed:
    view = site.view()
    (commit,) = view.state.commits.values()
    places, coordination = [site.place(name) for name in ("a", "c")], site.stores["c"]
    return heal(view, commit, places[0], places[1:], coordination=coordination, writer=site.keys["writer"], clock=site.clock, transfers=3)


def killed_heal(site: LittleSite, stores: dict[str, Store], at: int) -> bool:
    """Fork, heal, die after write ``at``. False when the heal came to its end before that."""
    child = os.fork()
    if child == 0:
        try:
            countdown = Countdown(at, "after")
            for store in stores.values():
                _ = store.capabilities
            site.stores = {name: KillingStore(store, countdown) for name, store in stores.items()}
            healed(site)
        except BaseException as error:  # noqa: BLE001  # the child must never run on into the parent's code
            print(f"child failed: {error!r}", file=sys.stderr)
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise AssertionError("the child failed by itself")
    return os.WIFSIGNALED(status)


def half_done(site: LittleSite, folder: str, before: dict[str, bytes | None], right: dict[str, bytes]) -> list[str]:
    """Objects that are neither as they were nor whole."""
    there = {found.key.removeprefix(folder) for found in site.stores["a"].list(folder)}
    odd = []
    for name in right:
        raw = site.stores["a"].get(folder + name) if name in there else None
        if raw not in (before.get(name, right[name]), right[name]):
            odd.append(f"{name} is something else")
    return odd


def not_whole(site: LittleSite, folder: str) -> list[str]:
    """What is wrong after the heal that followed."""
    state = site.view().state
    (commit,) = state.commits.values()
    sealing, writers = bytes.fromhex(commit.sealing), state.writer_of(commit)
    findings = check_copy(site.stores["a"], RUN, sealing, commit.manifest, writers, state.resolver("operator"), Level.L2)
    wrong = [f"{finding.level}: {finding.damages}" for finding in findings if finding.result not in (OK, "not attainable")]
    receipts = read_receipts(site.place("a"), RUN, commit, receipt_signers(state))
    if receipts.highest != 2 or receipts.newest is None:
        wrong.append(f"the last receipt is {receipts.highest}")
    else:
        now = {name: site.stores["a"].head(folder + name).version for name in receipts.newest.versions}
        wrong += [
            f"the receipt names another version of {name}" for name, version in receipts.newest.versions.items() if now[name] != version
        ]
    acts = list(list_records(site.stores["c"], RUN, RESPONSE))
    if len(acts) != 1 or acts != list(list_records(site.stores["c"], RUN, OUTCOME)):
        wrong.append(f"acts: {acts}")
    return wrong


def fresh_site(folder: Path, number: int, s3: tuple[str, str] | None, first: LittleSite | None) -> LittleSite:
    """A whole copy in both stores. Folders are links of the first: its objects keep their versions, and nothing writes into it."""
    where = folder / f"site-{number}"
    if s3 is None and first is not None:
        for name in "ac":
            shutil.copytree(folder / "first" / name, where / name, copy_function=os.link)
        return LittleSite(stores_below(where, s3), root=first.root, keys=first.keys, keyring=first.keyring, recovery=first.recovery)
    site = LittleSite(stores_below(where if s3 else folder / "first", s3))
    site.open()
    site.sync(folder / "ck", transfers=3, batch_bytes=12 << 20)
    return site if s3 else fresh_site(folder, number, s3, site)


def main(folder: Path, first: int, stride: int, s3: tuple[str, str] | None) -> None:
    number, killed = first, True
    site: LittleSite | None = None
    while killed:
        site = fresh_site(folder, number, s3, site)
        (sealing,) = site.view().state.commits
        at = sealing_folder(RUN, bytes.fromhex(sealing))
        right = {found.key.removeprefix(at): site.stores["a"].get(found.key) for found in site.stores["a"].list(at)}
        before = damage(site.stores["a"], at)
        killed = killed_heal(site, stores_below(folder / f"site-{number}", s3), number)
        problems = half_done(site, at, before, right)
        again = healed(site)
        problems += not_whole(site, at)
        leftovers = [leftover.key for leftover in site.stores["a"].leftovers(at)]
        row = {"write": number, "killed": killed, "repairs": len(again.repairs), "problems": problems, "leftovers": len(leftovers)}
        print(json.dumps(row), flush=True)
        shutil.rmtree(folder / f"site-{number}")
        number += stride


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), (sys.argv[4], sys.argv[5]) if len(sys.argv) > 4 else None)
