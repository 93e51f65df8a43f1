"""What kind of file something is, by its bytes. Names decide nothing here; they only say what was *expected* of a file."""

import re

from seawall.checkpoint.reading import Readable
from seawall.checkpoint.safetensors import looks_like_safetensors
from seawall.checkpoint.torch_legacy import MAGIC_BYTES
from seawall.checkpoint.zips import is_zip_end

HEAD = 4096

WEIGHT_ENDINGS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".distcp", ".tar")
"""Endings under which trainers keep tensors: anything else found under them is not what was saved."""

FOREIGN = {
    "gguf": "a GGUF file",
    "npz": "a NumPy archive",
    "npy": "a NumPy array",
    "pt2": "a torch.export archive",
    "package": "a torch.package archive",
    "pickle": "a bare pickle",
    "hdf5": "an HDF5 file",
    "zip": "a zip archive that is not torch's",
    "tar": "a tar archive",
    "gzip": "a gzip file",
    "zstd": "a Zstandard file",
    "xz": "an xz file",
    "parquet": "a Parquet file",
    "onnx": "an ONNX file",
    "flax": "a msgpack file, as Flax writes",
    "sqlite": "an SQLite database",
}
"""Kinds that are recognised and not ours to judge."""

_MAGICS = (
    (b"GGUF", "gguf"),
    (b"ggml", "gguf"),
    (b"\x93NUMPY", "npy"),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"PAR1", "parquet"),
    (b"SQLite format 3\0", "sqlite"),
)


_LETTERS = re.compile(rb"[ci][\w.]+\n[\w.]+\n|\((?:[dlt]|[icSVIFLN(].*\n)|[\]})](?:q.|r....|p\d+\n|[(.])", re.S)
"""How pickles of protocols 0 and 1 begin, which have no mark of their own."""


def kind_of(source: Readable) -> str:
    """One of: empty, zeros, torch-zip (any zip, its records decide further), shifted-zip, torch-legacy, safetensors, lfs-pointer,
    html, xml, json,
    text, a key of ``FOREIGN``, or binary."""
    if source.size == 0:
        return "empty"
    head = source.read(0, HEAD)
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "torch-zip"
    if head.startswith(MAGIC_BYTES) or (len(head) < len(MAGIC_BYTES) and MAGIC_BYTES.startswith(head)) or _old_magic(head):
        return "torch-legacy"
    for magic, kind in _MAGICS:
        if head.startswith(magic):
            return kind
    if head[257:262] == b"ustar":
        return "tar"
    if looks_like_safetensors(head):
        return "safetensors"
    if _LETTERS.match(head) and source.read(source.size - 1, 1) == b".":
        return "pickle"
    text = _text_kind(head)
    if text:
        return text
    if not head.strip(b"\0"):
        return "zeros" if not source.read(max(0, source.size - HEAD), HEAD).strip(b"\0") else "binary"
    if is_zip_end(source):
        return "shifted-zip"
    if head[0] == 0x80 and len(head) > 1 and 2 <= head[1] <= 5:
        return "pickle"
    return "binary"


def _old_magic(head: bytes) -> bool:
    """A number pickled first and on its own begins an old torch stream, whether or not it is the right number."""
    if head[:3] == b"\x80\x02\x8a":
        length = head[3] if len(head) > 3 else 0
        return head[4 + length : 5 + length] == b"."
    if head[:3] in (b"\x80\x02J", b"\x80\x02M", b"\x80\x02K"):
        return head[7:8] == b"." if head[2:3] == b"J" else head[5 if head[2:3] == b"M" else 4 :][:1] == b"."
    return head[:1] in (b"L", b"I") and head[1:2].isdigit() and b"\n." in head[:64]


def _text_kind(head: bytes) -> str:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:256].lower()
    if start.startswith(b"version https://git-lfs") or start.startswith(b"version https://hawser"):
        return "lfs-pointer"
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "html"
    if start.startswith((b"<?xml", b"<error")):
        return "xml"
    if start.startswith((b"{", b"[")) and _is_text(head):
        return "json"
    return "text" if start and _is_text(head) and len(start) > 3 and b" " in start else ""


def _is_text(head: bytes) -> bool:
    return b"\0" not in head and sum(byte < 9 or 13 < byte < 32 for byte in head) == 0


MISTAKEN = {
    "empty": "the file is empty",
    "zeros": "the file is nothing but zeros: space was reserved and never written",
    "lfs-pointer": "this is a large-file pointer (Git LFS), the file that it points to was not fetched",
    "html": "this is an HTML page, probably of a proxy or a login, stored under the name of the file",
    "xml": "this is an XML document, probably an error of an object store, stored under the name of the file",
    "json": "this is a JSON document, probably an error message, stored under the name of the file",
    "text": "this is plain text, stored under the name of the file",
    "shifted-zip": "bytes stand in front of the torch file: an upload left something of its own in it",
    "binary": "this is no file of a known kind: its beginning is damaged or it is something else",
}
"""What to say when a file that should hold tensors is of such a kind."""
