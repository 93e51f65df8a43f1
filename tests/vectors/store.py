"""The good store that every vector stands on: identity, trust lists, log, three sealings with receipts, a chain of proofs."""

from dataclasses import dataclass
from hashlib import sha256

from seawall.log.bodies import Commit, Epoch, Genesis, ProofHead, ProofHeads, TrustChange
from seawall.log.identity import identify
from seawall.log.read import LogView, read_log
from seawall.testing.memory import MemoryStore
from seawall.vault.receipt import Receipt, receipt_name
from seawall.vault.recipients import wrap_context
from seawall.vault.trust import read_list, sign_list, store_key
from seawall.vault.wraps import WrappedKey, commitment
from seawall.verify.levels import Level
from seawall.verify.proofs import Proof, append_proofs
from tests.log.actors import KEYS, RUN, Hand, trust_list
from tests.vectors.copies import SAVED_AT, STRANGE_KEYRING, SealedCopy, bare, folder_of, plain, zstd
from tests.vectors.fixed_random import fixed_random
from tests.vectors.planes import planes


@dataclass
class GoodStore:
    """The store and what was put into it."""

    store: MemoryStore
    id: str
    copies: dict[str, SealedCopy]

    def view(self) -> LogView:
        return read_log(self.store, RUN, KEYS.root.public)


def good_store() -> GoodStore:
    """Built anew, the same bytes each time."""
    store = MemoryStore("vectors")
    with fixed_random("store"):
        store_id = identify(store, create=True)
    hand = Hand(store)
    first = trust_list()
    second = sign_list(read_list(first, KEYS.root.public).with_revocation(KEYS.second_writer.key_id, "stolen"), KEYS.root)
    store.objects[store_key(1)], store.objects[store_key(2)] = first, second
    hand.write(Genesis(store_id, first), KEYS.coordinator)
    hand.write(Epoch(1, tuple(sorted((KEYS.writer.key_id, KEYS.second_writer.key_id))), "begun"), KEYS.coordinator)
    hand.write(TrustChange(second), KEYS.coordinator)
    copies = {copy.name: copy for copy in (plain(), zstd(), bare())}
    proofs = []
    for copy in copies.values():
        versions = {"manifest.json": "v1"} if copy.name == "plain" else {}
        time = None if copy.name == "bare" else SAVED_AT
        _commit(hand, store, store_id, copy, time, versions)
        proofs.append(Proof(copy.sealing.hex(), copy.manifest_digest, store_id, Level.L3, "ok", "decrypt", SAVED_AT, {"objects": "1"}))
    resolve = read_log(store, RUN, KEYS.root.public).state.resolver("verifier")
    append_proofs(store, RUN, proofs[:2], KEYS.verifier, resolve)
    chain = append_proofs(store, RUN, proofs[2:], KEYS.verifier, resolve)
    hand.write(ProofHeads((ProofHead(KEYS.verifier.key_id, chain.seq, chain.digest),)), KEYS.verifier)
    # Later copies come last: what the first ones and the log said before stays as it was released.
    copies["planes"] = planes()
    _commit(hand, store, store_id, copies["planes"], SAVED_AT, {})
    return GoodStore(store, store_id, copies)


def _commit(hand: Hand, store: MemoryStore, store_id: str, copy: SealedCopy, time: str | None, versions: dict[str, str]) -> None:
    receipt = Receipt(RUN, copy.sealing, copy.manifest_digest, store_id, 1, time, time, versions)
    copy.objects[receipt_name(store_id, 1)] = receipt.sign(KEYS.writer)
    _add_rotation(copy)
    store.objects.update({folder_of(copy) + name: raw for name, raw in copy.objects.items()})
    body = Commit(
        copy.sealing.hex(),
        copy.plan.step,
        1,
        copy.manifest_digest,
        sha256(copy.objects["keys-1.json"]).hexdigest(),
        store_id,
        sha256(copy.objects[receipt_name(store_id, 1)]).hexdigest(),
        time,
    )
    hand.write(body, KEYS.writer)


def _add_rotation(copy: SealedCopy) -> None:
    """The sealing without files was given to a second keyring by an operator, later."""
    if copy.name != "bare":
        return
    with fixed_random("rotation"):
        wraps = (STRANGE_KEYRING.wrap(copy.data_key, wrap_context(RUN, copy.sealing)),)
    copy.objects["keys-2.json"] = WrappedKey(RUN, copy.sealing, 2, commitment(copy.data_key, copy.sealing), wraps).sign(KEYS.operator)
