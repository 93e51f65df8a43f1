"""L0 to L2: what a store says of a copy, and every stored byte of it. Needs public keys alone."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from seawall.clock import utc_text
from seawall.errors import CorruptError, NoSuchObjectError, TrustError
from seawall.stores.base import Stored
from seawall.stores.part_buffers import fresh_buffer
from seawall.vault.drivers import drivers_here
from seawall.vault.objects import Row
from seawall.vault.open import Resolve, scrub
from seawall.vault.sealing import WHOLE_BYTES, Sealing, read_whole, read_wraps
from seawall.verify import evidence
from seawall.verify.findings import NOT_ATTAINABLE, Damage, Finding, failed, object_in
from seawall.verify.levels import Level
from seawall.verify.proofs import OK

Progress = Callable[[int, int], None]
_BUFFER_BYTES = 9 << 20
"""Holds a record of 8 MiB, which is what most are; a larger one gets a larger buffer."""


def found_ok(level: Level, method: str, opened: Sealing, **more: str) -> Finding:
    """The finding of a level that holds for all objects."""
    facts = {evidence.OBJECTS: str(len(opened.table.rows)), evidence.STORED_BYTES: str(opened.manifest.stored_bytes), **more}
    return Finding(level, OK, method, (), facts)


def check_listing(opened: Sealing) -> Finding:
    """L0: one listing of the sealing's folder, a page for every thousand objects."""
    there = {found.key.removeprefix(opened.folder): found for found in opened.store.list(opened.folder)}
    missing = [Damage(row.name, "the store does not list it") for row in opened.table.rows if row.name not in there]
    wrong = [
        Damage(row.name, f"the store lists {there[row.name].size} bytes, the manifest {row.length}")
        for row in opened.table.rows
        if row.name in there and there[row.name].size != row.length
    ]
    damages = missing + wrong
    return failed(Level.L0, "list", damages) if damages else found_ok(Level.L0, "list", opened)


@dataclass(frozen=True)
class Heads:
    """What the store says of each object."""

    finding: Finding
    """L1."""
    locks: dict[str, str]
    """Evidence about locks; empty where the store has none."""


def check_heads(opened: Sealing, versions: Mapping[str, str]) -> Heads:
    """L1: the store's own CRC-64/NVME of each whole object, and that its current version is the one that the newest receipt names.

    ``versions`` has the receipt's version id of each object that has one. A store that has neither checksums nor versions nor locks is
    not asked for anything.
    """
    capabilities = opened.store.capabilities
    if not (capabilities.full_object_crc or capabilities.object_lock or versions):
        why = "the store computes no checksum of whole objects"
        return Heads(Finding(Level.L1, NOT_ATTAINABLE, "head", (), {"why": why}), {})

    def one(row: Row) -> tuple[Row, Stored | None]:
        try:
            return row, opened.store.head(opened.key_of(row))
        except NoSuchObjectError:
            return row, None

    with ThreadPoolExecutor(16, "head") as pool:
        answers = list(pool.map(one, opened.table.rows))
    sums = capabilities.full_object_crc
    damages = [damage for row, found in answers if (damage := _differs(row, found, versions, sums)) is not None]
    present = [(row, found) for row, found in answers if found is not None]
    locks = _locks([found.locked_until for _, found in present]) if capabilities.object_lock else {}
    if damages:
        return Heads(failed(Level.L1, "head", damages), locks)
    silent = [row.name for row, found in present if found.crc64 is None]
    if silent:
        # Another tool brought these objects, without a checksum. That says nothing against their bytes.
        why = f"the store has no checksum of {len(silent)} objects, the first is {silent[0]}"
        return Heads(Finding(Level.L1, NOT_ATTAINABLE, "head", (), {"why": why}), locks)
    return Heads(found_ok(Level.L1, "head", opened), locks)


def _differs(row: Row, found: Stored | None, versions: Mapping[str, str], sums: bool) -> Damage | None:
    if row.name in versions and found is not None and found.version != versions[row.name]:
        # A restore reads what is current, so a good version below another one is no good copy.
        return Damage(row.name, "what the store has now is another version than the newest receipt names")
    if not sums:
        # What is missing or of another size, the listing shows. Without checksums there is no L1 that could fail.
        return None
    if found is None:
        return Damage(row.name, "the store has it no more")
    if found.size != row.length or (found.crc64 is not None and found.crc64 != row.crc64):
        return Damage(row.name, "the store's size or checksum is not the signed one")
    return None


def _locks(until: Sequence[datetime | None]) -> dict[str, str]:
    locked = [each for each in until if each is not None]
    found = {evidence.UNLOCKED: str(len(until) - len(locked))}
    if locked:
        found[evidence.LOCKED_UNTIL] = utc_text(min(locked))
    return found


def check_bytes(opened: Sealing, rewrappers: Resolve, transfers: int, progress: Progress) -> Finding:
    """L2: every stored byte of every object against the signed leaf digests."""
    wraps = check_wraps(opened, rewrappers)
    damages = [*wraps.damages, *scrub_objects(opened, opened.table.rows, transfers, progress)]
    return failed(Level.L2, "scrub", damages) if damages else found_ok(Level.L2, "scrub", opened, **wraps.evidence)


@dataclass(frozen=True)
class WrapsFound:
    """The documents that hold the wrapped data key."""

    damages: tuple[Damage, ...]
    evidence: dict[str, str]


def check_wraps(opened: Sealing, rewrappers: Resolve) -> WrapsFound:
    """Whether the wrapped keys are there and signed by somebody who may, and for whom the newest version wraps them."""
    try:
        versions = read_wraps(opened, rewrappers)
    except (CorruptError, TrustError, NoSuchObjectError) as error:
        return WrapsFound((Damage(object_in(error, "keys-1.json"), str(error)),), {})
    if not versions:
        return WrapsFound((Damage("keys-1.json", "the wrapped keys are not there"),), {})
    return WrapsFound((), {evidence.WRAPS: ", ".join(f"{wrap.kind} {wrap.recipient}" for wrap in versions[0].wraps)})


def scrub_objects(opened: Sealing, rows: Sequence[Row], transfers: int, progress: Progress) -> list[Damage]:
    """Read these objects back; what is damaged."""
    # One buffer a thread for all of its objects: fresh pages for each would be a twentieth of the work.
    buffers = threading.local()

    def one(row: Row) -> Damage | None:
        try:
            return _scrub(opened, row, buffers)
        except NoSuchObjectError:
            return Damage(row.name, "the store has it no more")
        except (CorruptError, TrustError) as error:
            return Damage(row.name, str(error))
        finally:
            progress(row.length, 1)

    with ThreadPoolExecutor(min(_readers(opened), transfers), "scrub") as pool:
        return [damage for damage in pool.map(one, rows) if damage is not None]


def _readers(opened: Sealing) -> int:
    """A folder keeps as many readers busy as there are cores, and more only take each other's cache; a network has to be waited for."""
    return drivers_here() if opened.store.url.startswith("file:") else max(4, drivers_here())


def _scrub(opened: Sealing, row: Row, buffers: threading.local) -> Damage | None:
    key = opened.key_of(row)
    if row.length <= WHOLE_BYTES:
        raw = read_whole(opened.store, key, row.length)
        view = memoryview(raw)
        frame = opened.frame_of(row, raw)
        damaged = scrub(frame, lambda start, length: view[start : start + length])
    else:

        def read(start: int, length: int) -> memoryview:
            buffer = getattr(buffers, "buffer", None)
            if buffer is None or len(buffer) < length:
                buffer = buffers.buffer = fresh_buffer(max(length, _BUFFER_BYTES))
            found: memoryview = buffer[: opened.store.read_into(key, start, buffer[:length])]
            return found

        frame = opened.frame_of(row)
        damaged = scrub(frame, read)
    if damaged:
        numbers = ", ".join(str(number) for number in damaged[:16])
        return Damage(row.name, f"record {numbers} of {len(frame.leaves)} is not what was signed", tuple(damaged))
    return None
