"""``batch-<k>.sea``: what one worker sealed. The commit is assembled from these, so nothing has to be read back."""

from dataclasses import dataclass

from seawall.errors import CorruptError
from seawall.vault import canonical
from seawall.vault.objects import Row, parse_row


@dataclass(frozen=True, slots=True)
class SealedFile:
    """One sealed file: its number, its public row, the digest of its plaintext and the CRC-64/NVME of each tensor piece in it."""

    number: int
    row: Row
    plaintext_digest: bytes
    piece_crcs: tuple[int, ...]
    """In the order of the file's pieces in the inspection; only pieces that lie contiguously have one."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The content of one batch object."""

    sealing: bytes
    number: int
    files: tuple[SealedFile, ...]
    versions: dict[str, dict[str, str]]
    """Store id → object name → version id, for stores that have versions."""

    def encode(self) -> bytes:
        number = canonical.number
        return canonical.encode(
            {
                "format": canonical.FORMAT,
                "sealing": self.sealing.hex(),
                "batch": number(self.number),
                "files": [
                    {
                        "n": number(f.number),
                        "row": f.row.document(),
                        "plaintext": f.plaintext_digest.hex(),
                        "pieces": [f"{crc:016x}" for crc in f.piece_crcs],
                    }
                    for f in self.files
                ],
                "versions": {store: dict(names) for store, names in self.versions.items()},
            }
        )


def decode_batch(raw: bytes, where: str) -> Batch:
    """Read a batch's plaintext."""
    document = canonical.decode(raw, where=where, max_bytes=1 << 30)
    canonical.check_format(document, where=where)
    files = tuple(
        SealedFile(
            canonical.number_field(item, "n", where=where),
            parse_row(item.get("row"), where),
            bytes.fromhex(canonical.hex_field(item, "plaintext", 32, where=where)),
            tuple(
                int(canonical.hex_text(crc, 8, where=where), 16)
                for crc in canonical.list_field(item, "pieces", where=where, most=10_000_000)
            ),
        )
        for item in canonical.objects_field(document, "files", where=where)
    )
    batch = Batch(
        bytes.fromhex(canonical.hex_field(document, "sealing", 16, where=where)),
        canonical.number_field(document, "batch", where=where),
        files,
        decode_versions(document, where),
    )
    if any(file.row.name != f"file-{file.number}.sea" for file in files):
        raise CorruptError("a batch gives a file the row of another object", where=where)
    canonical.same_form(batch.encode(), raw, where=where)
    return batch


def decode_versions(document: canonical.Document, where: str) -> dict[str, dict[str, str]]:
    """Read the field ``versions``."""
    versions: dict[str, dict[str, str]] = {}
    for store, names in canonical.object_field(document, "versions", where=where).items():
        if not isinstance(names, dict) or not all(isinstance(version, str) for version in names.values()):
            raise CorruptError("versions are not texts", where=where)
        versions[store] = dict(names)
    return versions
