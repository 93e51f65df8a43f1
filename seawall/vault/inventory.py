"""``inventory.sea``: the private facts of a sealing, enough to rebuild the checkpoint and to know every tensor again."""

from dataclasses import dataclass, field

from seawall.vault import canonical
from seawall.vault.names import check_tree, checked_identity, checked_name
from seawall.vault.plan import (
    Folder,
    Link,
    Pointer,
    decode_folders,
    decode_links,
    decode_pointer,
    encode_folders,
    encode_links,
    encode_pointer,
)
from seawall.vault.tensors import TensorRecord, decode_tensors, encode_tensors


@dataclass(frozen=True, slots=True)
class InventoryFile:
    """One file: where it was, how long, its permissions, and the SHA-256 of its bytes."""

    name: str
    size: int
    mode: int
    identity: str
    plaintext_digest: bytes


@dataclass(frozen=True, slots=True)
class Inventory:
    """The content of the inventory object."""

    run: str
    sealing: bytes
    step: int
    layout: str
    world_size: int | None
    commit_mark: str | None
    files: tuple[InventoryFile, ...]
    folders: tuple[Folder, ...]
    links: tuple[Link, ...]
    pointer: Pointer | None
    tensors: tuple[TensorRecord, ...]
    notes: dict[str, str] = field(default_factory=dict)
    """Versions of what wrote and sealed it, and the loss where it is known; texts only."""

    def tensors_in(self, file: int, start: int, end: int) -> list[str]:
        """Names of the tensors that have bytes between ``start`` and ``end`` (not counted) of a file, in order of their place there. Those
        whose place in the file is not known count wherever."""
        found = {
            (piece.start or 0, tensor.name)
            for tensor in self.tensors
            for piece in tensor.pieces
            if piece.file == file and piece.nbytes and (piece.start is None or (piece.start < end and piece.start + piece.nbytes > start))
        }
        return list(dict.fromkeys(name for _, name in sorted(found)))

    def encode(self) -> bytes:
        number = canonical.number
        return canonical.encode(
            {
                "format": canonical.FORMAT,
                "run": self.run,
                "sealing": self.sealing.hex(),
                "step": number(self.step),
                "layout": self.layout,
                "world_size": None if self.world_size is None else number(self.world_size),
                "commit_mark": self.commit_mark,
                "files": [
                    {
                        "name": f.name,
                        "size": number(f.size),
                        "mode": number(f.mode),
                        "identity": f.identity,
                        "plaintext": f.plaintext_digest.hex(),
                    }
                    for f in self.files
                ],
                "folders": encode_folders(self.folders),
                "links": encode_links(self.links),
                "pointer": encode_pointer(self.pointer),
                "tensors": encode_tensors(self.tensors),
                "notes": dict(self.notes),
            }
        )


def decode_inventory(raw: bytes, where: str) -> Inventory:
    """Read an inventory's plaintext."""
    document = canonical.decode(raw, where=where, max_bytes=4 << 30)
    canonical.check_format(document, where=where)
    files = tuple(
        InventoryFile(
            checked_name(canonical.text_field(f, "name", where=where), where),
            canonical.number_field(f, "size", where=where),
            canonical.number_field(f, "mode", where=where, most=0o7777),
            checked_identity(canonical.text_field(f, "identity", where=where), where),
            bytes.fromhex(canonical.hex_field(f, "plaintext", 32, where=where)),
        )
        for f in canonical.objects_field(document, "files", where=where)
    )
    world_size = document.get("world_size")
    commit_mark = document.get("commit_mark")
    inventory = Inventory(
        canonical.text_field(document, "run", where=where),
        bytes.fromhex(canonical.hex_field(document, "sealing", 16, where=where)),
        canonical.number_field(document, "step", where=where),
        canonical.text_field(document, "layout", where=where),
        None if world_size is None else canonical.parse_number(world_size, where=where),
        None if commit_mark is None else checked_name(canonical.text_field(document, "commit_mark", where=where), where),
        files,
        decode_folders(document, where),
        decode_links(document, where),
        decode_pointer(document, where),
        decode_tensors(document, len(files), where),
        {key: str(value) for key, value in canonical.object_field(document, "notes", where=where).items()},
    )
    pointer = None if inventory.pointer is None else inventory.pointer.name
    check_tree([f.name for f in files], [f.name for f in inventory.folders], [k.name for k in inventory.links], pointer, where)
    canonical.same_form(inventory.encode(), raw, where=where)
    return inventory
