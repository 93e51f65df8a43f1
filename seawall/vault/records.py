"""Records: a chunk of plaintext behind a codec byte, encrypted and authenticated on its own.

The keys of an object come from the sealing's data key by HKDF-SHA256 (RFC 5869) with the object's salt, each under
its own label and bound to the header. A record's nonce is its number, 11 bytes big-endian, and a byte that is 1 for the last
record (STREAM, https://eprint.iacr.org/2015/189), so that records cannot be reordered, cut off or spliced. AES-GCM as in NIST SP 800-38D.
"""

from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from seawall.vault.header import Header

TAG_BYTES = 16
OVERHEAD_BYTES = 1 + TAG_BYTES
"""Codec byte and tag: what a record is longer than its packed chunk."""


@dataclass(frozen=True, slots=True)
class ObjectKeys:
    """What an object's data key, salt and header give."""

    file: bytes
    footer: bytes
    commitment: bytes
    """Public. It makes a wrong key read differently from a damaged record, and one ciphertext open under one key only."""


def derive(data_key: bytes, header: Header) -> ObjectKeys:
    """The three keys of an object. ``data_key`` is 32 bytes."""

    def one(label: bytes) -> bytes:
        return HKDF(SHA256(), 32, header.salt, label + header.derivation_digest).derive(data_key)

    return ObjectKeys(one(b"seawall/1/file"), one(b"seawall/1/footer"), one(b"seawall/1/commitment"))


def nonce(number: int, last: bool) -> bytes:
    """The nonce of record ``number`` (from 0)."""
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


class RecordCipher:
    """Encrypts and decrypts the records of one object. Safe to use from several threads."""

    def __init__(self, keys: ObjectKeys) -> None:
        self._records = AESGCM(keys.file)
        self._footer = AESGCM(keys.footer)

    def seal_into(self, number: int, last: bool, packed: memoryview | bytes, out: memoryview) -> int:
        """Encrypt codec byte and packed chunk into ``out``; returns the record's length."""
        length = len(packed) + TAG_BYTES
        self._records.encrypt_into(nonce(number, last), packed, None, out[:length])
        return length

    def open_into(self, number: int, last: bool, record: memoryview, out: memoryview) -> memoryview | None:
        """Decrypt a record into ``out``; the codec byte and packed chunk, or None when the tag does not agree."""
        length = len(record) - TAG_BYTES
        if length < 1:
            return None
        try:
            self._records.decrypt_into(nonce(number, last), record, None, out[:length])
        except InvalidTag:
            return None
        return out[:length]

    def seal_footer(self, footer: bytes) -> bytes:
        """Encrypt the footer. Its key is used once, so its nonce is zero."""
        return self._footer.encrypt(bytes(12), footer, None)

    def open_footer(self, sealed: bytes) -> bytes | None:
        """Decrypt the footer; None when the tag does not agree."""
        try:
            return self._footer.decrypt(bytes(12), sealed, None)
        except InvalidTag:
            return None
