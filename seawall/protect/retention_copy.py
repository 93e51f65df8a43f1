"""Deleting one copy: its objects written down, the tombstone in the log, then each object by its version.

The order is what makes a kill at any instant harmless. The intent names exactly what will go. The tombstone comes before the first
object, so no reader counts a copy that is half gone, and only the holder of the newest retention lease can write it. Receipts go first
and wrapped keys last. Whoever comes later finds the tombstone and goes on; what no intent names is written into another one first.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from seawall.errors import CorruptError, NoSuchObjectError, ObjectExistsError, StoreRefusedError, TrustError
from seawall.log.records import list_records, read_record, sign_record
from seawall.log.state import RunState
from seawall.protect.place import Place
from seawall.protect.retention_document import INTENT
from seawall.stores.base import Store
from seawall.vault import canonical
from seawall.vault.canonical import Document
from seawall.vault.identity import sealing_folder
from seawall.vault.signing import SigningKey

MAX_ROUNDS = 20
"""Rounds over one copy: on a versioned store the version before comes to light when the newest goes, and a repair makes one more."""

_ORDER = ("receipt-", "manifest.json", "objects.json", "batch-", "file-", "inventory.sea", "plan.sea", "keys-")
"""What goes first. Without a receipt no store claims a whole copy; without its manifest none is opened."""


@dataclass(frozen=True, slots=True)
class DoomedObject:
    """One object of a copy as it was when its deletion was written down."""

    key: str
    version: str
    """Empty in a store that names no versions."""
    size: int
    locked_until: datetime | None = None


def objects_of(place: Place, run: str, sealing: str, transfers: int) -> list[DoomedObject]:
    """What the store holds of a copy, in the order in which it goes."""
    folder = sealing_folder(run, bytes.fromhex(sealing))
    keys = [stored.key for stored in place.store.list(folder)]

    def look(key: str) -> DoomedObject | None:
        try:
            stored = place.store.head(key)
        except NoSuchObjectError:
            # Listings of some stores are a moment behind.
            return None
        return DoomedObject(key, stored.version or "", stored.size, stored.locked_until)

    with ThreadPoolExecutor(min(transfers, max(1, len(keys))), "look") as pool:
        found = [doomed for doomed in pool.map(look, keys) if doomed is not None]
    return sorted(found, key=lambda doomed: (_turn(doomed.key.removeprefix(folder)), doomed.key))


def _turn(name: str) -> int:
    return next((turn for turn, beginning in enumerate(_ORDER) if name.startswith(beginning)), _ORDER.index("file-"))


def write_intent(
    coordination: Store, run: str, place: Place, sealing: str, doomed: Sequence[DoomedObject], plan: str, lease: int, operator: SigningKey
) -> str:
    """Write down what will go; the record's name."""
    body: Document = {
        "plan": plan,
        "lease": canonical.number(lease),
        "objects": [{"key": item.key, "version": item.version, "size": canonical.number(item.size)} for item in doomed],
    }
    taken = len(list(list_records(coordination, run, INTENT, f"{sealing}-{place.id}-")))
    for number in range(taken, taken + MAX_ROUNDS):
        name = f"{sealing}-{place.id}-{number:02}"
        try:
            return sign_record(coordination, run, INTENT, name, body, [operator]).name
        except ObjectExistsError:
            continue
    raise StoreRefusedError("too many lists of one copy", where=f"{run} {sealing} in {place.name}", why=f"{taken + MAX_ROUNDS} of them")


def intended(coordination: Store, state: RunState, place: Place, sealing: str) -> set[tuple[str, str]]:
    """(Key, version) of everything that operators wrote down about this copy."""
    found: set[tuple[str, str]] = set()
    for name in list_records(coordination, state.run, INTENT, f"{sealing}-{place.id}-"):
        try:
            record = read_record(coordination, state.run, INTENT, name, state.resolver("operator"))
        except (TrustError, CorruptError):
            # It does not count: what it names is written down again.
            continue
        for item in canonical.objects_field(record.body, "objects", where=name):
            key = canonical.text_field(item, "key", where=name)
            found.add((key, canonical.text_field(item, "version", where=name, empty=True)))
    return found


def remove(place: Place, run: str, sealing: str, doomed: Sequence[DoomedObject], transfers: int) -> int:
    """Delete these objects of a copy that has its tombstone, in order; the number of them.

    Those of one turn go at once. An object that is another one by now is not deleted: ``StoreRefusedError``.
    """
    folder = sealing_folder(run, bytes.fromhex(sealing))
    groups: dict[int, list[DoomedObject]] = {}
    for item in doomed:
        groups.setdefault(_turn(item.key.removeprefix(folder)), []).append(item)
    with ThreadPoolExecutor(min(transfers, max(1, len(doomed))), "delete") as pool:
        for _, group in sorted(groups.items()):
            list(pool.map(lambda item: place.store.delete(item.key, item.version or None), group))
    return len(doomed)


def remove_leftovers(place: Place, run: str, sealing: str) -> None:
    """Forget unfinished uploads of a copy that has its tombstone."""
    for leftover in list(place.store.leftovers(sealing_folder(run, bytes.fromhex(sealing)))):
        place.store.abort_leftover(leftover)
