"""``keys-<version>.json``: every recipient's wrap of a sealing's data key, signed.

It is the first object of a sealing. A writer that finds it there takes that data key instead of its own, so the
signature matters: nobody but a writer (or, for a later version, an operator) can plant a key that they know.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from seawall.errors import CorruptError, KeyMissingError
from seawall.vault import canonical, dsse
from seawall.vault.open import Resolve
from seawall.vault.recipients import DATA_KEY_BYTES, Recipient, Unwrapper, Wrap, wrap_context
from seawall.vault.signing import SigningKey

PAYLOAD_TYPE = "application/vnd.seawall.keys.v1+json"
MAX_BYTES = 1 << 20
"""Bound on the stored document: 64 recipients at 2.5 kB, in hex and then in base64, are a third of it."""


def commitment(data_key: bytes, sealing: bytes) -> bytes:
    """A public value that only this data key gives: HKDF-SHA256 with the sealing id as salt."""
    return HKDF(SHA256(), 32, sealing, b"seawall/1/data-key").derive(data_key)


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """The content of one version of the document."""

    run: str
    sealing: bytes
    version: int
    commitment: bytes
    wraps: tuple[Wrap, ...]

    def unwrap(self, unwrappers: Sequence[Unwrapper]) -> bytes:
        """The data key through the first key that is a recipient; :class:`KeyMissingError` when none is."""
        problem: KeyMissingError | None = None
        for wrap in self.wraps:
            for unwrapper in unwrappers:
                if (unwrapper.kind, unwrapper.id) == (wrap.kind, wrap.recipient):
                    try:
                        return self._open(wrap, unwrapper)
                    except KeyMissingError as error:
                        # Another recipient's wrap may be whole.
                        problem = error
        raise problem or KeyMissingError(
            "no key on this host opens the sealing",
            where=self.sealing.hex(),
            why="its recipients are " + ", ".join(f"{wrap.kind} {wrap.recipient}" for wrap in self.wraps),
            do="bring the keyring or the offline recovery key (--recovery-key)",
        )

    def _open(self, wrap: Wrap, unwrapper: Unwrapper) -> bytes:
        data_key = unwrapper.unwrap(wrap, wrap_context(self.run, self.sealing))
        if len(data_key) != DATA_KEY_BYTES or commitment(data_key, self.sealing) != self.commitment:
            raise KeyMissingError("the unwrapped key is not the sealing's", where=self.sealing.hex(), why="its commitment disagrees")
        return data_key

    def sign(self, key: SigningKey) -> bytes:
        """The stored bytes."""
        payload = canonical.encode(
            {
                "format": canonical.FORMAT,
                "run": self.run,
                "sealing": self.sealing.hex(),
                "version": canonical.number(self.version),
                "commitment": self.commitment.hex(),
                "recipients": [{"kind": wrap.kind, "id": wrap.recipient, "wrap": wrap.wrapped.hex()} for wrap in self.wraps],
            }
        )
        return dsse.sign(PAYLOAD_TYPE, payload, [key]).encode()


def wrap_for(recipients: Sequence[Recipient], data_key: bytes, run: str, sealing: bytes, version: int = 1) -> WrappedKey:
    """Wrap a data key for every recipient."""
    context = wrap_context(run, sealing)
    wraps = tuple(recipient.wrap(data_key, context) for recipient in recipients)
    return WrappedKey(run, sealing, version, commitment(data_key, sealing), wraps)


def keys_name(version: int) -> str:
    """The document's name below its sealing's folder."""
    return f"keys-{version}.json"


def parse_wraps(raw: bytes, run: str, sealing: bytes, version: int, resolve: Resolve, where: str) -> WrappedKey:
    """Verify and read one version. ``resolve`` admits writers and operators."""
    envelope = dsse.Envelope.decode(raw, where=where, max_bytes=MAX_BYTES)
    dsse.verify(envelope, PAYLOAD_TYPE, resolve, where=where)
    wrapped = _parse(envelope.payload, where)
    if (wrapped.run, wrapped.sealing, wrapped.version) != (run, sealing, version):
        why = f"they are signed for {wrapped.run} {wrapped.sealing.hex()} version {wrapped.version}"
        raise CorruptError("the keys belong to another sealing", where=where, why=why)
    return wrapped


def read_unsigned(raw: bytes, where: str) -> WrappedKey:
    """Read one version without asking who signed it: for `seawall open`, which has a key and nothing to compare with.

    A wrap that a symmetric key opens was made by somebody who has that key; a recovery wrap could be anybody's.
    """
    return _parse(dsse.Envelope.decode(raw, where=where, max_bytes=MAX_BYTES).payload, where)


def _parse(payload: bytes, where: str) -> WrappedKey:
    document = canonical.decode(payload, where=where)
    canonical.check_format(document, where=where)
    canonical.only_fields(document, {"format", "run", "sealing", "version", "commitment", "recipients"}, where=where)
    wraps = []
    for item in canonical.objects_field(document, "recipients", where=where, most=64):
        canonical.only_fields(item, {"kind", "id", "wrap"}, where=where)
        wrapped = canonical.text_field(item, "wrap", where=where, most=1 << 13)
        wraps.append(
            Wrap(
                canonical.text_field(item, "kind", where=where, most=32),
                canonical.hex_field(item, "id", 16, where=where),
                bytes.fromhex(canonical.hex_text(wrapped, len(wrapped) // 2, where=where)),
            )
        )
    return WrappedKey(
        canonical.text_field(document, "run", where=where),
        bytes.fromhex(canonical.hex_field(document, "sealing", 16, where=where)),
        canonical.number_field(document, "version", where=where),
        bytes.fromhex(canonical.hex_field(document, "commitment", 32, where=where)),
        tuple(wraps),
    )
