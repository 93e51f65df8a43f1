"""One entry of a run's log: its fields, its stored bytes, its place (docs/spec/log-and-trust.md, section 5).

Reading here checks form only. Whether an entry counts is decided by :mod:`seawall.log.fold`.
"""

import hashlib
import re
from dataclasses import dataclass

from seawall.errors import CorruptError, TrustError, UsageError
from seawall.log.bodies import PARSERS, Body, Unread
from seawall.vault import canonical, dsse
from seawall.vault.identity import checked_run
from seawall.vault.signing import SigningKey

PAYLOAD_TYPE = "application/vnd.seawall.log+json"

NO_ENTRY = "0" * 64
"""``prev`` of the first entry: there is none before it."""

FIRST_SEQ = 1

MAX_SEQ = 10**16 - 1
"""The number has 16 digits in the object's name."""

MAX_ENTRY_BYTES = 2 << 20
"""Bound on a stored entry: a quoted trust list of 1 MiB, encoded twice in base64."""

_KIND = re.compile(r"[a-z][a-z0-9-]{0,39}\Z", re.ASCII)
_ENTRY_KEY = re.compile(r"[0-9]{16}\.json\Z", re.ASCII)


def log_prefix(run: str) -> str:
    """Where a store keeps the log of ``run``."""
    return f"runs/{checked_run(run)}/log/"


def entry_key(run: str, seq: int) -> str:
    """Where a store keeps entry ``seq``."""
    return f"{log_prefix(run)}{seq:016d}.json"


def seq_of_key(key: str) -> int | None:
    """The number in an entry's key; None for other keys."""
    name = key.rpartition("/")[2]
    return int(name[:16]) if _ENTRY_KEY.match(name) else None


def operation_id(*parts: str) -> str:
    """A deterministic operation id: whoever asks for the same thing again gets the same id, so it is done once.

    First 16 bytes, in hex, of the SHA-256 over ``seawall/1/op`` and each part behind its length (8 bytes, big-endian).
    """
    hashed = hashlib.sha256(b"seawall/1/op")
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape")
        hashed.update(len(raw).to_bytes(8, "big") + raw)
    return hashed.hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Entry:
    """What one entry says."""

    run: str
    seq: int
    prev: str
    """SHA-256 of the stored bytes of the entry before, in hex; :data:`NO_ENTRY` for the first."""
    op: str
    """Operation id (16 bytes hex): the same request has the same id, and is in the log at most once."""
    epoch: int
    """Epoch in force for the signer; of an epoch entry, the one it opens; 0 for genesis."""
    at: str
    """The signer's clock; information only."""
    body: Body
    ignorable: bool = False

    @property
    def kind(self) -> str:
        return self.body.kind

    def encode(self) -> bytes:
        """The payload that is signed."""
        return canonical.encode(
            {
                "format": canonical.FORMAT,
                "run": self.run,
                "seq": canonical.number(self.seq),
                "prev": self.prev,
                "op": self.op,
                "epoch": canonical.number(self.epoch),
                "kind": self.kind,
                "ignorable": self.ignorable,
                "at": self.at,
                "body": self.body.as_document(),
            }
        )


@dataclass(frozen=True, slots=True)
class SignedEntry:
    """An entry as it is stored."""

    entry: Entry
    envelope: dsse.Envelope
    stored: bytes
    digest: str
    """SHA-256 of ``stored``: what the next entry holds as ``prev``."""

    @property
    def signer(self) -> str:
        """Key id of the one signature."""
        return self.envelope.signatures[0][0]


def sign_entry(entry: Entry, key: SigningKey) -> SignedEntry:
    """``entry`` signed by ``key``; deterministic."""
    envelope = dsse.sign(PAYLOAD_TYPE, entry.encode(), [key])
    stored = envelope.encode()
    if len(stored) > MAX_ENTRY_BYTES:
        raise UsageError("a log entry is too large", where=entry_key(entry.run, entry.seq), why=f"{len(stored)} bytes")
    return SignedEntry(entry, envelope, stored, dsse.digest(stored))


def read_entry(data: bytes, *, where: str = "") -> SignedEntry:
    """The entry in ``data``; ``CorruptError`` if it is malformed, ``TrustError`` for what only another version can read.

    The second is: another payload type, more than one signature, an unknown kind that is not ignorable.
    """
    envelope = dsse.Envelope.decode(data, where=where, max_bytes=MAX_ENTRY_BYTES)
    if envelope.payload_type != PAYLOAD_TYPE:
        raise TrustError("a log entry is of another type", where=where, why=f"{envelope.payload_type!r}")
    if len(envelope.signatures) != 1:
        raise TrustError("a log entry has one signature", where=where, why=f"{len(envelope.signatures)} found")
    document = canonical.decode(envelope.payload, where=where, max_bytes=MAX_ENTRY_BYTES)
    canonical.check_format(document, where=where)
    fields = {"format", "run", "seq", "prev", "op", "epoch", "kind", "ignorable", "at", "body"}
    canonical.only_fields(document, fields, where=where)
    run = canonical.text_field(document, "run", where=where, most=100)
    try:
        checked_run(run)
    except UsageError as problem:
        raise CorruptError("a log entry names no run", where=where, why=str(problem)) from None
    entry = Entry(
        run=run,
        seq=canonical.number_field(document, "seq", where=where, least=FIRST_SEQ, most=MAX_SEQ),
        prev=canonical.hex32_field(document, "prev", where=where),
        op=canonical.hex_field(document, "op", 16, where=where),
        epoch=canonical.number_field(document, "epoch", where=where),
        at=canonical.time_field(document, "at", where=where),
        ignorable=canonical.flag_field(document, "ignorable", where=where),
        body=_body(document, where),
    )
    return SignedEntry(entry, envelope, data, dsse.digest(data))


def _body(document: canonical.Document, where: str) -> Body:
    kind = canonical.text_field(document, "kind", where=where, most=40)
    if not _KIND.match(kind):
        raise CorruptError("a log entry has a malformed kind", where=where, why=repr(kind))
    body = canonical.object_field(document, "body", where=where)
    ignorable = canonical.flag_field(document, "ignorable", where=where)
    parser = PARSERS.get(kind)
    if parser is not None:
        # A known kind that some readers may pass over would split them into two histories.
        if ignorable:
            raise TrustError("a log entry of a known kind is marked ignorable", where=where, why=kind)
        return parser(body, where)
    if not ignorable:
        raise TrustError("a log entry is of an unknown kind", where=where, why=repr(kind), do="use a version of seawall that knows it")
    return Unread(kind, body)
