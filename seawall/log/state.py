"""What the log of a run says once it is folded: epochs, commits, orphans, quarantines, holds, keys.

The records are flat so that :mod:`seawall.log.snapshot` can write them down; all ids and digests are hex text.
A :class:`RunState` is treated as a value: :mod:`seawall.log.fold` copies it before it changes anything.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from seawall.errors import NoSuchCopyError
from seawall.log.entries import NO_ENTRY
from seawall.vault.signing import PublicKey, Role
from seawall.vault.trust import TrustList


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """An epoch and where the log opened it."""

    number: int
    writers: tuple[str, ...]
    reason: str
    seq: int
    op: str
    at: str


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit entry, also one that came too late. Fields as in :class:`seawall.log.bodies.Commit`."""

    sealing: str
    step: int
    written: int
    epoch: int
    """Epoch of the committer."""
    manifest: str
    keys: str
    store: str
    receipt: str
    stored_at: str | None
    seq: int
    op: str
    writer: str
    """Key id that signed the entry."""
    at: str
    orphan: str = ""
    """Why it is an orphan; empty for a commit that counts."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A quarantine of one sealing, or a hold of the run when ``sealing`` is empty."""

    op: str
    sealing: str
    reason: str
    seq: int
    signer: str
    at: str
    lifted_by: str = ""
    """Operation id of the lift; empty while the mark stands."""
    lifted_why: str = ""


@dataclass(frozen=True, slots=True)
class TombstoneRecord:
    """A copy that is deleted."""

    sealing: str
    store: str
    plan: str
    seq: int
    lease: int = 0
    """Number of the lease entry that it was done under."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The newest lease of one purpose. Moments are the store's, in the form of :func:`seawall.clock.utc_text`."""

    purpose: str
    holder: str
    taken: str
    until: str
    seq: int
    """The fencing number."""
    signer: str

    @property
    def released(self) -> bool:
        """Whether its holder gave it back."""
        return self.until <= self.taken


@dataclass(frozen=True, slots=True)
class WriteOffRecord:
    """A checkpoint that two people gave up."""

    sealing: str
    reason: str
    signers: tuple[str, ...]
    seq: int
    at: str


@dataclass(frozen=True, slots=True)
class HeadRecord:
    """The newest head of one verifier's chain of proofs that the log knows."""

    verifier: str
    seq: int
    digest: str
    log_seq: int


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry that is kept without meaning: a reserved kind, or an unknown one marked ignorable."""

    seq: int
    kind: str
    op: str
    body: str
    """Canonical JSON of the body."""


@dataclass(frozen=True, slots=True)
class Done:
    """What one operation id stands for: the entry's number, and the SHA-256 over its kind and body."""

    seq: int
    content: str


@dataclass(slots=True)
class RunState:
    """The fold of a run's log up to and including entry ``seq`` (0: nothing read yet)."""

    run: str
    root: PublicKey
    """The trust root, given out of band."""
    seq: int = 0
    digest: str = NO_ENTRY
    """SHA-256 of the stored bytes of entry ``seq``."""
    epoch: int = 0
    coordination: str = ""
    """Id of the store that has authority: from genesis, or the last move."""
    moved_at: int | None = None
    trust: TrustList | None = None
    trust_bytes: bytes = b""
    revoked_at: dict[str, int] = field(default_factory=dict)
    """Key id to the number of the entry from which its revocation counts."""
    epochs: dict[int, EpochRecord] = field(default_factory=dict)
    commits: dict[str, CommitRecord] = field(default_factory=dict)
    """By sealing, in log order: the checkpoints that exist."""
    steps: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Step to its committed sealings, in log order."""
    orphans: dict[str, CommitRecord] = field(default_factory=dict)
    """By sealing: commits under a closed epoch. Kept, never recovery points."""
    marks: dict[str, Mark] = field(default_factory=dict)
    """Every quarantine and hold, by operation id."""
    quarantined: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Sealing to the operation ids of its quarantines that stand."""
    held: tuple[str, ...] = ()
    """Operation ids of the holds that stand."""
    tombstones: dict[str, tuple[TombstoneRecord, ...]] = field(default_factory=dict)
    """By sealing. Of a sealing that was never committed: it was given up unfinished, and no commit of it may follow."""
    leases: dict[str, LeaseRecord] = field(default_factory=dict)
    """By purpose: the newest."""
    written_off: dict[str, WriteOffRecord] = field(default_factory=dict)
    """By sealing."""
    heads: dict[str, HeadRecord] = field(default_factory=dict)
    """By verifier."""
    kept: list[Kept] = field(default_factory=list)
    done: dict[str, Done] = field(default_factory=dict)
    """By operation id."""

    def copy(self) -> "RunState":
        """An equal state that shares nothing that the fold changes."""
        return replace(
            self,
            revoked_at=self.revoked_at.copy(),
            epochs=self.epochs.copy(),
            commits=self.commits.copy(),
            steps=self.steps.copy(),
            orphans=self.orphans.copy(),
            marks=self.marks.copy(),
            quarantined=self.quarantined.copy(),
            tombstones=self.tombstones.copy(),
            leases=self.leases.copy(),
            written_off=self.written_off.copy(),
            heads=self.heads.copy(),
            kept=self.kept.copy(),
            done=self.done.copy(),
        )

    def epoch_record(self) -> EpochRecord | None:
        """The epoch in force; None before the first."""
        return self.epochs.get(self.epoch)

    def commit_of(self, sealing: str) -> CommitRecord:
        """The commit of ``sealing``; ``NoSuchCopyError`` if it is not in the log or an orphan."""
        found = self.commits.get(sealing)
        if found is None:
            orphan = self.orphans.get(sealing)
            why = f"its commit is an orphan: {orphan.orphan}" if orphan else "the log has no commit of it"
            raise NoSuchCopyError("there is no such checkpoint", where=f"{self.run} {sealing}", why=why)
        return found

    def is_deleted(self, sealing: str, store: str) -> bool:
        """Whether the copy in ``store`` has a tombstone."""
        return any(record.store == store for record in self.tombstones.get(sealing, ()))

    def quarantine_reasons(self, sealing: str) -> list[str]:
        """Why ``sealing`` is no recovery point; empty when no quarantine stands and nobody wrote it off."""
        reasons = [self.marks[op].reason for op in self.quarantined.get(sealing, ())]
        if sealing in self.written_off:
            reasons.append(f"written off by two people: {self.written_off[sealing].reason}")
        return reasons

    @property
    def store_time(self) -> str | None:
        """The high-water mark of the store's clock: the latest moment that a lease was taken at. None before the first."""
        return max((lease.taken for lease in self.leases.values()), default=None)

    def hold_reasons(self) -> list[str]:
        """Why nothing of the run may be deleted or promoted; empty when no hold stands."""
        return [self.marks[op].reason for op in self.held]

    def resolver(self, role: Role, seq: int | None = None) -> Callable[[str], PublicKey | None]:
        """Key id to public key, for keys of ``role`` that are listed and not revoked.

        With ``seq`` a key counts if it was not yet revoked at that entry: for signatures that the log placed there.
        """
        trust = self.trust

        def resolve(key_id: str) -> PublicKey | None:
            if trust is None:
                return None
            key = trust.keys.get(key_id)
            if key is None or key.role != role:
                return None
            revoked = self.revoked_at.get(key_id)
            if revoked is not None and (seq is None or seq >= revoked):
                return None
            return key.public

        return resolve

    def writer_of(self, commit: CommitRecord) -> Callable[[str], PublicKey | None]:
        """Key id to public key of the writers that were admitted when ``commit`` was made, for what its sealing holds."""
        resolve = self.resolver("writer", commit.seq)
        admitted = self.epochs[commit.epoch].writers
        return lambda key_id: resolve(key_id) if key_id in admitted else None
