"""The receipt of a healed copy: the next number, signed, with the versions that are there now."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from seawall.clock import utc_text
from seawall.errors import CorruptError, ObjectExistsError, TrustError
from seawall.log.state import CommitRecord
from seawall.protect.lock_copy import lock_copy
from seawall.protect.place import Place
from seawall.stores.base import Capabilities
from seawall.vault.identity import sealing_folder
from seawall.vault.open import Resolve
from seawall.vault.receipt import MAX_BYTES, Receipt, parse_receipt, receipt_name
from seawall.vault.sealing import Sealing
from seawall.vault.signing import SigningKey
from seawall.verify.metering import AtVersions


@dataclass(frozen=True)
class Receipts:
    """What a copy has of its own store's receipts."""

    highest: int
    """Number of the last one, whatever it holds: it is taken. 0 when there is none."""
    newest: Receipt | None
    """The last one, if it counts: the highest number wins."""


def read_receipts(place: Place, run: str, commit: CommitRecord, resolve: Resolve) -> Receipts:
    """One listing and one read."""
    prefix = f"{sealing_folder(run, bytes.fromhex(commit.sealing))}receipt-{place.id}-"
    name = re.compile(re.escape(prefix) + r"([1-9][0-9]{0,8})\.json\Z", re.ASCII)
    numbers = [int(match[1]) for match in (name.match(found.key) for found in place.store.list(prefix)) if match]
    if not numbers:
        return Receipts(0, None)
    highest = max(numbers)
    try:
        return Receipts(highest, _read(place, run, commit.sealing, commit.manifest, highest, resolve))
    except (CorruptError, TrustError):
        return Receipts(highest, None)


def _read(place: Place, run: str, sealing: str, manifest: str, number: int, resolve: Resolve) -> Receipt:
    key = sealing_folder(run, bytes.fromhex(sealing)) + receipt_name(place.id, number)
    receipt = parse_receipt(place.store.get(key, 0, MAX_BYTES + 1), resolve, key)
    receipt.check_place(run, bytes.fromhex(sealing), manifest, place.id, number, key)
    return receipt


def next_receipt(
    place: Place, sealing: Sealing, receipts: Receipts, repaired: dict[str, str], key: SigningKey, resolve: Resolve, transfers: int
) -> Receipt:
    """Lock the copy again where that is asked for, what was written just now with it, and sign the receipt that follows. ``repaired`` names
    the objects that were written, with their versions.

    Another one of the same number, by somebody who healed the same copy at the same time, is kept.
    """
    if receipts.newest is not None:
        versions = {**receipts.newest.versions, **repaired}
    else:
        versions = _versions(place, sealing, transfers)
    server_time = place.store.server_time()
    manifest = sealing.manifest
    at = None if server_time is None else utc_text(server_time)
    until = None if place.lock is None or server_time is None else server_time + place.lock
    if until is not None:
        lock_copy(place, sealing.folder, until, transfers)
    locked = None if until is None else utc_text(until)
    number = receipts.highest + 1
    receipt = Receipt(manifest.run, manifest.sealing, sealing.manifest_digest, place.id, number, at, locked, versions)
    try:
        place.store.put(sealing.folder + receipt_name(place.id, number), receipt.sign(key), lock_until=until)
    except ObjectExistsError:
        return _read(place, manifest.run, manifest.sealing.hex(), sealing.manifest_digest, number, resolve)
    return receipt


def _versions(place: Place, sealing: Sealing, transfers: int) -> dict[str, str]:
    rows = sealing.table.rows
    with ThreadPoolExecutor(min(transfers, max(1, len(rows))), "head") as pool:
        found = pool.map(lambda row: place.store.head(sealing.key_of(row)).version, rows)
        return {row.name: version for row, version in zip(rows, found, strict=True) if version is not None}


def kept_versions(place: Place, run: str, commit: CommitRecord, receipts: Receipts) -> list[Place]:
    """The copy as the receipt names it, where the store keeps versions: what lies over it now may be another one, or nothing."""
    known: Capabilities | None = getattr(place.store, "known_capabilities", None)
    if receipts.newest is None or known is None or not known.versions:
        return []
    folder = sealing_folder(run, bytes.fromhex(commit.sealing))
    at = AtVersions(place.store, {folder + name: version for name, version in receipts.newest.versions.items()})
    return [Place(f"{place.name} (kept version)", place.id, at)]
