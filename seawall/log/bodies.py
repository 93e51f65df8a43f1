"""What a log entry can say: one frozen body a kind, and the roles that may sign it (docs/spec/log-and-trust.md, section 6).

The rules that an entry must keep where it stands are in :mod:`seawall.log.fold`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from seawall.clock import parse_utc
from seawall.errors import CorruptError
from seawall.vault import canonical
from seawall.vault.canonical import Document
from seawall.vault.signing import ROLES, Role

MAX_REASON = 1000
"""Characters of a reason: it is for people, and every reader of the run loads it."""

MAX_WRITERS = 1000
MAX_HEADS = 1000

RETENTION = "retention"
"""Purpose of the lease that deletions of a run are done under, whoever does them (DESIGN law 7)."""

MAX_LEASE = timedelta(hours=24)
"""A holder that died keeps everybody else waiting until its lease ends, so none may be longer."""


@dataclass(frozen=True, slots=True)
class Genesis:
    """The first entry: which store has authority over this log, and the trust list it starts with."""

    kind: ClassVar[str] = "genesis"
    store: str
    """Id of the coordination store (16 bytes hex)."""
    trust_list: bytes
    """Stored bytes of a root-signed trust list."""

    def as_document(self) -> Document:
        return {"store": self.store, "list": canonical.base64_text(self.trust_list)}

    @classmethod
    def parse(cls, body: Document, where: str) -> "Genesis":
        canonical.only_fields(body, {"store", "list"}, where=where)
        return cls(canonical.hex_field(body, "store", 16, where=where), canonical.base64_field(body, "list", where=where))


@dataclass(frozen=True, slots=True)
class Epoch:
    """Opens epoch ``number`` and closes all before it: from here on only ``writers`` may commit."""

    kind: ClassVar[str] = "epoch"
    number: int
    writers: tuple[str, ...]
    """Key ids of the admitted writers, sorted; with none, nobody may commit."""
    reason: str

    def as_document(self) -> Document:
        return {"number": canonical.number(self.number), "writers": list(self.writers), "reason": self.reason}

    @classmethod
    def parse(cls, body: Document, where: str) -> "Epoch":
        canonical.only_fields(body, {"number", "writers", "reason"}, where=where)
        items = canonical.list_field(body, "writers", where=where, most=MAX_WRITERS)
        writers = tuple(canonical.hex_text(item, 16, where=where) for item in items)
        if list(writers) != sorted(set(writers)):
            raise CorruptError("the writers of an epoch are not sorted and distinct", where=where)
        return cls(canonical.number_field(body, "number", where=where, least=1), writers, _reason(body, where))


@dataclass(frozen=True, slots=True)
class Commit:
    """A checkpoint exists: one whole copy of this sealing is in ``store``."""

    kind: ClassVar[str] = "commit"
    sealing: str
    """Sealing id (16 bytes hex)."""
    step: int
    written: int
    """Epoch that the checkpoint was written in, from its commit mark."""
    manifest: str
    """SHA-256 of the stored manifest.json."""
    keys: str
    """SHA-256 of the stored keys file that the data key was wrapped in first."""
    store: str
    """Id of the store that holds the first copy."""
    receipt: str
    """SHA-256 of the stored receipt of that copy."""
    stored_at: str | None
    """Server time in that receipt; None where the store has no clock."""
    quarantine: str = ""
    """A reason when the checkpoint is committed quarantined from the start (DESIGN section 6), otherwise empty."""

    def as_document(self) -> Document:
        return {
            "sealing": self.sealing,
            "step": canonical.number(self.step),
            "written": canonical.number(self.written),
            "manifest": self.manifest,
            "keys": self.keys,
            "store": self.store,
            "receipt": self.receipt,
            "stored_at": self.stored_at,
            "quarantine": self.quarantine,
        }

    @classmethod
    def parse(cls, body: Document, where: str) -> "Commit":
        fields = {"sealing", "step", "written", "manifest", "keys", "store", "receipt", "stored_at", "quarantine"}
        canonical.only_fields(body, fields, where=where)
        if "stored_at" not in body:
            raise CorruptError("the field 'stored_at' is missing", where=where)
        return cls(
            sealing=canonical.hex_field(body, "sealing", 16, where=where),
            step=canonical.number_field(body, "step", where=where),
            written=canonical.number_field(body, "written", where=where, least=1),
            manifest=canonical.hex32_field(body, "manifest", where=where),
            keys=canonical.hex32_field(body, "keys", where=where),
            store=canonical.hex_field(body, "store", 16, where=where),
            receipt=canonical.hex32_field(body, "receipt", where=where),
            stored_at=None if body["stored_at"] is None else canonical.time_field(body, "stored_at", where=where),
            quarantine=canonical.text_field(body, "quarantine", where=where, most=MAX_REASON, empty=True),
        )


@dataclass(frozen=True, slots=True)
class Quarantine:
    """This checkpoint is no recovery point, until a lift says otherwise."""

    kind: ClassVar[str] = "quarantine"
    sealing: str
    reason: str

    def as_document(self) -> Document:
        return {"sealing": self.sealing, "reason": self.reason}

    @classmethod
    def parse(cls, body: Document, where: str) -> "Quarantine":
        canonical.only_fields(body, {"sealing", "reason"}, where=where)
        return cls(canonical.hex_field(body, "sealing", 16, where=where), _reason(body, where))


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing of the run is deleted or promoted, until a lift says otherwise; sync goes on."""

    kind: ClassVar[str] = "hold"
    reason: str

    def as_document(self) -> Document:
        return {"reason": self.reason}

    @classmethod
    def parse(cls, body: Document, where: str) -> "Hold":
        canonical.only_fields(body, {"reason"}, where=where)
        return cls(_reason(body, where))


@dataclass(frozen=True, slots=True)
class Lift:
    """Ends the quarantine or hold that the entry with operation id ``lifts`` began."""

    kind: ClassVar[str] = "lift"
    lifts: str
    reason: str

    def as_document(self) -> Document:
        return {"lifts": self.lifts, "reason": self.reason}

    @classmethod
    def parse(cls, body: Document, where: str) -> "Lift":
        canonical.only_fields(body, {"lifts", "reason"}, where=where)
        return cls(canonical.hex_field(body, "lifts", 16, where=where), _reason(body, where))


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The copy of ``sealing`` in ``store`` is deleted by the signed plan of this digest. It comes before the first byte goes."""

    kind: ClassVar[str] = "tombstone"
    sealing: str
    store: str
    plan: str
    lease: int
    """Number of the lease entry that it is done under: the fencing number. Only the newest lease's counts."""

    def as_document(self) -> Document:
        return {"sealing": self.sealing, "store": self.store, "plan": self.plan, "lease": canonical.number(self.lease)}

    @classmethod
    def parse(cls, body: Document, where: str) -> "Tombstone":
        canonical.only_fields(body, {"sealing", "store", "plan", "lease"}, where=where)
        return cls(
            canonical.hex_field(body, "sealing", 16, where=where),
            canonical.hex_field(body, "store", 16, where=where),
            canonical.hex32_field(body, "plan", where=where),
            canonical.number_field(body, "lease", where=where, least=1),
        )


@dataclass(frozen=True, slots=True)
class TrustChange:
    """The next trust list counts from here on."""

    kind: ClassVar[str] = "trust"
    trust_list: bytes

    def as_document(self) -> Document:
        return {"list": canonical.base64_text(self.trust_list)}

    @classmethod
    def parse(cls, body: Document, where: str) -> "TrustChange":
        canonical.only_fields(body, {"list"}, where=where)
        return cls(canonical.base64_field(body, "list", where=where))


@dataclass(frozen=True, slots=True)
class ProofHead:
    """How far one verifier's chain of proofs had come: its key id, the last number and that object's SHA-256."""

    verifier: str
    seq: int
    digest: str


@dataclass(frozen=True, slots=True)
class ProofHeads:
    """Heads of proof chains, sorted by verifier: a chain that is shorter than this has lost proofs."""

    kind: ClassVar[str] = "proof-heads"
    heads: tuple[ProofHead, ...]

    def as_document(self) -> Document:
        return {"heads": [{"verifier": head.verifier, "seq": canonical.number(head.seq), "digest": head.digest} for head in self.heads]}

    @classmethod
    def parse(cls, body: Document, where: str) -> "ProofHeads":
        canonical.only_fields(body, {"heads"}, where=where)
        heads = []
        for item in canonical.list_field(body, "heads", where=where, most=MAX_HEADS):
            if not isinstance(item, dict):
                raise CorruptError("a proof head is not an object", where=where)
            canonical.only_fields(item, {"verifier", "seq", "digest"}, where=where)
            heads.append(
                ProofHead(
                    canonical.hex_field(item, "verifier", 16, where=where),
                    canonical.number_field(item, "seq", where=where, least=1),
                    canonical.hex32_field(item, "digest", where=where),
                )
            )
        names = [head.verifier for head in heads]
        if not names or names != sorted(set(names)):
            raise CorruptError("proof heads are not sorted and distinct, or there are none", where=where)
        return cls(tuple(heads))


@dataclass(frozen=True, slots=True)
class Lease:
    """One holder alone may do what ``purpose`` names, until a moment of the store's clock. The entry's number is the fencing number.

    The same holder may extend it, or end it early with ``until`` equal to ``taken``.
    """

    kind: ClassVar[str] = "lease"
    holder: str
    purpose: str
    taken: str
    """The store's time when it was taken."""
    until: str

    def as_document(self) -> Document:
        return {"holder": self.holder, "purpose": self.purpose, "taken": self.taken, "until": self.until}

    @classmethod
    def parse(cls, body: Document, where: str) -> "Lease":
        canonical.only_fields(body, {"holder", "purpose", "taken", "until"}, where=where)
        lease = cls(
            canonical.text_field(body, "holder", where=where, most=MAX_REASON),
            canonical.text_field(body, "purpose", where=where, most=MAX_REASON),
            canonical.time_field(body, "taken", where=where),
            canonical.time_field(body, "until", where=where),
        )
        if not timedelta(0) <= parse_utc(lease.until) - parse_utc(lease.taken) <= MAX_LEASE:
            raise CorruptError(
                "a lease has no length that it may have", where=where, why=f"from {lease.taken} to {lease.until}, at most {MAX_LEASE}"
            )
        return lease


@dataclass(frozen=True, slots=True)
class WriteOff:
    """Two people gave a checkpoint up: it is no recovery point any more, and its failures freeze nothing."""

    kind: ClassVar[str] = "write-off"
    sealing: str
    statement: bytes
    """Stored bytes of a record of kind ``write-off`` with the signatures of two operators."""

    def as_document(self) -> Document:
        return {"sealing": self.sealing, "statement": canonical.base64_text(self.statement)}

    @classmethod
    def parse(cls, body: Document, where: str) -> "WriteOff":
        canonical.only_fields(body, {"sealing", "statement"}, where=where)
        return cls(canonical.hex_field(body, "sealing", 16, where=where), canonical.base64_field(body, "statement", where=where))


@dataclass(frozen=True, slots=True)
class Move:
    """The log goes on in another coordination store; this is the last entry that the old one may hold."""

    kind: ClassVar[str] = "move"
    store: str
    reason: str

    def as_document(self) -> Document:
        return {"store": self.store, "reason": self.reason}

    @classmethod
    def parse(cls, body: Document, where: str) -> "Move":
        canonical.only_fields(body, {"store", "reason"}, where=where)
        return cls(canonical.hex_field(body, "store", 16, where=where), _reason(body, where))


@dataclass(frozen=True, slots=True)
class Unread:
    """The body of an unknown kind that is marked ignorable: kept, without meaning."""

    name: str
    document: Document

    @property
    def kind(self) -> str:
        return self.name

    def as_document(self) -> Document:
        return self.document


Body = Genesis | Epoch | Commit | Quarantine | Hold | Lift | Tombstone | TrustChange | ProofHeads | Lease | WriteOff | Move | Unread

PARSERS: dict[str, Callable[[Document, str], Body]] = {
    Genesis.kind: Genesis.parse,
    Epoch.kind: Epoch.parse,
    Commit.kind: Commit.parse,
    Quarantine.kind: Quarantine.parse,
    Hold.kind: Hold.parse,
    Lift.kind: Lift.parse,
    Tombstone.kind: Tombstone.parse,
    TrustChange.kind: TrustChange.parse,
    ProofHeads.kind: ProofHeads.parse,
    Lease.kind: Lease.parse,
    WriteOff.kind: WriteOff.parse,
    Move.kind: Move.parse,
}

SIGNERS: dict[str, tuple[Role, ...]] = {
    Genesis.kind: ("coordinator",),
    Epoch.kind: ("coordinator",),
    Commit.kind: ("writer",),
    Quarantine.kind: ("verifier", "operator"),
    Hold.kind: ("verifier", "operator"),
    ProofHeads.kind: ("verifier", "operator"),
    Lift.kind: ("operator",),
    Tombstone.kind: ("operator",),
    Lease.kind: ("operator",),
    WriteOff.kind: ("operator",),
    Move.kind: ("coordinator",),
    TrustChange.kind: ("coordinator", "operator"),
}
"""Who may sign what (DESIGN section 4)."""


def signers(kind: str) -> tuple[Role, ...]:
    """Roles that may sign ``kind``; any of them for a kind that is passed over."""
    return SIGNERS.get(kind, ROLES)


def _reason(body: Document, where: str) -> str:
    return canonical.text_field(body, "reason", where=where, most=MAX_REASON)
