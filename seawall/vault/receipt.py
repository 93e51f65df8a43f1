"""``receipt-<store>-<seq>.json``: what a store said about its copy of a sealing, signed by who asked. The highest number wins."""

from dataclasses import dataclass, field

from seawall.errors import CorruptError
from seawall.vault import canonical, dsse
from seawall.vault.batch import decode_versions
from seawall.vault.open import Resolve
from seawall.vault.signing import SigningKey

PAYLOAD_TYPE = "application/vnd.seawall.receipt.v1+json"
MAX_BYTES = 64 << 20
"""Bound on the stored receipt: version ids of 300,000 objects."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """One store's copy of one sealing."""

    run: str
    sealing: bytes
    manifest_digest: str
    store: str
    sequence: int
    server_time: str | None
    """The store's own time when the copy was whole; None where the store has no clock."""
    locked_until: str | None
    versions: dict[str, str] = field(default_factory=dict)
    """Object name → version id, on stores that have versions."""

    def check_place(self, run: str, sealing: bytes, manifest_digest: str, store: str, sequence: int, where: str) -> None:
        """Raises :class:`CorruptError` unless it is about this copy of this manifest: a receipt of another one is validly signed, too."""
        place = (self.run, self.sealing, self.manifest_digest, self.store, self.sequence)
        if place != (run, sealing, manifest_digest, store, sequence):
            raise CorruptError(
                "a receipt belongs to another copy", where=where, why=f"it is for {self.run} {self.sealing.hex()} in {self.store}"
            )

    def payload(self) -> bytes:
        return canonical.encode(
            {
                "format": canonical.FORMAT,
                "run": self.run,
                "sealing": self.sealing.hex(),
                "manifest": self.manifest_digest,
                "store": self.store,
                "sequence": canonical.number(self.sequence),
                "server_time": self.server_time,
                "locked_until": self.locked_until,
                "versions": {self.store: dict(self.versions)},
            }
        )

    def sign(self, key: SigningKey) -> bytes:
        """The stored bytes."""
        return dsse.sign(PAYLOAD_TYPE, self.payload(), [key]).encode()


def receipt_name(store: str, sequence: int) -> str:
    """The receipt's name below its sealing's folder."""
    return f"receipt-{store}-{sequence}.json"


def parse_receipt(raw: bytes, resolve: Resolve, where: str) -> Receipt:
    """Verify and read a receipt. ``resolve`` admits writers, verifiers and operators."""
    envelope = dsse.Envelope.decode(raw, where=where, max_bytes=MAX_BYTES)
    dsse.verify(envelope, PAYLOAD_TYPE, resolve, where=where)
    document = canonical.decode(envelope.payload, where=where, max_bytes=MAX_BYTES)
    canonical.check_format(document, where=where)
    store = canonical.text_field(document, "store", where=where, most=64)
    server_time, locked_until = document.get("server_time"), document.get("locked_until")
    receipt = Receipt(
        canonical.text_field(document, "run", where=where),
        bytes.fromhex(canonical.hex_field(document, "sealing", 16, where=where)),
        canonical.hex_field(document, "manifest", 32, where=where),
        store,
        canonical.number_field(document, "sequence", where=where),
        None if server_time is None else canonical.time_field(document, "server_time", where=where),
        None if locked_until is None else canonical.time_field(document, "locked_until", where=where),
        decode_versions(document, where).get(store, {}),
    )
    canonical.same_form(receipt.payload(), envelope.payload, where=where)
    return receipt
