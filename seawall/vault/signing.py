"""Ed25519 keys (RFC 8032) with a role, and the file that holds a private one (docs/spec/log-and-trust.md, section 2)."""

import hashlib
import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from seawall.errors import ConfigurationError, CorruptError, KeyMissingError
from seawall.vault import canonical

Role = Literal["writer", "verifier", "operator", "coordinator"]
"""What the signatures of a key may say (DESIGN section 5)."""

ROLES: tuple[Role, ...] = get_args(Role)

ROOT = "root"
"""The role in the file of a root key; no trust list ever lists it."""

KEY_ID_BYTES = 16
SIGNATURE_BYTES = 64
_TEXT_PREFIX = "ed25519:"
_MAX_FILE_BYTES = 4096


def key_id_of(raw: bytes) -> str:
    """First 16 bytes of the SHA-256 of a raw 32-byte public key, in hex."""
    return hashlib.sha256(raw).hexdigest()[: 2 * KEY_ID_BYTES]


@dataclass(frozen=True)
class PublicKey:
    """The public half: 32 raw bytes as in RFC 8032."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != 32:
            raise CorruptError("an Ed25519 public key has 32 bytes", why=f"{len(self.raw)} bytes")

    @cached_property
    def key_id(self) -> str:
        return key_id_of(self.raw)

    @cached_property
    def _key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Whether ``signature`` is this key's over ``message``."""
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def text(self) -> str:
        """``ed25519:<hex>``, the form of ``trust_root`` in seawall.toml."""
        return _TEXT_PREFIX + self.raw.hex()

    @classmethod
    def from_text(cls, text: str) -> "PublicKey":
        """Back from :meth:`text`; ``ConfigurationError`` for anything else."""
        try:
            if not text.startswith(_TEXT_PREFIX):
                raise ValueError("the prefix is missing")
            return cls(bytes.fromhex(canonical.hex_text(text.removeprefix(_TEXT_PREFIX), 32)))
        except (ValueError, CorruptError):
            raise ConfigurationError(
                "a public key is malformed",
                why=f"{text[:80]!r} is not ed25519: followed by 64 lower-case hex digits",
                do="copy the trust_root line that `seawall init` printed",
            ) from None


class SigningKey:
    """A private key together with the role that its file claims. The trust list decides whether that is so."""

    def __init__(self, private: bytes, role: str) -> None:
        if role not in ROLES and role != ROOT:
            raise ConfigurationError("there is no such role", where=role, do=f"use one of {', '.join(ROLES)}")
        self.role = role
        self._private = private
        self._key = Ed25519PrivateKey.from_private_bytes(private)
        self.public = PublicKey(self._key.public_key().public_bytes_raw())
        self.key_id = self.public.key_id

    def __repr__(self) -> str:
        return f"SigningKey({self.role} {self.key_id})"

    @classmethod
    def generate(cls, role: str) -> "SigningKey":
        """A new key from the operating system's randomness."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw(), role)

    def sign(self, message: bytes) -> bytes:
        """64 bytes; the same message gives the same bytes."""
        return self._key.sign(message)

    def save(self, path: Path | str) -> None:
        """Write the key file with mode 0600; ``ConfigurationError`` if something is there already, which is left alone."""
        document = canonical.encode(
            {"format": canonical.FORMAT, "role": self.role, "public": self.public.raw.hex(), "private": self._private.hex()}
        )
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise ConfigurationError(
                "a key file is there already", where=str(path), do="move it away first; a key that signed anything must be kept"
            ) from None
        except OSError as problem:
            raise ConfigurationError("a key file cannot be written", where=str(path), why=problem.strerror or "") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(document)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def load(cls, path: Path | str, role: str) -> "SigningKey":
        """The key in ``path`` for ``role``; ``KeyMissingError`` if it is absent, readable by others, damaged or of another role."""
        where = str(path)
        try:
            with open(path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                data = file.read(_MAX_FILE_BYTES + 1)
        except OSError as problem:
            raise KeyMissingError(
                f"the {role} key is not on this host", where=where, why=problem.strerror or "", do="see [keys.signing] in seawall.toml"
            ) from None
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeyMissingError(
                f"the {role} key is open to other users", where=where, why=f"mode {stat.S_IMODE(mode):04o}", do=f"chmod 600 {where}"
            )
        try:
            document = canonical.decode(data.rstrip(b"\n"), where=where, max_bytes=_MAX_FILE_BYTES)
            canonical.check_format(document, where=where)
            canonical.only_fields(document, {"format", "role", "public", "private"}, where=where)
            found = canonical.text_field(document, "role", where=where)
            key = cls(bytes.fromhex(canonical.hex_field(document, "private", 32, where=where)), found)
            public = canonical.hex_field(document, "public", 32, where=where)
        except (CorruptError, ConfigurationError) as problem:
            raise KeyMissingError(f"the {role} key cannot be read", where=where, why=str(problem), do="restore the file") from None
        if key.public.raw.hex() != public:
            raise KeyMissingError(
                f"the {role} key is damaged", where=where, why="its two halves do not belong together", do="restore the file"
            )
        if found != role:
            raise KeyMissingError(
                f"the key is not for {role}", where=where, why=f"its role is {found}", do="see [keys.signing] in seawall.toml"
            )
        return key
