"""Fill a place with what it lacks of a committed sealing: the sealed bytes as they are, never sealed again.

The receipt comes last, so a copy without one is not whole. Running it again finds what is there and goes on.
"""

import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256

from seawall.errors import CorruptError, NoSuchObjectError, ObjectExistsError, TrustError
from seawall.kernels.crc64 import combine, crc64
from seawall.protect.assembly import Assembly, Sources, check_assembled
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
from seawall.vault.sealing import Sealing, later_wraps, read_whole
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
    rewrappers: Resolve,
    sent: Mapping[str, str | None] | None = None,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
) -> Filled:
    """Copy every object of ``sealing`` that ``place`` lacks, then sign its receipt. Each record is held against the signed digests on
    its way: a copy that is read may be a hostile store's, and what is written here stays.

    ``rewrappers`` admits operators, who may have added wrapped keys. ``sent`` names the objects that went to the place in flight, with
    their version ids where it has versions. Raises :class:`CorruptError` when the source is damaged, or the place holds something else
    under one of the names.
    """
    folder = sealing.folder
    raw_keys = sealing.store.get(folder + keys_name(1), 0, MAX_KEYS_BYTES + 1)
    if sha256(raw_keys).digest() != sealing.manifest.keys_digest:
        raise CorruptError("the wrapped keys are not those that were committed", where=f"{sealing.store.url}/{folder}")
    _put_document(place, folder + keys_name(1), raw_keys)
    for version, raw in later_wraps(sealing, rewrappers):
        # A key that was added since would not open this copy without them.
        with contextlib.suppress(ObjectExistsError):
            place.store.put(folder + keys_name(version), raw)
    sent = sent or {}
    rows = [row for row in sealing.table.rows if row.name not in sent]
    versions = {name: version for name, version in sent.items() if version is not None}
    sources = Sources([Place("the copy that is read", "", sealing.store)])

    def one(row: Row) -> int:
        stored, copied = copy_object(sealing, row, place, sources)
        if stored.version is not None:
            versions[row.name] = stored.version
        progress(row.length, 1)
        return row.length if copied else 0

    with ThreadPoolExecutor(min(transfers, max(1, len(rows))), "copy") as pool:
        copied = list(pool.map(one, rows))
    manifest = sealing.manifest
    _put_document(place, folder + objects.NAME, _same(sealing, objects.NAME, manifest.objects_digest))
    _put_document(place, folder + manifests.NAME, _same(sealing, manifests.NAME, bytes.fromhex(sealing.manifest_digest)))
    receipt, _ = put_receipt(manifest.run, manifest.sealing, sealing.manifest_digest, place, signing_key, resolve, versions)
    return Filled(receipt, sum(nbytes > 0 for nbytes in copied), sum(copied))


def _same(sealing: Sealing, name: str, digest: bytes) -> bytes:
    """A document that was verified before, read again: what is written once must not depend on a store saying the same thing twice."""
    raw = sealing.store.get(sealing.folder + name)
    if sha256(raw).digest() != digest:
        raise CorruptError("a document changed between two reads", where=f"{sealing.store.url}/{sealing.folder}{name}")
    return raw


def _put_document(place: Place, key: str, raw: bytes) -> None:
    try:
        place.store.put(key, raw)
    except ObjectExistsError:
        if place.store.get(key) != raw:
            raise CorruptError("the place holds another document of this sealing", where=f"{place.store.url}/{key}") from None


def copy_object(sealing: Sealing, row: Row, place: Place, sources: Sources) -> tuple[Stored, bool]:
    """One object, unless the place has it; whether it was sent. Raises as :func:`fill` does."""
    key = sealing.key_of(row)
    try:
        return _check_there(place, key, row), False
    except NoSuchObjectError:
        pass
    try:
        if row.length <= 2 * PART_BYTES:
            # One request, where header, tail and records by themselves would be several.
            raw = read_whole(sealing.store, key, row.length)
            check_assembled(sealing, row, memoryview(raw), f"{sealing.store.url}/{key}")
            return place.store.put(key, raw, row.crc64), True
        return create_object(Assembly(sealing.frame_of(row), key, sources), place, key, row), True
    except ObjectExistsError:
        return _check_there(place, key, row), False
    except (CorruptError, TrustError) as error:
        raise CorruptError(
            "an object is damaged in the copy that is read",
            where=f"{sealing.store.url}/{key}",
            why=str(error),
            do=f"`seawall heal {sealing.manifest.run} --step {sealing.manifest.step}` takes what is right from all copies",
        ) from error


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


def create_object(assembly: Assembly, place: Place, key: str, row: Row) -> Stored:
    """Create an object from its verified blocks, in one request or in parts: nothing else is ever sent, whatever the sources hold.

    Raises :class:`ObjectExistsError` when the place has one of that name, and what :meth:`Assembly.write` raises; then nothing is left.
    """
    if row.length <= 2 * PART_BYTES:
        (group,) = assembly.groups(row.length)
        raw = memoryview(bytearray(row.length))
        assembly.write(group, raw)
        return place.store.put(key, raw, row.crc64)
    groups = assembly.groups(part_bytes_for(row.length))
    buffer = memoryview(bytearray(max(group.nbytes for group in groups)))
    upload = place.store.begin(key)
    try:
        total = 0
        for number, group in enumerate(groups, 1):
            part = buffer[: group.nbytes]
            assembly.write(group, part)
            crc = crc64(part)
            upload.part(number, group.start, part, crc)
            total = combine(total, crc, group.nbytes)
        return upload.finish(total, row.length)
    except BaseException:
        upload.abort()
        raise
