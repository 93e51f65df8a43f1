"""Proofs: signed statements of a verifier about one copy, in one chain per verifier.

``runs/<run>/proofs/<verifier>/<seq>.json`` is a DSSE envelope over a batch of proofs. Each batch names the digest of the one
before; the log names the newest (``proof-heads``), so proofs that were cut off or replaced are noticed.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from seawall.errors import BusyError, CorruptError, NoSuchObjectError, ObjectExistsError, StoreAmbiguousError, TrustError
from seawall.log.entries import MAX_SEQ
from seawall.stores.base import Store
from seawall.vault import canonical, dsse
from seawall.vault.canonical import Document
from seawall.vault.identity import checked_run
from seawall.vault.signing import PublicKey, SigningKey
from seawall.verify.levels import Level

PAYLOAD_TYPE = "application/vnd.seawall.proofs.v1+json"
NO_BATCH = "0" * 64
MAX_BYTES = 16 << 20
"""Bound on a stored batch: about 10,000 proofs."""
_MAX_TRIES = 16
_WINDOW = 32
"""Batches that are asked for before any of them is read: bounds memory to half a gigabyte, whatever a store hands over."""
OK = "ok"
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Proof:
    """One finding about one copy. ``evidence`` is texts: counts, digests, the damaged objects and records."""

    sealing: str
    manifest: str
    """SHA-256 of the manifest that the copy was compared with."""
    store: str
    """Id of the store that holds the copy."""
    level: Level
    result: str
    """``ok`` or ``failed``."""
    method: str
    at: str
    """When the check ended, by the verifier's clock."""
    evidence: dict[str, str] = field(default_factory=dict)
    versions: str = ""
    """SHA-256 over the version ids that were read, on stores that have versions."""

    def document(self) -> Document:
        return {
            "sealing": self.sealing,
            "manifest": self.manifest,
            "store": self.store,
            "level": self.level.name,
            "result": self.result,
            "method": self.method,
            "at": self.at,
            "evidence": dict(self.evidence),
            "versions": self.versions,
        }


@dataclass(frozen=True, slots=True)
class ProofBatch:
    """What one link of a verifier's chain says."""

    run: str
    verifier: str
    seq: int
    prev: str
    proofs: tuple[Proof, ...]

    def payload(self) -> bytes:
        return canonical.encode(
            {
                "format": canonical.FORMAT,
                "run": self.run,
                "verifier": self.verifier,
                "seq": canonical.number(self.seq),
                "prev": self.prev,
                "proofs": [proof.document() for proof in self.proofs],
            }
        )


@dataclass(frozen=True)
class Chain:
    """A verifier's chain as a store has it: its batches in order, and the SHA-256 of each as stored."""

    verifier: str
    batches: tuple[ProofBatch, ...]
    digests: tuple[str, ...]

    @property
    def seq(self) -> int:
        return len(self.batches)

    @property
    def digest(self) -> str:
        return self.digests[-1] if self.digests else NO_BATCH

    def digest_at(self, seq: int) -> str:
        """Digest of link ``seq``, from 1."""
        return self.digests[seq - 1]

    @property
    def proofs(self) -> list[Proof]:
        return [proof for batch in self.batches for proof in batch.proofs]


def proof_prefix(run: str, verifier: str) -> str:
    """Where a store keeps a verifier's batches."""
    return f"runs/{checked_run(run)}/proofs/{verifier}/"


def proof_key(run: str, verifier: str, seq: int) -> str:
    """Where a store keeps batch ``seq`` of a verifier."""
    return f"{proof_prefix(run, verifier)}{seq:016d}.json"


def read_chain(
    store: Store,
    run: str,
    verifier: str,
    resolve: Callable[[str], PublicKey | None],
    *,
    known: Chain | None = None,
    at_least: int = 0,
    at_most: int = MAX_SEQ,
) -> Chain:
    """All batches of one verifier, each verified. ``resolve`` admits verifiers. An empty chain where there are none.

    ``known`` is what an earlier reading gave: its last batch is read again, and when the store still has the same bytes there, that digest
    fixes all before it. Otherwise it is not believed, and everything is read. ``at_least`` is how many batches the log says there are:
    so many are asked for at once. ``at_most`` stops there, whatever follows.
    """
    batches, digests = _still_there(store, run, known) if known is not None and known.seq else ([], [])
    while True:
        first = len(batches) + 1
        if first > at_most:
            return Chain(verifier, tuple(batches[:at_most]), tuple(digests[:at_most]))
        window = max(1, min(min(at_least, at_most) - len(batches), _WINDOW))
        found = _fetch(store, run, verifier, range(first, first + window))
        for seq, raw in enumerate(found, first):
            if raw is None:
                return Chain(verifier, tuple(batches), tuple(digests))
            prev = digests[-1] if digests else NO_BATCH
            batches.append(parse_batch(raw, run, verifier, seq, prev, resolve, f"{store.url}/{proof_key(run, verifier, seq)}"))
            digests.append(dsse.digest(raw))


def _still_there(store: Store, run: str, known: Chain) -> tuple[list[ProofBatch], list[str]]:
    (raw,) = _fetch(store, run, known.verifier, range(known.seq, known.seq + 1))
    if raw is None or dsse.digest(raw) != known.digest:
        return [], []
    return list(known.batches), list(known.digests)


def _fetch(store: Store, run: str, verifier: str, numbers: range) -> list[bytes | None]:
    def one(seq: int) -> bytes | None:
        try:
            return store.get(proof_key(run, verifier, seq), 0, MAX_BYTES + 1)
        except NoSuchObjectError:
            return None

    if len(numbers) == 1:
        return [one(numbers[0])]
    with ThreadPoolExecutor(min(len(numbers), 16), "proofs") as pool:
        return list(pool.map(one, numbers))


def append_proofs(
    store: Store,
    run: str,
    proofs: Sequence[Proof],
    key: SigningKey,
    resolve: Callable[[str], PublicKey | None],
    check: Callable[[Chain], None] = lambda chain: None,
    known: Chain | None = None,
    at_least: int = 0,
) -> Chain:
    """Add one signed batch to this verifier's chain; two that append at once take two numbers. ``check`` may refuse it by raising.

    ``known`` and ``at_least`` as in :func:`read_chain`.
    """
    chain = read_chain(store, run, key.key_id, resolve, known=known, at_least=at_least)
    check(chain)
    for _ in range(_MAX_TRIES):
        batch = ProofBatch(run, key.key_id, chain.seq + 1, chain.digest, tuple(proofs))
        raw = dsse.sign(PAYLOAD_TYPE, batch.payload(), [key]).encode()
        try:
            store.put(proof_key(run, key.key_id, batch.seq), raw)
        except (ObjectExistsError, StoreAmbiguousError):
            chain = read_chain(store, run, key.key_id, resolve, known=chain)
            # A time-out may have hidden that this very batch arrived. If it did not, the same bytes are put into the same
            # place again, so that one that arrives late changes nothing.
            if batch.seq <= chain.seq and chain.batches[batch.seq - 1] == batch:
                return chain
            continue
        return Chain(key.key_id, (*chain.batches, batch), (*chain.digests, dsse.digest(raw)))
    raise BusyError("the chain of proofs is being extended by others", where=f"{store.url} {run} {key.key_id}", do="run it again")


def prev_of(raw: bytes, where: str) -> str:
    """The digest that a stored batch names as the one before it. Nobody is asked who signed it: its own digest is known to be right."""
    envelope = dsse.Envelope.decode(raw, where=where, max_bytes=MAX_BYTES)
    return canonical.hex32_field(canonical.decode(envelope.payload, where=where, max_bytes=MAX_BYTES), "prev", where=where)


def parse_batch(
    raw: bytes, run: str, verifier: str, seq: int, prev: str, resolve: Callable[[str], PublicKey | None], where: str
) -> ProofBatch:
    """Verify and read one link of a chain."""
    envelope = dsse.Envelope.decode(raw, where=where)
    signers = dsse.verify(envelope, PAYLOAD_TYPE, resolve, where=where)
    document = canonical.decode(envelope.payload, where=where)
    canonical.check_format(document, where=where)
    batch = ProofBatch(
        canonical.text_field(document, "run", where=where),
        canonical.hex_field(document, "verifier", 16, where=where),
        canonical.number_field(document, "seq", where=where),
        canonical.hex32_field(document, "prev", where=where),
        tuple(parse_proof(item, where) for item in canonical.list_field(document, "proofs", where=where)),
    )
    if (batch.run, batch.verifier, batch.seq, batch.prev) != (run, verifier, seq, prev) or verifier not in signers:
        raise TrustError(
            "a batch of proofs is out of its place in the chain", where=where, why="run, verifier, number or predecessor differ"
        )
    if batch.payload() != envelope.payload:
        raise CorruptError("a batch of proofs has fields that this reader does not know", where=where)
    return batch


def parse_proof(item: object, where: str) -> Proof:
    """Back from :meth:`Proof.document`; :class:`CorruptError` for anything else."""
    if not isinstance(item, dict):
        raise CorruptError("a proof is not an object", where=where)
    result = canonical.text_field(item, "result", where=where)
    level = canonical.text_field(item, "level", where=where)
    evidence = canonical.object_field(item, "evidence", where=where)
    if result not in (OK, FAILED) or not all(isinstance(value, str) for value in evidence.values()):
        raise CorruptError("a proof is malformed", where=where)
    try:
        parsed = Level.parse(level)
    except ValueError as error:
        raise CorruptError("a proof is malformed", where=where, why=str(error)) from None
    return Proof(
        canonical.hex_field(item, "sealing", 16, where=where),
        canonical.hex32_field(item, "manifest", where=where),
        canonical.hex_field(item, "store", 16, where=where),
        parsed,
        result,
        canonical.text_field(item, "method", where=where),
        canonical.time_field(item, "at", where=where),
        dict(evidence),
        canonical.text_field(item, "versions", where=where, empty=True),
    )
