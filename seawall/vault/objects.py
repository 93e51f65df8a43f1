"""``objects.json``: a public row for every sealed object of a sealing, and the Merkle tree over the rows.

The manifest signs the table's digest and the tree's root, so one row can be proved without the table.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seawall.errors import CorruptError
from seawall.kernels.crc64 import combine, crc64
from seawall.vault import canonical, merkle
from seawall.vault.canonical import Document
from seawall.vault.open import Frame
from seawall.vault.tail import TRAILER_BYTES

if TYPE_CHECKING:
    from seawall.vault.seal import SealedObject

NAME = "objects.json"
MAX_BYTES = 256 << 20
_NAME = re.compile(r"(?:(file|batch)-(0|[1-9][0-9]{0,18})|inventory|plan)\.sea", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """What everybody may know of one object; lengths in bytes."""

    name: str
    length: int
    trailer_digest: bytes
    crc64: int
    """CRC-64/NVME of the whole object, as a store that computes it reports."""
    root: bytes

    def document(self) -> Document:
        return {
            "name": self.name,
            "length": canonical.number(self.length),
            "trailer": self.trailer_digest.hex(),
            "crc64": f"{self.crc64:016x}",
            "root": self.root.hex(),
        }


def row_of(sealed: "SealedObject") -> Row:
    """The public part of what sealing gave."""
    return Row(sealed.name, sealed.length, sealed.trailer_digest, sealed.crc64, sealed.root)


def row_of_frame(frame: Frame, name: str) -> Row:
    """The row of an object from its verified frame. The CRC of the whole follows from the signed CRC and the trailer."""
    whole = combine(frame.crc64, crc64(frame.trailer), TRAILER_BYTES)
    return Row(name, frame.length, frame.trailer_digest, whole, frame.root)


def parse_row(item: object, where: str) -> Row:
    """Read one row."""
    if not isinstance(item, dict):
        raise CorruptError("a row is not an object", where=where)
    canonical.only_fields(item, {"name", "length", "trailer", "crc64", "root"}, where=where)
    name = canonical.text_field(item, "name", where=where, most=64)
    if not _NAME.fullmatch(name):
        # Names become keys below the sealing's folder.
        raise CorruptError("a row names no object of a sealing", where=where, why=repr(name))
    return Row(
        name,
        canonical.number_field(item, "length", where=where),
        bytes.fromhex(canonical.hex_field(item, "trailer", 32, where=where)),
        int(canonical.hex_field(item, "crc64", 8, where=where), 16),
        bytes.fromhex(canonical.hex_field(item, "root", 32, where=where)),
    )


@dataclass(frozen=True, slots=True)
class ObjectsTable:
    """All rows of a sealing: files by number, then batches by number, then inventory and plan."""

    sealing: bytes
    rows: tuple[Row, ...]

    def encode(self) -> bytes:
        return canonical.encode(
            {"format": canonical.FORMAT, "sealing": self.sealing.hex(), "objects": [row.document() for row in self.rows]}
        )

    @property
    def root(self) -> bytes:
        return rows_root(self.rows)

    @property
    def files(self) -> int:
        """How many files the sealing has."""
        return sum(row.name.startswith("file-") for row in self.rows)

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.name == name), None)


def rows_root(rows: Sequence[Row]) -> bytes:
    """Merkle root over the canonical bytes of the rows."""
    return merkle.root([canonical.encode(row.document()) for row in rows])


def decode_objects(raw: bytes, sealing: bytes, where: str) -> ObjectsTable:
    """Read a table. Its digest is compared with the signed manifest by the caller."""
    document = canonical.decode(raw, where=where, max_bytes=MAX_BYTES)
    canonical.check_format(document, where=where)
    canonical.only_fields(document, {"format", "sealing", "objects"}, where=where)
    if canonical.hex_field(document, "sealing", 16, where=where) != sealing.hex():
        raise CorruptError("the objects table belongs to another sealing", where=where)
    rows = tuple(parse_row(item, where) for item in canonical.list_field(document, "objects", where=where, most=10_000_000))
    table = ObjectsTable(sealing, rows)
    files, batches = table.files, sum(row.name.startswith("batch-") for row in rows)
    expected = [f"file-{n}.sea" for n in range(files)] + [f"batch-{n}.sea" for n in range(batches)] + ["inventory.sea", "plan.sea"]
    if [row.name for row in rows] != expected:
        # One order, so that one set of objects has one table and one root; and nothing twice, missing or foreign.
        raise CorruptError("the objects table lacks rows, or has some twice or out of their order", where=where)
    return table
