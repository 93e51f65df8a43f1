"""A second reader of format 1, written from docs/spec alone: no line of seawall is imported. ``read_copy`` is its full check."""

import hashlib
import hmac
import json
import re
import struct
from collections.abc import Callable
from typing import Any

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.vault.second_documents import (
    BATCH,
    INVENTORY,
    MANIFEST,
    PLAN,
    TABLE,
    WRAPS,
    Keys,
    RefusedError,
    document,
    need,
    posix,
    refuse,
    sha,
    statement,
    verifies,
)

Files = dict[str, bytes]
__all__ = ["RefusedError", "read_copy"]

# --- sealed objects (format-1.md, sections 3 to 6) ---

CRC_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x9A6C9329AC4BC9B5 if _byte & 1 else 0)
    CRC_TABLE.append(_byte)


def crc64(data: bytes) -> int:
    crc = (1 << 64) - 1
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ (1 << 64) - 1


def merkle(entries: list[bytes]) -> bytes:
    if len(entries) == 1:
        return hashlib.sha3_256(b"\0" + entries[0]).digest()
    split = 1 << (len(entries) - 1).bit_length() - 1
    return hashlib.sha3_256(b"\1" + merkle(entries[:split]) + merkle(entries[split:])).digest()


def hkdf(key: bytes, salt: bytes, info: bytes) -> bytes:
    return hmac.digest(hmac.digest(salt, key, "sha256"), info + b"\1", "sha256")


class Sealed:
    """A sealed object: its frame is verified at once, the rest when asked."""

    def __init__(self, raw: bytes, writers: Keys) -> None:
        self.raw = raw
        need(len(raw) >= 329, "short")
        magic, version, suite, flags, chunk, self.sealing, self.kind, zeros, self.number, signer, salt, self.commitment = struct.unpack(
            ">8sHHII16sB3sQ16s32s32s", raw[:128]
        )
        need(magic == b"SEAWALL\n", "magic")
        need((version, suite) == (1, 1) and flags in (0, 4), "version", "unsupported")
        self.derives = flags == 4
        need(chunk in [1 << bits for bits in range(10, 27)] and zeros == bytes(3) and self.kind in (1, 2, 3, 4), "header")
        need(self.number == 0 or self.kind in (2, 3), "number")
        self.crc, signature, start = struct.unpack(">Q64sQ", raw[-80:])
        need(start >= 145 and 104 <= len(raw) - 80 - start <= 8 + (36 << 20) + 60 + 65536, "tail")
        tail = raw[start:-80]
        count = int.from_bytes(tail[:8], "big")
        need(1 <= count <= 1 << 20 and 60 <= len(tail) - 8 - 36 * count <= 60 + 65536, "records")
        self.leaves = list(struct.iter_unpack(">I32s", tail[8 : 8 + 36 * count]))
        need(all(17 <= length <= 17 + chunk for length, _ in self.leaves), "record length")
        need(128 + sum(length for length, _ in self.leaves) == start, "sum of lengths")
        need(signer.hex() in writers, "signer", "trust")
        self.root = merkle([digest for _, digest in self.leaves])
        signed = b"seawall/1/object" + sha(raw[:128]) + self.root + sha(tail) + struct.pack(">QQQ", self.crc, len(raw), start)
        need(verifies(writers[signer.hex()], signature, signed), "signature")
        self.chunk, self.salt, self.footer = chunk, salt, tail[8 + 36 * count :]

    def records(self) -> list[bytes]:
        at, found = 128, []
        for length, digest in self.leaves:
            found.append(self.raw[at : at + length])
            need(sha(found[-1]) == digest, "a damaged record")
            at += length
        need(crc64(self.raw[:-80]) == self.crc, "CRC")
        return found

    def open(self, data_key: bytes) -> tuple[bytes, bytes]:
        """Name and plaintext."""
        bound = sha(self.raw[:96])
        key, footer_key, commitment = (
            hkdf(data_key, self.salt, b"seawall/1/" + use + bound) for use in (b"file", b"footer", b"commitment")
        )
        need(commitment == self.commitment, "commitment", "key")
        footer = decrypt(footer_key, bytes(12), self.footer)
        need(len(footer) >= 44, "footer")
        length, digest, name_length = struct.unpack(">Q32sI", footer[:44])
        need(len(footer) == 44 + name_length and len(self.leaves) == max(1, -(-length // self.chunk)), "footer")
        plaintext, hollow = b"", []
        for index, record in enumerate(self.records()):
            packed = decrypt(key, index.to_bytes(11, "big") + bytes((index == len(self.leaves) - 1,)), record)
            size = min(self.chunk, length - index * self.chunk)
            if packed[0] == 2:
                plaintext += unpack_planes(packed[1:], size, plaintext, hollow, self.derives)
            else:
                plaintext += unpack(packed[0], packed[1:], size)
        need(sha(plaintext) == digest, "plaintext")
        return footer[44:], plaintext


def decrypt(key: bytes, nonce: bytes, sealed: bytes, context: bytes | None = None, outcome: str = "corrupt") -> bytes:
    try:
        return AESGCM(key).decrypt(nonce, sealed, context)
    except (InvalidTag, ValueError):
        refuse(outcome, "a tag disagrees")


def unpack(codec: int, packed: bytes, length: int) -> bytes:
    need(codec in (0, 1), f"codec {codec}", "unsupported")
    if codec == 1:
        try:
            frame = zstandard.get_frame_parameters(packed)
            need(frame.has_checksum and len(packed) < frame.content_size == length and frame.window_size <= 1 << 27, "frame")
            packed = zstandard.ZstdDecompressor().decompress(packed, read_across_frames=False, allow_extra_data=False)
        except zstandard.ZstdError as error:
            refuse("corrupt", str(error))
    need(len(packed) == length, "length of a record")
    return packed


WIDTHS = (1, 2, 4, 8)


def unpack_planes(packed: bytes, length: int, before: bytes, hollow: list[tuple[int, int]], derives: bool) -> bytes:
    """``before`` is the file so far; ``hollow`` notes which bytes of it are derived."""
    need(packed[:1] == b"\1", "form", "unsupported")
    need(3 <= len(packed) < length, "length of planes")
    at, filled, runs, count = 3, 0, [], int.from_bytes(packed[1:3], "big")
    need(3 + 5 * count <= len(packed), "number of runs")
    for _ in range(count):
        need(at + 5 <= len(packed), "runs")
        kind, nbytes = struct.unpack_from(">BI", packed, at)
        need(kind in (*WIDTHS, 0x12, 0x22), "kind", "unsupported")
        at += 5
        master = 0
        if kind not in WIDTHS:
            need(at + 8 <= len(packed) and derives, "derived")
            master = int.from_bytes(packed[at : at + 8], "big")
            need(master + 2 * nbytes <= len(before) + filled, "a master behind its run")
            at += 8
        need(nbytes and nbytes % (kind if kind in WIDTHS else 2) == 0, "length of a run")
        filled += nbytes
        runs.append((kind, nbytes, master))
    need(filled == length and sum(kind not in WIDTHS for kind, _, _ in runs) <= 128, "runs")
    totals = {width: sum(nbytes for kind, nbytes, _ in runs if kind == width) // width for width in WIDTHS}
    entries = []
    for width in WIDTHS:
        for _ in range(width if totals[width] else 0):
            need(at + 5 <= len(packed), "planes")
            entries.append((width, *struct.unpack_from(">BI", packed, at)))
            at += 5
    planes: dict[int, list[bytes]] = {width: [] for width in WIDTHS}
    for width, method, nbytes in entries:
        need(method in (0, 1), "method", "unsupported")
        need(at + nbytes <= len(packed) and (method == 1 or nbytes == totals[width]), "a plane")
        planes[width].append(unpack(method, packed[at : at + nbytes], totals[width]))
        at += nbytes
    need(at == len(packed), "bytes behind the planes")
    elements = {}
    for width in WIDTHS:
        joined = bytearray(width * totals[width])
        for rank, plane in enumerate(planes[width]):
            joined[rank::width] = plane
        elements[width] = bytes(joined)
    out = b""
    for kind, nbytes, master in runs:
        if kind in WIDTHS:
            out, elements[kind] = out + elements[kind][:nbytes], elements[kind][nbytes:]
            continue
        need(not any(start < master + 2 * nbytes and master < end for start, end in hollow), "derived from derived")
        hollow.append((len(before) + len(out), len(before) + len(out) + nbytes))
        words = struct.unpack(f"<{nbytes // 2}I", (before + out)[master : master + 2 * nbytes])
        out += struct.pack(f"<{nbytes // 2}H", *((bfloat16 if kind == 0x12 else float16)(word) for word in words))
    return out


def bfloat16(x: int) -> int:
    return 0x7FC0 if x & 0x7FFFFFFF > 0x7F800000 else (x + 0x7FFF + (x >> 16 & 1)) >> 16


def float16(x: int) -> int:
    sign, magnitude, exponent = x >> 31 << 15, x & 0x7FFFFFFF, x >> 23 & 255
    if magnitude > 0x7F800000:
        return sign | 0x7E00
    if magnitude >= 0x477FF000:  # 65520
        return sign | 0x7C00
    if exponent > 112:
        return sign | magnitude - 0x38000000 + 0xFFF + (x >> 13 & 1) >> 13
    if exponent == 0:
        return sign
    whole, rest = divmod(x & 0x7FFFFF | 1 << 23, 1 << 126 - exponent)
    half = 1 << 125 - exponent
    return sign | whole + (rest > half or (rest == half and whole & 1))


# --- keys (section 7) ---


def unwrap(kind: str, wrapped: bytes, secret: bytes, context: bytes) -> bytes:
    if kind == "keyring":
        return decrypt(secret, wrapped[:12], wrapped[12:], context, "key")
    seed, ecdh = MLKEM768PrivateKey.from_seed_bytes(secret[:64]), X25519PrivateKey.from_private_bytes(secret[64:])
    theirs, own = wrapped[1088:1120], ecdh.public_key().public_bytes_raw()
    exchanged = ecdh.exchange(X25519PublicKey.from_public_bytes(theirs))
    shared = hashlib.sha3_256(seed.decapsulate(wrapped[:1088]) + exchanged + theirs + own + b"\\.//^\\").digest()
    # RFC 9180 sections 4 and 5.1, base mode.
    suite = b"HPKE-v1HPKE" + struct.pack(">HHH", 0x647A, 1, 2)

    def extract(salt: bytes, label: bytes, ikm: bytes) -> bytes:
        return hmac.digest(salt, suite + label + ikm, "sha256")

    schedule = b"\0" + extract(b"", b"psk_id_hash", b"") + extract(b"", b"info_hash", context)
    secret_ = extract(shared, b"secret", b"")

    def expand(label: bytes, nbytes: int) -> bytes:
        return hmac.digest(secret_, nbytes.to_bytes(2, "big") + suite + label + schedule + b"\1", "sha256")[:nbytes]

    return decrypt(expand(b"key", 32), expand(b"base_nonce", 12), wrapped[1120:], b"", "key")


# --- a copy (section 12) ---


def read_copy(
    files: Files, run: str, sealing: str, manifest_digest: str, writers: Keys, operators: Keys, secrets: dict[tuple[str, str], bytes]
) -> Files:
    """The checkpoint's files by name in POSIX bytes (as text with surrogates), after a check of everything that the copy has."""

    def there(path: str) -> bytes:
        need(path in files, f"{path} is missing")
        return files[path]

    raw_manifest = there("manifest.json")
    need(sha(raw_manifest).hex() == manifest_digest, "another manifest")
    kind = "application/vnd.seawall.{}.v1+json"
    manifest = statement(raw_manifest, kind.format("manifest"), writers, MANIFEST, 1 << 16)
    need((manifest["run"], manifest["sealing"]) == (run, sealing), "another sealing")
    raw_table = there("objects.json")
    need(sha(raw_table).hex() == manifest["objects"], "another table")
    table = document(raw_table, TABLE, 256 << 20)
    rows = {row["name"]: row for row in table["objects"]}
    count = sum(row.startswith("file") for row in rows)
    batches = sum(row.startswith("batch") for row in rows)
    expected = [f"file-{n}.sea" for n in range(count)] + [f"batch-{n}.sea" for n in range(batches)] + ["inventory.sea", "plan.sea"]
    need([row["name"] for row in table["objects"]] == expected and table["sealing"] == sealing, "rows")
    encoded = [json.dumps(row, sort_keys=True, separators=(",", ":")).encode() for row in table["objects"]]
    need(merkle(encoded).hex() == manifest["root"] and rows["inventory.sea"]["trailer"] == manifest["inventory"], "root")
    stored = sum(int(row["length"]) for row in rows.values())
    need((str(count), str(stored)) == (manifest["files"], manifest["stored_bytes"]), "counts")
    data_key = keys_of(files, run, sealing, manifest["keys"], writers, operators, secrets)
    opened = {}
    for path, row in rows.items():
        raw = there(path)
        need(len(raw) == int(row["length"]), "length")
        sealed = Sealed(raw, writers)
        sealed.records()
        facts = {"trailer": sha(raw[-80:]).hex(), "crc64": f"{crc64(raw):016x}", "root": sealed.root.hex()}
        need(all(row[field] == value for field, value in facts.items()) and sealed.sealing.hex() == sealing, "another object")
        own = ("", "plan.sea", f"file-{sealed.number}.sea", f"batch-{sealed.number}.sea", "inventory.sea")[sealed.kind]
        need(own == path, "another object's name")
        opened[path] = sealed
    plain = {path: sealed.open(data_key()) for path, sealed in opened.items()}
    inventory = document(plain["inventory.sea"][1], INVENTORY)
    tree(inventory, len(inventory["files"]))
    need((inventory["run"], inventory["sealing"], inventory["step"]) == (run, sealing, manifest["step"]), "inventory of another")
    sizes = sum(int(file["size"]) for file in inventory["files"])
    need((len(inventory["files"]), str(sizes)) == (count, manifest["plaintext_bytes"]), "inventory's counts")
    for index, file in enumerate(inventory["files"]):
        footer_name, content = plain[f"file-{index}.sea"]
        need((footer_name, len(content), sha(content).hex()) == (posix(file["name"]), int(file["size"]), file["plaintext"]), "another file")
    others(plain, run, sealing, batches)
    return {file["name"]: plain[f"file-{index}.sea"][1] for index, file in enumerate(inventory["files"])}


def keys_of(
    files: Files, run: str, sealing: str, first: str, writers: Keys, operators: Keys, secrets: dict[tuple[str, str], bytes]
) -> Callable[[], bytes]:
    """Checks every version; what it returns gives the data key when it is first needed."""
    need(sha(files.get("keys-1.json", b"")).hex() == first, "another keys document")
    context = b"seawall/1/wrap" + len(run).to_bytes(2, "big") + run.encode() + bytes.fromhex(sealing)
    versions = sorted(int(match[1]) for match in (re.fullmatch(r"keys-([1-9][0-9]*)\.json", path) for path in files) if match)
    documents = []
    for version in versions:
        raw, kind = files[f"keys-{version}.json"], "application/vnd.seawall.keys.v1+json"
        documents.append(statement(raw, kind, {**writers, **operators} if version > 1 else writers, WRAPS, 1 << 20))
        found = documents[-1]
        need((found["run"], found["sealing"], found["version"]) == (run, sealing, str(version)), "keys of another")
        need(found["commitment"] == documents[0]["commitment"], "another data key")

    def data_key() -> bytes:
        for wrap in (wrap for found in documents for wrap in found["recipients"]):
            secret = secrets.get((wrap["kind"], wrap["id"]))
            if secret:
                key = unwrap(wrap["kind"], bytes.fromhex(wrap["wrap"]), secret, context)
                own = hkdf(key, bytes.fromhex(sealing), b"seawall/1/data-key").hex()
                need(len(key) == 32 and own == documents[0]["commitment"], "commitment", "key")
                return key
        refuse("key", "no recipient")

    return data_key


def tree(found: dict[str, Any], count: int) -> None:
    """What a restore may create (section 8)."""
    need(all(int(piece["file"]) < count for tensor in found["tensors"] for piece in tensor["pieces"]), "a tensor outside")
    leaves = [entry["name"] for field in ("files", "links") for entry in found[field]]
    folders = [entry["name"] for entry in found["folders"]]
    need(len(set(leaves + folders)) == len(leaves + folders), "a name twice")
    pointer = [found["pointer"]["name"]] if found["pointer"] else []
    need(not set(pointer) & {link["name"] for link in found["links"]} and not set(pointer) & set(folders), "the pointer's name")
    taken = set(leaves + pointer)
    for path in [*leaves, *folders, *pointer]:
        parts = path.split("/")
        need(not any("/".join(parts[:depth]) in taken for depth in range(1, len(parts))), "below a file")


def others(plain: dict[str, tuple[bytes, bytes]], run: str, sealing: str, batches: int) -> None:
    """Plan and batches."""
    plan = document(plain["plan.sea"][1], PLAN)
    tree(plan, len(plan["files"]))
    own = b"seawall/1/sealing" + len(run).to_bytes(2, "big") + run.encode()
    own += struct.pack(">QQ32sI", int(plan["epoch"]), int(plan["step"]), bytes.fromhex(plan["mark"]), int(plan["attempt"]))
    need(plan["run"] == run and plan["sealing"] == sealing == sha(own)[:16].hex(), "plan of another")
    need(int(plan["batches"]) == batches and all(int(file["batch"]) < batches for file in plan["files"]), "batches")
    for index in range(batches):
        batch = document(plain[f"batch-{index}.sea"][1], BATCH)
        need((batch["sealing"], batch["batch"]) == (sealing, str(index)), "batch of another")
        need(
            [int(file["n"]) for file in batch["files"]] == [n for n, file in enumerate(plan["files"]) if int(file["batch"]) == index],
            "files",
        )
        need(all(file["row"]["name"] == f"file-{file['n']}.sea" for file in batch["files"]), "row of another")
