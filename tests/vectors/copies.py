"""Whole sealings for the vectors: small checkpoints sealed as the product seals them, in a store with log, trust lists and proofs."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from seawall.vault import objects
from seawall.vault.batch import Batch, SealedFile
from seawall.vault.codecs import Codec
from seawall.vault.derived import cast_candidates, find_pairs, least_derived_bytes
from seawall.vault.element_runs import element_runs
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.identity import sealing_folder, sealing_id
from seawall.vault.inventory import Inventory, InventoryFile
from seawall.vault.manifest import Manifest
from seawall.vault.names import posix_bytes
from seawall.vault.objects import ObjectsTable, Row, row_of
from seawall.vault.piece_sums import PieceSums, spans_of
from seawall.vault.plan import Folder, Link, Plan, PlannedFile, Pointer
from seawall.vault.recipients import KeyringKey, RecoveryKey, Wrap, wrap_context
from seawall.vault.seal import seal_bytes
from seawall.vault.tensors import TensorPiece, TensorRecord
from seawall.vault.wraps import WrappedKey, commitment
from tests.log.actors import KEYS, RUN
from tests.vectors.fixed_random import fixed_random

FOLDER = Path(__file__).parent
CHUNK_BYTES = 1024
SAVED_AT = "2026-03-01T00:00:00.000000Z"
KEYRING = KeyringKey(sha256(b"vectors keyring").digest())
STRANGE_KEYRING = KeyringKey(sha256(b"vectors another keyring").digest())
RECOVERY = RecoveryKey(hashlib.shake_256(b"vectors recovery").digest(96))


def noise(name: str, nbytes: int) -> bytes:
    """Bytes that do not shrink, always the same for one name."""
    return hashlib.shake_256(name.encode()).digest(nbytes)


RECOVERY_WRAPS: dict[str, str] = json.loads((FOLDER / "recovery_wraps.json").read_text())
"""HPKE's randomness cannot be given from outside, so the vectors' wraps are kept once they were made."""
USED_WRAPS: set[str] = set()


def recovery_wrap(data_key: bytes, sealing: bytes) -> Wrap:
    """The wrap for the recovery key: the one that was kept, or a new one."""
    context = wrap_context(RUN, sealing)
    label = sha256(data_key + context).hexdigest()
    USED_WRAPS.add(label)
    if label not in RECOVERY_WRAPS:
        RECOVERY_WRAPS[label] = RECOVERY.wrap(data_key, context).wrapped.hex()
    return Wrap(RECOVERY.kind, RECOVERY.id, bytes.fromhex(RECOVERY_WRAPS[label]))


@dataclass
class SealedCopy:
    """One sealing: its private facts and its stored objects by name."""

    name: str
    plan: Plan
    inventory: Inventory
    data_key: bytes
    contents: dict[str, bytes]
    objects: dict[str, bytes] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    manifest: Manifest | None = None

    @property
    def sealing(self) -> bytes:
        return self.plan.sealing

    @property
    def manifest_digest(self) -> str:
        return sha256(self.objects["manifest.json"]).hexdigest()

    def table(self) -> ObjectsTable:
        """All rows in the order of the format."""
        numbered = sorted(
            (name for name in self.rows if "-" in name), key=lambda name: (name.startswith("batch"), int(name.split("-")[1].split(".")[0]))
        )
        return ObjectsTable(self.sealing, tuple(self.rows[name] for name in (*numbered, "inventory.sea", "plan.sea")))

    def commit(self, table: ObjectsTable | None = None, **changes: object) -> "SealedCopy":
        """Objects table and manifest made anew from the rows; ``changes`` replaces fields of the manifest."""
        table = table or self.table()
        raw_table = table.encode()
        manifest = Manifest(
            run=RUN,
            sealing=self.sealing,
            epoch=self.plan.epoch,
            committer_epoch=self.plan.epoch,
            step=self.plan.step,
            saved_at=SAVED_AT,
            files=sum(row.name.startswith("file-") for row in table.rows),
            plaintext_bytes=sum(file.size for file in self.inventory.files),
            stored_bytes=sum(row.length for row in table.rows),
            objects_digest=sha256(raw_table).digest(),
            keys_digest=sha256(self.objects["keys-1.json"]).digest(),
            inventory_digest=self.rows["inventory.sea"].trailer_digest,
            root=table.root,
        )
        self.manifest = replace(manifest, **changes)  # type: ignore[arg-type]  # a vector may say anything
        self.objects[objects.NAME] = raw_table
        self.objects["manifest.json"] = self.manifest.sign(KEYS.writer)
        return self

    def altered(self) -> "SealedCopy":
        """A copy to alter."""
        return replace(self, objects=dict(self.objects), rows=dict(self.rows))

    def with_object(self, name: str, raw: bytes, row: Row) -> "SealedCopy":
        """Another object in place of one, committed as if it were right."""
        other = self.altered()
        other.objects[name], other.rows[name] = raw, row
        return other.commit()


def seal_copy(
    name: str,
    step: int,
    contents: dict[str, bytes],
    codec: Codec,
    *,
    batches: int,
    tensors: tuple[TensorRecord, ...] = (),
    folders: tuple[Folder, ...] = (),
    links: tuple[Link, ...] = (),
    pointer: Pointer | None = None,
) -> SealedCopy:
    """Seal a checkpoint with these files as the product does, under randomness that ``name`` fixes."""
    mark = sha256(name.encode()).digest()
    sealing = sealing_id(RUN, 1, step, mark, 0)
    data_key = noise(f"data key of {name}", 32)
    identity = "1767225600000000000:{}:64769"
    planned = tuple(
        PlannedFile(file, len(content), 0o640, identity.format(number), number * batches // len(contents))
        for number, (file, content) in enumerate(contents.items())
    )
    plan = Plan(
        RUN,
        sealing,
        step,
        1,
        0,
        mark,
        "opaque",
        None,
        "_COMMITTED" if contents else None,
        codec,
        SAVED_AT,
        planned,
        folders,
        links,
        pointer,
        tensors,
        batches,
    )
    sealed_files: list[SealedFile] = []
    spans = spans_of(tensors, [file.size for file in planned])
    crcs: dict[tuple[int, int, int], int] = {}
    copy = SealedCopy(name, plan, Inventory(RUN, sealing, step, "opaque", None, None, (), folders, links, pointer, ()), data_key, contents)

    found = element_runs(tensors, [file.size for file in planned], range(len(planned)))
    candidates = cast_candidates(tensors, [file.size for file in planned], range(len(planned)))

    def put(kind: ObjectKind, number: int, file: str, plaintext: bytes) -> Row:
        of_file = kind == ObjectKind.FILE and codec.has_planes
        least = least_derived_bytes(CHUNK_BYTES)
        raw, sealed = seal_bytes(
            plaintext,
            sealing=sealing,
            kind=kind,
            number=number,
            name=posix_bytes(file),
            data_key=data_key,
            signing_key=KEYS.writer,
            # Documents have no tensors.
            codec=codec if of_file or not codec.has_planes else Codec.ZSTD,
            chunk_bytes=CHUNK_BYTES,
            runs=found[number] if of_file else None,
            pairs=find_pairs(candidates[number], lambda at, nbytes: plaintext[at : at + nbytes], least) if of_file else (),
        )
        copy.objects[object_name(kind, number)] = raw
        copy.rows[object_name(kind, number)] = row_of(sealed)
        return row_of(sealed)

    with fixed_random(name):
        wraps = (KEYRING.wrap(data_key, wrap_context(RUN, sealing)), recovery_wrap(data_key, sealing))
        copy.objects["keys-1.json"] = WrappedKey(RUN, sealing, 1, commitment(data_key, sealing), wraps).sign(KEYS.writer)
        put(ObjectKind.PLAN, 0, "", plan.encode())
        for number, (file, content) in enumerate(contents.items()):
            sums = PieceSums(spans[number])
            for at in range(0, len(content), CHUNK_BYTES):
                sums.observe(at, memoryview(content)[at : at + CHUNK_BYTES])
            row = put(ObjectKind.FILE, number, file, content)
            sealed_files.append(SealedFile(number, row, sha256(content).digest(), sums.result()))
            crcs.update({(number, *span): crc for span, crc in zip(spans[number], sums.result(), strict=True)})
        for batch in range(batches):
            held = tuple(sealed_files[number] for number in plan.numbers_of(batch))
            versions = {"ab" * 16: {file.row.name: f"v{file.number}" for file in held}} if batch else {}
            put(ObjectKind.BATCH, batch, "", Batch(sealing, batch, held, versions).encode())
        copy.inventory = Inventory(
            RUN,
            sealing,
            step,
            "opaque",
            None,
            plan.commit_mark,
            tuple(
                InventoryFile(f.name, f.size, f.mode, f.identity, s.plaintext_digest) for f, s in zip(planned, sealed_files, strict=True)
            ),
            folders,
            links,
            pointer,
            tuple(
                replace(
                    t,
                    pieces=tuple(
                        replace(p, crc64=crcs.get((p.file, p.start or 0, p.nbytes)) if p.start is not None else None) for p in t.pieces
                    ),
                )
                for t in tensors
            ),
            {"seawall": "1", "loss": "2.5"},
        )
        put(ObjectKind.INVENTORY, 0, "", copy.inventory.encode())
    return copy.commit()


def plain() -> SealedCopy:
    """Codec none; sizes around every border; every kind of entry."""
    contents = {
        "empty.bin": b"",
        "one.bin": b"1",
        "deep/er/under a chunk.bin": noise("under", 1023),
        "chunk.bin": noise("chunk", 1024),
        "ünï cödé ☃ \U0001f30a.bin": noise("unicode", 1025),
        "three.bin": noise("three", 3072),
        "odd-\udcff\udcfe.bin": noise("odd", 3072),
    }
    tensors = (
        TensorRecord("model.w", "F32", (2, 256), (TensorPiece(5, 2048, 100, (0, 0), (2, 256)),)),
        TensorRecord("", "BF16", (), (TensorPiece(5, 2, 3070, (), ()),)),
        TensorRecord("strided", "U8", (4, 4), (TensorPiece(3, 16, None, (0, 0), (4, 4)), TensorPiece(6, 0, 0, (4, 0), (0, 4)))),
    )
    return seal_copy(
        "plain",
        100,
        contents,
        Codec.NONE,
        batches=2,
        tensors=tensors,
        folders=(Folder("empty folder", 0o750),),
        links=(Link("deep/link", "../one.bin"),),
        pointer=Pointer("latest", "step100"),
    )


def text(nbytes: int) -> bytes:
    """Bytes that shrink."""
    words = b" ".join(b"loss %d" % (number % 7) for number in range(nbytes))
    return words[:nbytes]


def zstd() -> SealedCopy:
    """Codec zstd; chunks that shrink and chunks that do not in one file."""
    contents = {"text.bin": text(3072), "zeros.bin": bytes(1025), "mixed.bin": text(1024) + noise("mixed", 1024) + text(10)}
    return seal_copy("zstd", 200, contents, Codec.ZSTD, batches=1)


def bare() -> SealedCopy:
    """A checkpoint without files."""
    return seal_copy("bare", 300, {}, Codec.NONE, batches=0, folders=(Folder("nothing", 0o700),))


def folder_of(copy: SealedCopy) -> str:
    return sealing_folder(RUN, copy.sealing)
