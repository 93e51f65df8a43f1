"""Who can unwrap a sealing's data key: a keyring on a host, and an offline recovery key.

A wrap binds the run and the sealing, so that it cannot be moved to another one (:func:`wrap_context`).

* ``keyring``: AES-256-GCM with a random 12-byte nonce, which stands before the ciphertext; the context is its associated data.
* ``recovery``: HPKE (RFC 9180, draft-ietf-hpke-pq) with ML-KEM-768 + X25519, HKDF-SHA256 and AES-256-GCM; the context is HPKE's
  *info*. Only the public half is on hosts. Tapes outlive today's curves, hence the post-quantum half.
"""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from seawall.errors import ConfigurationError, KeyMissingError

DATA_KEY_BYTES = 32
_MLKEM_PUBLIC_BYTES = 1184
_MLKEM_SEED_BYTES = 64
_NONCE_BYTES = 12
_MAX_FILE_BYTES = 8192
"""A recovery key's public half in hex, behind its prefix, has 2,447 bytes."""


def wrap_context(run: str, sealing: bytes) -> bytes:
    """What a wrap is bound to: label, run name behind its length, sealing id."""
    name = run.encode()
    return b"seawall/1/wrap" + len(name).to_bytes(2, "big") + name + sealing


@dataclass(frozen=True, slots=True)
class Wrap:
    """One recipient's wrap of a data key."""

    kind: str
    recipient: str
    """Recipient id: 16 bytes in hex."""
    wrapped: bytes


class Recipient(Protocol):
    """Somebody who can be given a data key."""

    kind: str
    id: str

    def wrap(self, data_key: bytes, context: bytes) -> Wrap: ...


class Unwrapper(Recipient, Protocol):
    """Somebody who can give it back."""

    def unwrap(self, wrap: Wrap, context: bytes) -> bytes:
        """The data key; :class:`KeyMissingError` when the wrap is not for this key or context."""
        ...


def read_key_file(path: Path) -> str:
    """The text in a file with a recovery key or its public half. What is no text comes back as something that no key is.

    Raises ``OSError`` when it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(_MAX_FILE_BYTES).decode("ascii", "replace").strip()


class KeyringKey:
    """A symmetric wrapping key of 32 bytes, as a keyring file holds it."""

    kind = "keyring"

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.id = sha256(b"seawall/1/keyring" + key).hexdigest()[:32]
        self._cipher = AESGCM(key)

    def wrap(self, data_key: bytes, context: bytes) -> Wrap:
        nonce = os.urandom(_NONCE_BYTES)
        return Wrap(self.kind, self.id, nonce + self._cipher.encrypt(nonce, data_key, context))

    def unwrap(self, wrap: Wrap, context: bytes) -> bytes:
        try:
            return self._cipher.decrypt(wrap.wrapped[:_NONCE_BYTES], wrap.wrapped[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError):
            raise _unfit(self.kind, self.id) from None


_SUITE = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)


class RecoveryPublicKey:
    """The public half of an offline recovery key: 1184 bytes ML-KEM-768 ‖ 32 bytes X25519."""

    kind = "recovery"
    prefix = "mlkem768x25519:"

    def __init__(self, raw: bytes) -> None:
        if len(raw) != _MLKEM_PUBLIC_BYTES + 32:
            raise ConfigurationError("a recovery key's public half has 1216 bytes", why=f"{len(raw)} were given")
        self.raw = raw
        self.id = sha256(raw).hexdigest()[:32]
        self._key = hpke.MLKEM768X25519PublicKey(
            MLKEM768PublicKey.from_public_bytes(raw[:_MLKEM_PUBLIC_BYTES]), X25519PublicKey.from_public_bytes(raw[_MLKEM_PUBLIC_BYTES:])
        )

    @classmethod
    def from_text(cls, text: str) -> "RecoveryPublicKey":
        """Back from :meth:`text`; :class:`ConfigurationError` for anything else."""
        try:
            if not text.startswith(cls.prefix):
                raise ValueError("the prefix is missing")
            return cls(bytes.fromhex(text.removeprefix(cls.prefix)))
        except ValueError as error:
            raise ConfigurationError(
                "a recovery key's public half is malformed", why=str(error), do="use the file that `seawall init` wrote"
            ) from None

    def text(self) -> str:
        return self.prefix + self.raw.hex()

    def wrap(self, data_key: bytes, context: bytes) -> Wrap:
        return Wrap(self.kind, self.id, _SUITE.encrypt(data_key, self._key, context))


class RecoveryKey:
    """The private half, kept off line: the seeds of both keys, 64 and 32 bytes."""

    kind = "recovery"
    prefix = "mlkem768x25519-private:"

    def __init__(self, seeds: bytes) -> None:
        if len(seeds) != _MLKEM_SEED_BYTES + 32:
            raise ConfigurationError("a recovery key has 96 bytes", why=f"{len(seeds)} were given")
        self.seeds = seeds
        mlkem = MLKEM768PrivateKey.from_seed_bytes(seeds[:_MLKEM_SEED_BYTES])
        x25519 = X25519PrivateKey.from_private_bytes(seeds[_MLKEM_SEED_BYTES:])
        self._key = hpke.MLKEM768X25519PrivateKey(mlkem, x25519)
        self.public = RecoveryPublicKey(mlkem.public_key().public_bytes_raw() + x25519.public_key().public_bytes_raw())
        self.id = self.public.id

    @classmethod
    def generate(cls) -> "RecoveryKey":
        return cls(os.urandom(_MLKEM_SEED_BYTES + 32))

    @classmethod
    def from_text(cls, text: str) -> "RecoveryKey":
        """Back from :meth:`text`; :class:`ConfigurationError` for anything else."""
        try:
            if not text.startswith(cls.prefix):
                raise ValueError("the prefix is missing")
            return cls(bytes.fromhex(text.removeprefix(cls.prefix)))
        except ValueError as error:
            raise ConfigurationError("a recovery key is malformed", why=str(error)) from None

    def text(self) -> str:
        return self.prefix + self.seeds.hex()

    def wrap(self, data_key: bytes, context: bytes) -> Wrap:
        return self.public.wrap(data_key, context)

    def unwrap(self, wrap: Wrap, context: bytes) -> bytes:
        try:
            return _SUITE.decrypt(wrap.wrapped, self._key, context)
        except (InvalidTag, ValueError):
            raise _unfit(self.kind, self.id) from None


def _unfit(kind: str, key_id: str) -> KeyMissingError:
    return KeyMissingError(
        "a wrapped data key does not open",
        where=f"{kind} key {key_id}",
        why="it was wrapped for another key, run or sealing, or it is damaged",
        do="try another recipient of the sealing (`seawall keys show`)",
    )
