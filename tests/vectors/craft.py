"""Sealed objects made step by step, so that one step can go wrong and everything after it is right, signature included."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from seawall.kernels.crc64 import crc64
from seawall.vault.header import UNCOMMITTED_BYTES, Header, ObjectKind
from seawall.vault.objects import Row
from seawall.vault.records import nonce
from seawall.vault.signing import SigningKey
from seawall.vault.tail import Footer, Leaf, Trailer, leaf_root, pack_leaves, signed_statement


def same(value: Any) -> Any:
    return value


@dataclass
class Craft:
    """A sealed object to be. Each hook gets what is right and returns what is stored (and signed)."""

    sealing: bytes
    kind: ObjectKind
    number: int
    name: bytes
    plaintext: bytes
    data_key: bytes
    signer: SigningKey
    chunk_bytes: int = 1024
    signer_id: str = ""
    header: Callable[[bytearray], None] = lambda raw: None
    packed: Callable[[list[bytes]], list[bytes]] = same
    nonces: Callable[[list[bytes]], list[bytes]] = same
    stored: Callable[[list[bytes]], list[bytes]] = same
    leaves: Callable[[list[Leaf]], list[Leaf]] = same
    footer: Callable[[Footer], bytes] = lambda footer: footer.pack()
    footer_key: Callable[[bytes], bytes] = same
    gap: bytes = b""
    crc: Callable[[int], int] = same
    root: bytes = field(default=b"", init=False)

    def seal(self) -> bytes:
        """The stored bytes; sets ``root``."""
        salt = sha256(f"salt {self.kind} {self.number} ".encode() + self.name + self.plaintext).digest()
        signer = bytes.fromhex(self.signer_id or self.signer.key_id)
        raw = bytearray(Header(self.sealing, self.kind, self.number, signer, salt, bytes(32), self.chunk_bytes).pack())
        self.header(raw)
        bound = sha256(raw[:UNCOMMITTED_BYTES]).digest()
        file_key, footer_key, commitment = (
            HKDF(SHA256(), 32, salt, label + bound).derive(self.data_key)
            for label in (b"seawall/1/file", b"seawall/1/footer", b"seawall/1/commitment")
        )
        raw[UNCOMMITTED_BYTES:] = commitment
        header = bytes(raw)
        chunks = [self.plaintext[at : at + self.chunk_bytes] for at in range(0, len(self.plaintext), self.chunk_bytes)] or [b""]
        packed = self.packed([b"\0" + chunk for chunk in chunks])
        nonces = self.nonces([nonce(number, number == len(packed) - 1) for number in range(len(packed))])
        cipher = AESGCM(file_key)
        records = [cipher.encrypt(its, content, None) for its, content in zip(nonces, packed, strict=True)]
        stored = self.stored(records)
        leaves = self.leaves([Leaf(len(record), sha256(record).digest()) for record in stored])
        footer = self.footer(Footer(self.name, len(self.plaintext), sha256(self.plaintext).digest()))
        tail = pack_leaves(leaves) + AESGCM(self.footer_key(footer_key)).encrypt(bytes(12), footer, None)
        body = header + b"".join(stored) + self.gap
        crc = self.crc(crc64(body + tail))
        length = len(body) + len(tail) + 80
        self.root = leaf_root(leaves)
        statement = signed_statement(header, self.root, tail, crc, length, len(body))
        return body + tail + Trailer(crc, self.signer.sign(statement), len(body)).pack()

    def row(self, name: str) -> tuple[bytes, Row]:
        """The stored bytes and their row under ``name``."""
        raw = self.seal()
        return raw, Row(name, len(raw), sha256(raw[-80:]).digest(), crc64(raw), self.root)
