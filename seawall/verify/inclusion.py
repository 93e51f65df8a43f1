"""Inclusion proofs: one file is in a sealing, and a writer committed that sealing. Checked with the trust root alone, without any store.

The chain that a proof carries: root-signed trust list → writer's key → commit entry of the log → manifest → Merkle root over the rows →
the row of one object → its trailer. With the file's footer key also: trailer → tail → sealed footer → name, length and SHA-256 of the
plaintext. That key opens this footer and nothing else.

What it does not say: that the commit still counts. A later epoch may have made it an orphan, and only the log knows.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from seawall.errors import CorruptError, NoSuchCopyError, TrustError, UsageError
from seawall.log.bodies import Commit
from seawall.log.entries import PAYLOAD_TYPE as ENTRY_TYPE
from seawall.log.entries import SignedEntry, read_entry
from seawall.log.read import LogView, fetch_entry
from seawall.log.state import CommitRecord
from seawall.stores.base import Store
from seawall.vault import canonical, dsse, merkle
from seawall.vault import manifest as manifests
from seawall.vault.canonical import Document
from seawall.vault.header import HEADER_BYTES, MAGIC, parse_header
from seawall.vault.manifest import Manifest, parse_manifest
from seawall.vault.objects import Row, parse_row, row_of_frame
from seawall.vault.open import Resolve, read_frame, scrub
from seawall.vault.records import derive
from seawall.vault.sealing import Sealing, read_sealing
from seawall.vault.signing import PublicKey
from seawall.vault.tail import TRAILER_BYTES, Footer, leaf_root, parse_footer, parse_tail, parse_trailer, signed_statement
from seawall.vault.trust import TrustList, read_list

MAX_BYTES = 64 << 20
_TYPE = "inclusion"
_FIELDS = {"format", "type", "trust", "entry", "manifest", "row", "index", "size", "path", "opening"}
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Included:
    """What a checked proof says."""

    run: str
    step: int
    sealing: str
    entry: int
    """Number of the commit entry in the run's log."""
    committed_at: str
    """By the writer's clock."""
    writer: str
    trust_version: int
    """Version of the trust list that the proof brought: a later one may revoke the writer's key."""
    row: Row
    footer: Footer | None
    """Name, length and SHA-256 of the plaintext, where the proof opens them."""


def prove_inclusion(store: Store, coordination: Store, view: LogView, commit: CommitRecord, name: str, data_key: bytes | None) -> bytes:
    """The proof for the object ``name`` of ``commit``'s copy in ``store``, as canonical JSON. With ``data_key`` it also opens the footer.

    Raises :class:`NoSuchCopyError` when the sealing has no such object, and what reading the copy raises.
    """
    sealing = read_sealing(store, view.run, bytes.fromhex(commit.sealing), commit.manifest, view.state.writer_of(commit))
    rows = sealing.table.rows
    index = next((number for number, row in enumerate(rows) if row.name == name), None)
    if index is None:
        raise NoSuchCopyError("the sealing has no such object", where=f"{commit.sealing} {name}", do="`seawall copies --files` lists them")
    raw_entry = fetch_entry(coordination, view.run, commit.seq)
    if raw_entry is None:
        raise NoSuchCopyError("the log has no such entry any more", where=f"{coordination.url} {view.run} {commit.seq}")
    entries = [canonical.encode(row.document()) for row in rows]
    document: Document = {
        "format": canonical.FORMAT,
        "type": _TYPE,
        "trust": canonical.base64_text(view.state.trust_bytes),
        "entry": canonical.base64_text(raw_entry),
        "manifest": canonical.base64_text(store.get(sealing.folder + manifests.NAME, 0, manifests.MAX_BYTES + 1)),
        "row": rows[index].document(),
        "index": canonical.number(index),
        "size": canonical.number(len(rows)),
        "path": [node.hex() for node in merkle.inclusion_proof(entries, index)],
        "opening": None if data_key is None else _opening(sealing, rows[index], data_key),
    }
    return canonical.encode(document)


def _opening(sealing: Sealing, row: Row, data_key: bytes) -> Document:
    frame = sealing.frame_of(row)
    key = sealing.key_of(row)
    tail_offset = frame.offsets[-1] + frame.leaves[-1].length
    return {
        "header": canonical.base64_text(frame.header.pack()),
        "tail": canonical.base64_text(sealing.store.get(key, tail_offset, row.length - TRAILER_BYTES - tail_offset)),
        "trailer": canonical.base64_text(frame.trailer),
        "footer_key": derive(data_key, frame.header).footer.hex(),
    }


def check_inclusion(raw: bytes, root: PublicKey, where: str = "") -> Included:
    """Follow a proof from the trust root down to the row; :class:`CorruptError` or :class:`TrustError` where it does not hold."""
    document = canonical.decode(raw, where=where, max_bytes=MAX_BYTES)
    canonical.check_format(document, where=where)
    canonical.only_fields(document, _FIELDS, where=where)
    if canonical.text_field(document, "type", where=where) != _TYPE or "opening" not in document:
        raise CorruptError("this is no inclusion proof", where=where)
    trust = read_list(canonical.base64_field(document, "trust", where=where), root, where=where)
    writers = trust.resolver("writer")
    entry, commit = _commit(document, trust, writers, where)
    manifest = _manifest(document, entry, commit, writers, where)
    row = parse_row(document.get("row"), where)
    path = [
        bytes.fromhex(canonical.hex_text(node, 32, where=where)) for node in canonical.list_field(document, "path", where=where, most=64)
    ]
    index = canonical.number_field(document, "index", where=where)
    size = canonical.number_field(document, "size", where=where)
    if merkle.root_from_proof(canonical.encode(row.document()), index, size, path) != manifest.root:
        raise CorruptError("the object is not in the sealing", where=f"{where} {row.name}", why="its path does not lead to the signed root")
    opening = document.get("opening")
    footer = None if opening is None else _footer(opening, manifest, row, writers, where)
    return Included(entry.entry.run, commit.step, commit.sealing, entry.entry.seq, entry.entry.at, entry.signer, trust.version, row, footer)


def _commit(document: Document, trust: TrustList, writers: Resolve, where: str) -> tuple[SignedEntry, Commit]:
    entry = read_entry(canonical.base64_field(document, "entry", where=where), where=where)
    body = entry.entry.body
    if not isinstance(body, Commit):
        raise CorruptError("the entry is no commit", where=where, why=entry.entry.kind)
    why = trust.why_not(entry.signer, ("writer",))
    if why:
        raise TrustError("the commit is not signed by a writer that counts", where=where, why=why)
    dsse.verify(entry.envelope, ENTRY_TYPE, writers, where=where)
    return entry, body


def _manifest(document: Document, entry: SignedEntry, commit: Commit, writers: Resolve, where: str) -> Manifest:
    raw = canonical.base64_field(document, "manifest", where=where)
    if sha256(raw).hexdigest() != commit.manifest:
        raise CorruptError("the manifest is not the one that was committed", where=where)
    manifest = parse_manifest(raw, writers, where)
    if (manifest.run, manifest.sealing.hex(), manifest.step) != (entry.entry.run, commit.sealing, commit.step):
        raise CorruptError("the manifest belongs to another checkpoint", where=where)
    return manifest


def _footer(opening: object, manifest: Manifest, row: Row, writers: Resolve, where: str) -> Footer:
    if not isinstance(opening, dict):
        raise CorruptError("the opening of a proof is malformed", where=where)
    canonical.only_fields(opening, {"header", "tail", "trailer", "footer_key"}, where=where)
    raw_header, tail, raw_trailer = (canonical.base64_field(opening, name, where=where) for name in ("header", "tail", "trailer"))
    if len(raw_header) != HEADER_BYTES or sha256(raw_trailer).digest() != row.trailer_digest:
        raise CorruptError("the trailer is not the one of the object", where=where)
    header, trailer = parse_header(raw_header, where), parse_trailer(raw_trailer, row.length, where)
    if trailer.tail_offset + len(tail) + TRAILER_BYTES != row.length:
        raise CorruptError("the tail is not the one of the object", where=where, why="its length differs")
    leaves, sealed_footer = parse_tail(tail, trailer.tail_offset, where)
    signer = writers(header.signer.hex())
    statement = signed_statement(raw_header, leaf_root(leaves), tail, trailer.crc64, row.length, trailer.tail_offset)
    if signer is None or header.sealing != manifest.sealing or not signer.verify(trailer.signature, statement):
        raise CorruptError("the tail is not the one of the object", where=where, why="the object's signature does not cover it")
    try:
        key = bytes.fromhex(canonical.hex_field(opening, "footer_key", 32, where=where))
        return parse_footer(AESGCM(key).decrypt(bytes(12), sealed_footer, None), where)
    except InvalidTag:
        raise CorruptError("the footer key does not open the footer", where=where) from None


def check_file(included: Included, file: BinaryIO, where: str) -> str:
    """Whether ``file`` is the one that the proof is about: ``plaintext``, or ``object`` for the sealed form.

    Raises :class:`CorruptError` when it is another, :class:`UsageError` for a plaintext when the proof does not open the footer.
    """
    length = file.seek(0, 2)
    file.seek(0)
    if length == included.row.length and file.read(len(MAGIC)) == MAGIC:
        _check_object(included, file, where)
        return "object"
    if included.footer is None:
        raise UsageError(
            "the proof says nothing of the plaintext",
            where=where,
            why="it was made without the data key",
            do=f"give the sealed object {included.row.name}, or make the proof where a key is",
        )
    digest = sha256()
    file.seek(0)
    while block := file.read(_BLOCK_BYTES):
        digest.update(block)
    if (length, digest.digest()) != (included.footer.length, included.footer.digest):
        raise CorruptError("the file is not the one that was committed", where=where, why="its length or SHA-256 differs")
    return "plaintext"


def _check_object(included: Included, file: BinaryIO, where: str) -> None:
    def read(start: int, length: int) -> bytes:
        file.seek(start)
        return file.read(length)

    def view(start: int, length: int) -> memoryview:
        return memoryview(read(start, length))

    # The row fixes trailer, root and checksum, and the row is signed: no key has to be asked for again.
    frame = read_frame(read, included.row.length, None, where)
    if row_of_frame(frame, included.row.name) != included.row:
        raise CorruptError("the object is not the one that was committed", where=where, why="its trailer or its records' root differs")
    damaged = scrub(frame, view)
    if damaged:
        raise CorruptError("the object is damaged", where=where, why=f"records {', '.join(map(str, damaged[:16]))}")
