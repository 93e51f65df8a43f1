"""``plan.sea``: which files a sealing consists of, their numbers, and which batch seals them. Fixed before the first byte is sealed."""

from collections.abc import Sequence
from dataclasses import dataclass

from seawall.errors import CorruptError, UsageError
from seawall.vault import canonical
from seawall.vault.canonical import Document
from seawall.vault.identity import checked_run, sealing_id
from seawall.vault.names import check_tree, checked_identity, checked_name, checked_target
from seawall.vault.tensors import TensorRecord, decode_tensors, encode_tensors


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file of the checkpoint. ``identity`` is what must not change while it is read: mtime_ns, inode and device, ``:`` between."""

    name: str
    size: int
    mode: int
    identity: str
    batch: int


@dataclass(frozen=True, slots=True)
class Folder:
    """An empty folder."""

    name: str
    mode: int


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link whose target lies inside the checkpoint."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Pointer:
    """A file that a framework finds its step by (DeepSpeed's ``latest``, Megatron's tracker); a restore writes it."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one sealing. The number of a file is its index in ``files``."""

    run: str
    sealing: bytes
    step: int
    epoch: int
    """Epoch that the checkpoint was written in."""
    attempt: int
    mark_digest: bytes
    layout: str
    world_size: int | None
    commit_mark: str | None
    codec: int
    saved_at: str
    """The commit mark's time by the writer's clock, for information."""
    files: tuple[PlannedFile, ...]
    folders: tuple[Folder, ...]
    links: tuple[Link, ...]
    pointer: Pointer | None
    tensors: tuple[TensorRecord, ...]
    batches: int

    def numbers_of(self, batch: int) -> list[int]:
        """The files that batch seals."""
        return [number for number, file in enumerate(self.files) if file.batch == batch]

    def encode(self) -> bytes:
        number = canonical.number
        return canonical.encode(
            {
                "format": canonical.FORMAT,
                "run": self.run,
                "sealing": self.sealing.hex(),
                "step": number(self.step),
                "epoch": number(self.epoch),
                "attempt": number(self.attempt),
                "mark": self.mark_digest.hex(),
                "layout": self.layout,
                "world_size": None if self.world_size is None else number(self.world_size),
                "commit_mark": self.commit_mark,
                "codec": number(int(self.codec)),
                "saved_at": self.saved_at,
                "batches": number(self.batches),
                "files": [
                    {"name": f.name, "size": number(f.size), "mode": number(f.mode), "identity": f.identity, "batch": number(f.batch)}
                    for f in self.files
                ],
                "folders": encode_folders(self.folders),
                "links": encode_links(self.links),
                "pointer": encode_pointer(self.pointer),
                "tensors": encode_tensors(self.tensors),
            }
        )


def encode_folders(folders: Sequence[Folder]) -> list[Document]:
    return [{"name": folder.name, "mode": canonical.number(folder.mode)} for folder in folders]


def encode_links(links: Sequence[Link]) -> list[Document]:
    return [{"name": link.name, "target": link.target} for link in links]


def encode_pointer(pointer: Pointer | None) -> Document | None:
    return None if pointer is None else {"name": pointer.name, "content": pointer.content}


def decode_pointer(document: Document, where: str) -> Pointer | None:
    if document.get("pointer") is None:
        return None
    pointer = canonical.object_field(document, "pointer", where=where)
    name = checked_name(canonical.text_field(pointer, "name", where=where, most=255), where)
    return Pointer(name, canonical.text_field(pointer, "content", where=where))


def decode_folders(document: Document, where: str) -> tuple[Folder, ...]:
    folders = canonical.objects_field(document, "folders", where=where)
    return tuple(
        Folder(
            checked_name(canonical.text_field(f, "name", where=where), where), canonical.number_field(f, "mode", where=where, most=0o7777)
        )
        for f in folders
    )


def decode_links(document: Document, where: str) -> tuple[Link, ...]:
    links = canonical.objects_field(document, "links", where=where)
    return tuple(
        Link(
            checked_name(canonical.text_field(k, "name", where=where), where),
            checked_target(canonical.text_field(k, "target", where=where), where),
        )
        for k in links
    )


def decode_plan(raw: bytes, where: str) -> Plan:
    """Read a plan's plaintext."""
    document = canonical.decode(raw, where=where, max_bytes=1 << 30)
    canonical.check_format(document, where=where)

    def number(name: str, most: int = canonical.MAX_NUMBER) -> int:
        return canonical.number_field(document, name, where=where, most=most)

    batches = number("batches")
    files = tuple(
        PlannedFile(
            checked_name(canonical.text_field(f, "name", where=where), where),
            canonical.number_field(f, "size", where=where),
            canonical.number_field(f, "mode", where=where, most=0o7777),
            checked_identity(canonical.text_field(f, "identity", where=where), where),
            canonical.number_field(f, "batch", where=where, most=max(batches - 1, 0)),
        )
        for f in canonical.objects_field(document, "files", where=where)
    )
    if not files and batches:
        raise CorruptError("a plan has batches and no files", where=where)
    world_size, commit_mark = document.get("world_size"), document.get("commit_mark")
    plan = Plan(
        canonical.text_field(document, "run", where=where),
        bytes.fromhex(canonical.hex_field(document, "sealing", 16, where=where)),
        number("step"),
        number("epoch"),
        number("attempt", 2**32 - 1),
        bytes.fromhex(canonical.hex_field(document, "mark", 32, where=where)),
        canonical.text_field(document, "layout", where=where),
        None if world_size is None else canonical.parse_number(world_size, where=where),
        None if commit_mark is None else checked_name(canonical.text_field(document, "commit_mark", where=where), where),
        number("codec", 255),
        canonical.time_field(document, "saved_at", where=where),
        files,
        decode_folders(document, where),
        decode_links(document, where),
        decode_pointer(document, where),
        decode_tensors(document, len(files), where),
        batches,
    )
    try:
        own = sealing_id(checked_run(plan.run), plan.epoch, plan.step, plan.mark_digest, plan.attempt)
    except UsageError as problem:
        raise CorruptError("a plan names no run", where=where, why=str(problem)) from None
    if plan.sealing != own:
        raise CorruptError("a plan's sealing id is not that of its checkpoint", where=where)
    pointer = None if plan.pointer is None else plan.pointer.name
    check_tree([f.name for f in files], [f.name for f in plan.folders], [k.name for k in plan.links], pointer, where)
    canonical.same_form(plan.encode(), raw, where=where)
    return plan
