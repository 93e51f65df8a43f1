"""Signed statements: DSSE version 1 (https://github.com/secure-systems-lab/dsse, protocol.md) with Ed25519.

What is signed is the *pre-authentication encoding*, which counts in bytes; python-securesystemslib once counted
characters, so that a payload type outside ASCII verified nowhere else. Envelopes are stored as canonical JSON.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seawall.errors import CorruptError, TrustError
from seawall.vault import canonical
from seawall.vault.signing import SIGNATURE_BYTES, PublicKey, SigningKey

MAX_SIGNATURES = 16
"""Bound on signatures in one envelope: nobody gathers more, and each costs a verification."""


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: ``DSSEv1 SP LEN(type) SP type SP LEN(payload) SP payload``, lengths in bytes of UTF-8."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload with its type and signatures (pairs of key id and 64 bytes)."""

    payload_type: str
    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]

    def encode(self) -> bytes:
        """The canonical stored bytes."""
        return canonical.encode(
            {
                "payload": canonical.base64_text(self.payload),
                "payloadType": self.payload_type,
                "signatures": [{"keyid": key_id, "sig": canonical.base64_text(signature)} for key_id, signature in self.signatures],
            }
        )

    @classmethod
    def decode(cls, data: bytes, *, where: str = "", max_bytes: int = canonical.MAX_BYTES) -> "Envelope":
        """Back from :meth:`encode`; ``CorruptError`` for anything else. Nothing is verified yet."""
        document = canonical.decode(data, where=where, max_bytes=max_bytes)
        canonical.only_fields(document, {"payload", "payloadType", "signatures"}, where=where)
        signatures = []
        for item in canonical.list_field(document, "signatures", where=where, most=MAX_SIGNATURES):
            if not isinstance(item, dict):
                raise CorruptError("a signature is not an object", where=where)
            canonical.only_fields(item, {"keyid", "sig"}, where=where)
            signature = canonical.base64_field(item, "sig", where=where, most=SIGNATURE_BYTES)
            if len(signature) != SIGNATURE_BYTES:
                raise CorruptError("a signature is cut", where=where, why=f"{len(signature)} bytes of {SIGNATURE_BYTES}")
            signatures.append((canonical.hex_field(item, "keyid", 16, where=where), signature))
        if not signatures:
            raise CorruptError("an envelope has no signature", where=where)
        if len({key_id for key_id, _ in signatures}) != len(signatures):
            raise CorruptError("an envelope has two signatures of one key", where=where)
        payload_type = canonical.text_field(document, "payloadType", where=where, most=200)
        if any("\ud800" <= character <= "\udfff" for character in payload_type):
            raise CorruptError("the payload type is not UTF-8", where=where)
        return cls(payload_type, canonical.base64_field(document, "payload", where=where, most=max_bytes), tuple(signatures))


def digest(data: bytes) -> str:
    """SHA-256 in hex: how one stored document names another."""
    return hashlib.sha256(data).hexdigest()


def sign(payload_type: str, payload: bytes, keys: Sequence[SigningKey]) -> Envelope:
    """``payload`` signed by every one of ``keys``."""
    message = pae(payload_type, payload)
    return Envelope(payload_type, payload, tuple((key.key_id, key.sign(message)) for key in keys))


def verify(
    envelope: Envelope, expected_type: str, resolve: Callable[[str], PublicKey | None], *, threshold: int = 1, where: str = ""
) -> list[str]:
    """Key ids of the valid signatures of known keys, in the envelope's order.

    ``resolve`` gives the public key of a key id, or None for keys that do not count here; their signatures are passed
    over. ``TrustError`` when the type is another, a known key's signature is wrong, or fewer than ``threshold`` remain.
    """
    if threshold < 1:
        raise ValueError("a threshold below one verifies nothing")
    if envelope.payload_type != expected_type:
        raise TrustError("a statement is of another type", where=where, why=f"{envelope.payload_type!r}, expected {expected_type!r}")
    message = pae(envelope.payload_type, envelope.payload)
    valid: list[str] = []
    unknown: list[str] = []
    for key_id, signature in envelope.signatures:
        key = resolve(key_id)
        if key is None:
            unknown.append(key_id)
            continue
        if key.key_id != key_id or not key.verify(signature, message):
            raise TrustError("a signature is wrong", where=where, why=f"the signature of key {key_id} is not over these bytes")
        if key_id not in valid:
            valid.append(key_id)
    if len(valid) < threshold:
        why = f"{len(valid)} of {threshold} needed signatures are by keys that count here"
        if unknown:
            why += f"; not counted: {', '.join(unknown)}"
        raise TrustError("a statement is not signed by a key that may", where=where, why=why)
    return valid
