"""From findings to signed proofs, and from stored chains back to the proofs that count."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from seawall.clock import Clock, utc_text
from seawall.errors import CorruptError, FreshnessError, StoreError, TrustError
from seawall.log.bodies import ProofHead
from seawall.log.read import LogView
from seawall.log.state import CommitRecord
from seawall.log.verbs import state_proof_heads
from seawall.stores.base import Store
from seawall.vault.signing import SigningKey
from seawall.verify.chain_cache import ChainCache
from seawall.verify.findings import NOT_ATTAINABLE, Finding
from seawall.verify.proofs import FAILED, Chain, Proof, append_proofs, read_chain


def proofs_of(findings: Sequence[Finding], commit: CommitRecord, store_id: str, clock: Clock) -> list[Proof]:
    """One proof a finding. What a store cannot attain is no proof of anything, so it is left out."""
    at = utc_text(clock.now())
    return [
        Proof(
            commit.sealing,
            commit.manifest,
            store_id,
            finding.level,
            finding.result,
            finding.method,
            at,
            dict(finding.evidence),
            finding.versions,
        )
        for finding in findings
        if finding.result != NOT_ATTAINABLE
    ]


def certify(
    store: Store, view: LogView, proofs: Sequence[Proof], key: SigningKey, clock: Clock, cache: ChainCache | None = None
) -> LogView:
    """Sign proofs into this verifier's chain in the coordination store, and state the chain's head in the log.

    The chain comes first: after a kill between the two, proofs are there that the log does not name yet, which is
    harmless; the next head names them. Raises :class:`FreshnessError`, and writes nothing, when proofs that the log names are gone or
    were replaced: a batch in their place would be a second history of the chain, for good.
    """

    def check(chain: Chain) -> None:
        why = _why_not(chain, view)
        if why:
            raise FreshnessError(
                "proofs of this verifier are missing",
                where=f"{store.url} {view.run} {chain.verifier}",
                why=why,
                do="copy the run's proofs back from another store, or give the verifier a new key; until then nothing it says counts",
            )

    known = cache.known(view, key.key_id) if cache else None
    named = view.state.heads.get(key.key_id)
    resolve = view.state.resolver("verifier")
    chain = append_proofs(store, view.run, proofs, key, resolve, check, known, named.seq if named else 0)
    if cache:
        cache.keep(view, chain)
    return state_proof_heads(store, view, [ProofHead(chain.verifier, chain.seq, chain.digest)], key, clock)


@dataclass(frozen=True)
class KnownProofs:
    """All proofs that count, and the verifiers whose proofs do not, with the reason: what they said is *unknown*."""

    proofs: tuple[Proof, ...]
    unknown: dict[str, str] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()
    """Those of the unknown verifiers whose keys count, so that proofs are missing which somebody may have taken away."""

    @property
    def failures(self) -> list[Proof]:
        return [proof for proof in self.proofs if proof.result == FAILED]


def read_proofs(store: Store, view: LogView, verifiers: Sequence[str] = (), cache: ChainCache | None = None) -> KnownProofs:
    """The chains of every verifier that the log names, and of ``verifiers``.

    A chain that is shorter than the log says, or differs from it, is a gap: somebody removed or replaced proofs. What is missing may
    have been a failure of any copy, so until the gap is closed (from a mirror, or by revoking the verifier's key) no success counts,
    whoever proved it, and every failure that can be read does. With ``cache`` only new batches cost requests, and two a verifier.
    """
    proofs: list[Proof] = []
    unknown: dict[str, str] = {}
    gaps: list[str] = []
    resolve = view.state.resolver("verifier")
    for verifier in sorted({*view.state.heads, *verifiers}):
        if resolve(verifier) is None:
            unknown[verifier] = "its key is revoked, or not a verifier's"
            continue
        try:
            chain = read_known_chain(store, view, verifier, cache)
        except (TrustError, CorruptError, StoreError) as error:
            unknown[verifier] = str(error)
            gaps.append(verifier)
            continue
        why = _why_not(chain, view)
        if why:
            unknown[verifier] = why
            gaps.append(verifier)
        proofs.extend(chain.proofs)
    if gaps:
        proofs = [proof for proof in proofs if proof.result == FAILED]
    return KnownProofs(tuple(proofs), unknown, tuple(gaps))


def read_known_chain(store: Store, view: LogView, verifier: str, cache: ChainCache | None = None) -> Chain:
    """One verifier's chain, from what ``cache`` knows of it. It may not be the one that the log names."""
    named = view.state.heads.get(verifier)
    known = cache.known(view, verifier) if cache else None
    resolve = view.state.resolver("verifier")
    chain = read_chain(store, view.run, verifier, resolve, known=known, at_least=named.seq if named else 0)
    if cache:
        cache.keep(view, chain)
    return chain


def _why_not(chain: Chain, view: LogView) -> str:
    head = view.state.heads.get(chain.verifier)
    if head is None:
        return ""
    if chain.seq < head.seq:
        return f"its chain ends at {chain.seq}, the log says {head.seq}: proofs are missing"
    if chain.digest_at(head.seq) != head.digest:
        return f"link {head.seq} of its chain is not the one that the log names"
    return ""
