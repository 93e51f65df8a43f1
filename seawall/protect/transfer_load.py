"""What a copy of a sealing still has to bring to a place: what lies there already as identical objects need not go again."""

from seawall.estimate.transfer import Load
from seawall.stores.base import Store
from seawall.vault.sealing import Sealing


def load_of(sealing: Sealing, target: Store) -> Load:
    """Sizes by the signed table; at ``target`` one listing of the sealing's folder.

    An object counts as there when its size and, where the store tells one, its checksum are those of the table. This is an
    estimate: the copy itself looks closer (:mod:`seawall.protect.fill`).
    """
    rows = {sealing.key_of(row): row for row in sealing.table.rows}
    there = [
        rows[stored.key].length
        for stored in target.list(sealing.folder)
        if stored.key in rows and stored.size == rows[stored.key].length and stored.crc64 in (None, rows[stored.key].crc64)
    ]
    return Load(sum(row.length for row in rows.values()), len(rows), sum(there), len(there))
