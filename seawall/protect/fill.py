"""Fill a place with what it lacks of a committed sealing: the sealed bytes as they are, never sealed again.

The receipt comes last, so a copy without one is not whole. Running it again finds what is there and goes on.
"""

import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256

from seawall.errors import CorruptError, NoSuchObjectError, ObjectExistsError
from seawall.kernels.crc64 import combine, crc64
from seawall.protect.assignment import Progress
from seawall.protect.commit import put_receipt
from seawall.protect.place import Place
from seawall.stores.base import Stored
from seawall.vault import manifest as manifests
from seawall.vault import objects
from seawall.vault.identity import sealing_folder
from seawall.vault.objects import Row
from seawall.vault.open import Resolve
from seawall.vault.receipt import Receipt, receipt_name
from seawall.vault.seal import PART_BYTES, part_bytes_for
from seawall.vault.sealing import Sealing
from seawall.vault.signing import SigningKey
from seawall.vault.tail import TRAILER_BYTES
from seawall.vault.wraps import MAX_BYTES as MAX_KEYS_BYTES
from seawall.vault.wraps import keys_name


@dataclass(frozen=True, slots=True)
class Filled:
    """What a place got."""

    receipt: Receipt
    copied: int
    """Objects that were sent."""
    copied_bytes: int


def has_copy(place: Place, run: str, sealing: bytes) -> bool:
    """Whether the place has a receipt, which means that the copy was whole when it was written. One request."""
    try:
        place.store.head(sealing_folder(run, sealing) + receipt_name(place.id, 1))
    except NoSuchObjectError:
        return False
    return True


def fill(
    sealing: Sealing,
    place: Place,
    *,
    signing_key: SigningKey,
    resolve: Resolve,
    sent: Mapping[str, str | None] | None = None,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
) -> Filled:
    """Copy every object of ``sealing`` that ``place`` lacks, then sign its receipt.

    ``sent`` names the objects that went to the place in flight, with their version ids where it has versions. Raises
    :class:`CorruptError` when the source is damaged, or the place holds something else under one of the names.
    """
    folder = sealing.folder
    raw_keys = sealing.store.get(folder + keys_name(1), 0, MAX_KEYS_BYTES + 1)
    if sha256(raw_keys).digest() != sealing.manifest.keys_digest:
        raise CorruptError("the wrapped keys are not those that were committed", where=f"{sealing.store.url}/{folder}")
    _put_document(place, folder + keys_name(1), raw_keys)
    for found in sealing.store.list(folder + "keys-"):
        # Later versions are checked by whoever opens them; without them, a key that was added since would not open this copy.
        if found.key != folder + keys_name(1) and found.size <= MAX_KEYS_BYTES:
            with contextlib.suppress(ObjectExistsError):
                place.store.put(found.key, sealing.store.get(found.key, 0, MAX_KEYS_BYTES + 1))
    sent = sent or {}
    rows = [row for row in sealing.table.rows if row.name not in sent]
    versions = {name: version for name, version in sent.items() if version is not None}

    def one(row: Row) -> int:
        stored, copied = _copy(sealing, row, place)
        if stored.version is not None:
            versions[row.name] = stored.version
        progress(row.length, 1)
        return row.length if copied else 0

    with ThreadPoolExecutor(min(transfers, max(1, len(rows))), "copy") as pool:
        copied = list(pool.map(one, rows))
    for name in (objects.NAME, manifests.NAME):
        _put_document(place, folder + name, sealing.store.get(folder + name))
    manifest = sealing.manifest
    receipt, _ = put_receipt(manifest.run, manifest.sealing, sealing.manifest_digest, place, signing_key, resolve, versions)
    return Filled(receipt, sum(nbytes > 0 for nbytes in copied), sum(copied))


def _put_document(place: Place, key: str, raw: bytes) -> None:
    try:
        place.store.put(key, raw)
    except ObjectExistsError:
        if place.store.get(key) != raw:
            raise CorruptError("the place holds another document of this sealing", where=f"{place.store.url}/{key}") from None


def _copy(sealing: Sealing, row: Row, place: Place) -> tuple[Stored, bool]:
    key = sealing.key_of(row)
    try:
        return _check_there(place, key, row), False
    except NoSuchObjectError:
        pass
    try:
        if row.length <= 2 * PART_BYTES:
            return _copy_small(sealing, row, place, key), True
        return _copy_parts(sealing, row, place, key), True
    except ObjectExistsError:
        return _check_there(place, key, row), False


def _check_there(place: Place, key: str, row: Row) -> Stored:
    found = place.store.head(key)
    trailer = place.store.get(key, max(0, row.length - TRAILER_BYTES), TRAILER_BYTES) if found.crc64 is None else b""
    if found.size != row.length or (
        found.crc64 != row.crc64 if found.crc64 is not None else sha256(trailer).digest() != row.trailer_digest
    ):
        raise CorruptError(
            "the place holds another object under this name",
            where=f"{place.store.url}/{key}",
            why="its size, checksum or trailer is not that of the committed object",
        )
    return found


def _copy_small(sealing: Sealing, row: Row, place: Place, key: str) -> Stored:
    raw = sealing.store.get(key, 0, row.length + 1)
    if len(raw) != row.length or crc64(raw) != row.crc64:
        raise _damaged(sealing, key)
    return place.store.put(key, raw, row.crc64)


def _copy_parts(sealing: Sealing, row: Row, place: Place, key: str) -> Stored:
    part_bytes = part_bytes_for(row.length)
    buffer = memoryview(bytearray(part_bytes))
    upload = place.store.begin(key)
    try:
        total, start, number = 0, 0, 1
        while start < row.length:
            part = buffer[: min(part_bytes, row.length - start)]
            if sealing.store.read_into(key, start, part) != len(part):
                raise _damaged(sealing, key)
            crc = crc64(part)
            upload.part(number, start, part, crc)
            total = combine(total, crc, len(part))
            start, number = start + len(part), number + 1
        if total != row.crc64:
            raise _damaged(sealing, key)
        return upload.finish(total, row.length)
    except BaseException:
        upload.abort()
        raise


def _damaged(sealing: Sealing, key: str) -> CorruptError:
    return CorruptError(
        "an object is damaged in the copy that is read",
        where=f"{sealing.store.url}/{key}",
        why="its bytes do not give the committed checksum",
        do="verify that copy; fill the place from another one",
    )
