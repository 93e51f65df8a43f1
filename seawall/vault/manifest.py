"""``manifest.json``: the signed public facts of a sealing. What a commit entry in the log names, and a copy is judged by."""

from dataclasses import dataclass

from seawall.vault import canonical, dsse
from seawall.vault.open import Resolve
from seawall.vault.signing import SigningKey

PAYLOAD_TYPE = "application/vnd.seawall.manifest.v1+json"
NAME = "manifest.json"
MAX_BYTES = 1 << 16
"""Bound on the stored manifest; it has fifteen fields of bounded length."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Counts in files and bytes; digests are SHA-256 of stored bytes, the inventory's of its trailer."""

    run: str
    sealing: bytes
    epoch: int
    """Epoch that the checkpoint was written in."""
    committer_epoch: int
    step: int
    saved_at: str
    """By the writer's clock, which is information only."""
    files: int
    plaintext_bytes: int
    stored_bytes: int
    objects_digest: bytes
    keys_digest: bytes
    inventory_digest: bytes
    root: bytes
    """Merkle root over the rows of the objects table."""
    base: str | None = None
    """For deltas: the digest of the manifest that this one builds on."""

    def payload(self) -> bytes:
        number = canonical.number
        return canonical.encode(
            {
                "format": canonical.FORMAT,
                "run": self.run,
                "sealing": self.sealing.hex(),
                "epoch": number(self.epoch),
                "committer_epoch": number(self.committer_epoch),
                "step": number(self.step),
                "saved_at": self.saved_at,
                "files": number(self.files),
                "plaintext_bytes": number(self.plaintext_bytes),
                "stored_bytes": number(self.stored_bytes),
                "objects": self.objects_digest.hex(),
                "keys": self.keys_digest.hex(),
                "inventory": self.inventory_digest.hex(),
                "root": self.root.hex(),
                "base": self.base,
            }
        )

    def sign(self, key: SigningKey) -> bytes:
        """The stored bytes."""
        return dsse.sign(PAYLOAD_TYPE, self.payload(), [key]).encode()


def parse_manifest(raw: bytes, resolve: Resolve, where: str) -> Manifest:
    """Verify and read a manifest. ``resolve`` admits writers."""
    envelope = dsse.Envelope.decode(raw, where=where, max_bytes=MAX_BYTES)
    dsse.verify(envelope, PAYLOAD_TYPE, resolve, where=where)
    document = canonical.decode(envelope.payload, where=where)
    canonical.check_format(document, where=where)
    base = document.get("base")

    def number(name: str) -> int:
        return canonical.number_field(document, name, where=where)

    def digest(name: str) -> bytes:
        return bytes.fromhex(canonical.hex_field(document, name, 32, where=where))

    manifest = Manifest(
        canonical.text_field(document, "run", where=where, most=100),
        bytes.fromhex(canonical.hex_field(document, "sealing", 16, where=where)),
        number("epoch"),
        number("committer_epoch"),
        number("step"),
        canonical.time_field(document, "saved_at", where=where),
        number("files"),
        number("plaintext_bytes"),
        number("stored_bytes"),
        digest("objects"),
        digest("keys"),
        digest("inventory"),
        digest("root"),
        None if base is None else canonical.hex_text(base, 32, where=where),
    )
    canonical.same_form(manifest.payload(), envelope.payload, where=where)
    return manifest
