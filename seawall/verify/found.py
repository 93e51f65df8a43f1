"""What a check found, signed, on its way to the one who certifies.

Where many workers check copies and one appends their proofs, the results pass through somebody else's database. The worker signs them as a
verifier, so that whoever can write there cannot have a copy proved that nobody looked at.
"""

from collections.abc import Callable, Sequence

from seawall.clock import Clock
from seawall.errors import CorruptError
from seawall.log.bodies import ProofHead
from seawall.log.read import LogView
from seawall.log.verbs import state_proof_heads
from seawall.stores.base import Store
from seawall.vault import canonical, dsse
from seawall.vault.signing import PublicKey, SigningKey
from seawall.verify.certify import certify, read_known_chain
from seawall.verify.chain_cache import ChainCache
from seawall.verify.proofs import Proof, parse_proof

PAYLOAD_TYPE = "application/vnd.seawall.found.v1+json"


def sign_found(run: str, proofs: Sequence[Proof], key: SigningKey) -> str:
    """Proofs about copies of ``run`` as signed text, for :func:`read_found`."""
    payload = canonical.encode({"format": canonical.FORMAT, "run": run, "proofs": [proof.document() for proof in proofs]})
    return dsse.sign(PAYLOAD_TYPE, payload, [key]).encode().decode()


def read_found(text: str, run: str, resolve: Callable[[str], PublicKey | None]) -> list[Proof]:
    """The proofs in a text of :func:`sign_found`. ``resolve`` admits verifiers.

    Raises :class:`TrustError` for a signature that does not count, :class:`CorruptError` for anything else that is not what it should be.
    """
    where = f"results of checks of {run}"
    envelope = dsse.Envelope.decode(text.encode(), where=where)
    dsse.verify(envelope, PAYLOAD_TYPE, resolve, where=where)
    document = canonical.decode(envelope.payload, where=where)
    canonical.check_format(document, where=where)
    if canonical.text_field(document, "run", where=where) != run:
        raise CorruptError("these results are about another run", where=where)
    return [parse_proof(item, where) for item in canonical.list_field(document, "proofs", where=where)]


def certify_once(
    store: Store, view: LogView, proofs: Sequence[Proof], key: SigningKey, clock: Clock, cache: ChainCache | None = None
) -> LogView:
    """:func:`~seawall.verify.certify.certify` what this verifier did not say yet, so that a task that runs twice appends once.

    Two that run at the same moment may append the same proofs twice, which says nothing new.
    """
    chain = read_known_chain(store, view, key.key_id, cache)
    # The moment tells most apart at once; a chain may be long.
    moments = {proof.at for proof in proofs}
    said = [proof for proof in chain.proofs if proof.at in moments]
    fresh = [proof for proof in proofs if proof not in said]
    if fresh:
        return certify(store, view, fresh, key, clock, cache)
    if not chain.batches:
        return view
    # An earlier try may have been killed between the chain and the log; nothing is appended when the log names this head.
    return state_proof_heads(store, view, [ProofHead(chain.verifier, chain.seq, chain.digest)], key, clock)
