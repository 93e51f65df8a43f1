"""A committed sealing as a reader meets it in one store: manifest, keys, objects table and inventory, each checked against the next.

The chain of trust begins at the commit entry of the log, which names the manifest's digest.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from seawall.errors import CorruptError, KeyMissingError, NoSuchCopyError, NoSuchObjectError, TrustError
from seawall.stores.base import Store
from seawall.vault import manifest as manifests
from seawall.vault import objects
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.identity import sealing_folder
from seawall.vault.inventory import Inventory, decode_inventory
from seawall.vault.manifest import Manifest, parse_manifest
from seawall.vault.objects import ObjectsTable, Row, decode_objects, row_of_frame, rows_root
from seawall.vault.open import Frame, Resolve, open_bytes, read_frame
from seawall.vault.recipients import Unwrapper
from seawall.vault.signing import PublicKey
from seawall.vault.wraps import MAX_BYTES as MAX_KEYS_BYTES
from seawall.vault.wraps import WrappedKey, keys_name, parse_wraps

WHOLE_BYTES = 16 << 20
"""Objects up to this size are read in one request."""
MAX_KEYS_VERSIONS = 1000
"""Each rotation of a wrapping key adds one."""
_KEYS_VERSION = re.compile(r"keys-([1-9][0-9]{0,8})\.json\Z", re.ASCII)


@dataclass(frozen=True)
class Sealing:
    """What public keys alone tell of a sealing in a store. All digests were followed from the manifest's, which the log named."""

    store: Store
    manifest: Manifest
    manifest_digest: str
    table: ObjectsTable
    writers: Resolve

    @property
    def folder(self) -> str:
        return sealing_folder(self.manifest.run, self.manifest.sealing)

    def key_of(self, row: Row) -> str:
        return self.folder + row.name

    def frame_of(self, row: Row, raw: bytes | None = None) -> Frame:
        """The verified frame of one object, and that it is the one of the table. ``raw`` is the whole object where it was read already."""
        key = self.key_of(row)
        where = f"{self.store.url}/{key}"

        def read(start: int, length: int) -> bytes:
            return self.store.get(key, start, length) if raw is None else raw[start : start + length]

        if raw is not None and len(raw) != row.length:
            raise CorruptError(
                "an object has another length than the manifest says", where=where, why=f"{len(raw)} bytes, not {row.length}"
            )
        frame = read_frame(read, row.length, self.writers, where)
        if row_of_frame(frame, row.name) != row or frame.header.sealing != self.manifest.sealing:
            raise CorruptError(
                "an object is another than the one that was committed", where=where, why="its trailer differs from the manifest's"
            )
        if object_name(frame.header.kind, frame.header.number) != row.name:
            raise CorruptError("an object lies under another object's name", where=where)
        return frame


def read_sealing(store: Store, run: str, sealing: bytes, manifest_digest: str, writers: Resolve) -> Sealing:
    """Read manifest and objects table of a sealing from ``store``.

    Raises :class:`NoSuchCopyError` when the store has no copy, :class:`CorruptError` when what is there is not what the log names.
    """
    folder = sealing_folder(run, sealing)
    try:
        raw_manifest = store.get(folder + manifests.NAME, 0, manifests.MAX_BYTES + 1)
    except NoSuchObjectError as error:
        where = f"{store.url}/{folder}{manifests.NAME}"
        raise NoSuchCopyError(
            "the store has no copy of this checkpoint", where=where, do="choose another store (`seawall copies`)"
        ) from error
    manifest = checked_manifest(raw_manifest, run, sealing, manifest_digest, writers, f"{store.url}/{folder}{manifests.NAME}")
    where = f"{store.url}/{folder}{objects.NAME}"
    try:
        raw_table = store.get(folder + objects.NAME, 0, objects.MAX_BYTES + 1)
    except NoSuchObjectError as error:
        raise CorruptError("the copy has no objects table", where=where, do="use another copy") from error
    return Sealing(store, manifest, manifest_digest, checked_table(raw_table, manifest, where), writers)


def checked_manifest(raw: bytes, run: str, sealing: bytes, manifest_digest: str, writers: Resolve, where: str) -> Manifest:
    """The manifest in ``raw``; :class:`CorruptError` unless it is the one that the log names."""
    if sha256(raw).hexdigest() != manifest_digest:
        raise CorruptError("the manifest is not the one that the log names", where=where, do="use another copy")
    manifest = parse_manifest(raw, writers, where)
    if (manifest.run, manifest.sealing) != (run, sealing):
        raise CorruptError("the manifest belongs to another sealing", where=where)
    return manifest


def checked_table(raw: bytes, manifest: Manifest, where: str) -> ObjectsTable:
    """The objects table in ``raw``; :class:`CorruptError` unless it is the one that ``manifest`` signs."""
    if sha256(raw).digest() != manifest.objects_digest:
        raise CorruptError("the objects table is not the one that was signed", where=where, do="use another copy")
    table = decode_objects(raw, manifest.sealing, where)
    if rows_root(table.rows) != manifest.root:
        raise CorruptError("the objects table does not give the signed Merkle root", where=where)
    if (table.files, sum(row.length for row in table.rows)) != (manifest.files, manifest.stored_bytes):
        raise CorruptError("the objects table does not add up to the manifest's counts", where=where)
    inventory = table.row(object_name(ObjectKind.INVENTORY, 0))
    if inventory is None or inventory.trailer_digest != manifest.inventory_digest:
        raise CorruptError("the inventory is not the one that was signed", where=where)
    return table


def _either(sealing: Sealing, rewrappers: Resolve) -> Resolve:
    def either(key_id: str) -> PublicKey | None:
        return sealing.writers(key_id) or rewrappers(key_id)

    return either


def _keys_versions(sealing: Sealing) -> list[int]:
    """The versions of the wrapped keys that the store lists, in order."""
    prefix = sealing.folder + "keys-"
    names = (found.key.removeprefix(sealing.folder) for found in sealing.store.list(prefix))
    numbers = sorted(int(match[1]) for match in map(_KEYS_VERSION.match, names) if match)
    if len(numbers) > MAX_KEYS_VERSIONS:
        raise CorruptError("there are too many versions of the wrapped keys", where=sealing.folder, why=f"{len(numbers)}")
    return numbers


def _read_version(sealing: Sealing, number: int, either: Resolve) -> WrappedKey:
    manifest = sealing.manifest
    key = sealing.folder + keys_name(number)
    raw = sealing.store.get(key, 0, MAX_KEYS_BYTES + 1)
    if number == 1 and sha256(raw).digest() != manifest.keys_digest:
        raise CorruptError("the wrapped keys are not those that were committed", where=f"{sealing.store.url}/{key}")
    # The committed version is the writer's own; an operator can only add to it.
    return parse_wraps(raw, manifest.run, manifest.sealing, number, sealing.writers if number == 1 else either, key)


def read_wraps(sealing: Sealing, rewrappers: Resolve) -> list[WrappedKey]:
    """All versions of the wrapped data key, newest first, the committed one last.

    Later versions may be signed by operators (``rewrappers``). Raises :class:`CorruptError` when the committed one is not there, or
    when one is not what it should be.
    """
    either = _either(sealing, rewrappers)
    versions = [_read_version(sealing, number, either) for number in reversed(_keys_versions(sealing))]
    if not versions or versions[-1].version != 1:
        raise CorruptError("the first version of the wrapped keys is not there", where=sealing.folder)
    if any(wrapped.commitment != versions[-1].commitment for wrapped in versions):
        raise CorruptError("a later version of the wrapped keys holds another data key", where=sealing.folder)
    return versions


def later_wraps(sealing: Sealing, rewrappers: Resolve) -> list[tuple[int, bytes]]:
    """The later versions of the wrapped keys that count, with their stored bytes. Others are passed over: a reader passes over them too."""
    either = _either(sealing, rewrappers)
    found = []
    for number in _keys_versions(sealing):
        key = sealing.folder + keys_name(number)
        raw = sealing.store.get(key, 0, MAX_KEYS_BYTES + 1) if number != 1 else b""
        if number != 1 and counts_as_wraps(sealing.manifest, raw, number, either):
            found.append((number, raw))
    return found


def counts_as_wraps(manifest: Manifest, raw: bytes, number: int, resolve: Resolve) -> bool:
    """Whether these bytes are version ``number`` of the sealing's wrapped keys, signed by one of ``resolve``'s keys."""
    try:
        parse_wraps(raw, manifest.run, manifest.sealing, number, resolve, keys_name(number))
    except (CorruptError, TrustError):
        return False
    return True


def unlock(sealing: Sealing, unwrappers: Sequence[Unwrapper], rewrappers: Resolve) -> bytes:
    """The data key, from the first version that a key of this host opens. Raises :class:`KeyMissingError` when there is none.

    A later version that is damaged, or was put there by somebody who may not, is passed over while another one opens: a restore must
    not depend on it. Version 1 is the one that was committed, and fixes which data key it is.
    """
    either = _either(sealing, rewrappers)
    try:
        first = _read_version(sealing, 1, either)
    except NoSuchObjectError as error:
        raise CorruptError("the copy lacks the wrapped keys that were committed", where=sealing.folder, do="use another copy") from error
    problem: KeyMissingError | CorruptError | TrustError
    try:
        # The committed version opens for most, and then nothing has to be listed.
        return first.unwrap(unwrappers)
    except KeyMissingError as error:
        problem = error
    for number in (number for number in _keys_versions(sealing) if number != 1):
        try:
            wrapped = _read_version(sealing, number, either)
            if wrapped.commitment != first.commitment:
                raise CorruptError(
                    "a later version of the wrapped keys holds another data key", where=f"{sealing.folder}{keys_name(number)}"
                )
            return wrapped.unwrap(unwrappers)
        except KeyMissingError:
            continue
        except (CorruptError, TrustError) as error:
            problem = error
    raise problem


def read_inventory(sealing: Sealing, data_key: bytes) -> Inventory:
    """Open the inventory of a sealing; every file in it has a row of the table, because both have the manifest's count."""
    name = object_name(ObjectKind.INVENTORY, 0)
    row = sealing.table.row(name)
    if row is None or row.trailer_digest != sealing.manifest.inventory_digest:
        raise CorruptError("the inventory is not the one that was signed", where=sealing.folder)
    raw = read_whole(sealing.store, sealing.folder + name, row.length)
    sealing.frame_of(row, raw)
    plaintext, _ = open_bytes(raw, data_key, sealing.writers, f"{sealing.store.url}/{sealing.folder}{name}")
    inventory = decode_inventory(plaintext, name)
    if (inventory.run, inventory.sealing) != (sealing.manifest.run, sealing.manifest.sealing):
        raise CorruptError("the inventory belongs to another sealing", where=sealing.folder)
    counts = (inventory.step, len(inventory.files), sum(file.size for file in inventory.files))
    if counts != (sealing.manifest.step, sealing.manifest.files, sealing.manifest.plaintext_bytes):
        raise CorruptError("the inventory does not add up to the manifest's counts", where=sealing.folder)
    return inventory


def read_whole(store: Store, key: str, length: int) -> bytes:
    """A whole object of known length."""
    raw = store.get(key, 0, length + 1)
    if len(raw) != length:
        raise CorruptError("an object has another length than the manifest says", where=f"{store.url}/{key}", why=f"not {length} bytes")
    return raw
