"""Proofs copied into the other stores of a run, so that one store alone still tells what its copies are worth."""

from collections.abc import Mapping

from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreError
from seawall.log.mirror import mirror_log
from seawall.log.read import LogView
from seawall.stores.base import Store
from seawall.verify.proofs import proof_key


def mirror_proofs(store: Store, view: LogView, mirror: Store) -> int:
    """Bring the chains that the log of ``view`` names from ``store`` to ``mirror``; how many batches were copied.

    A chain is looked at from its head down to what the mirror has, so an up-to-date mirror costs one request a verifier.
    Batches are written oldest first: a copy that was stopped is a shorter chain, never one with a hole. What a mirror holds under a
    number already is left alone; whoever reads it compares it with the log.
    """
    copied = 0
    for verifier, head in sorted(view.state.heads.items()):
        missing = []
        for seq in range(head.seq, 0, -1):
            try:
                mirror.head(proof_key(view.run, verifier, seq))
                break
            except NoSuchObjectError:
                missing.append(proof_key(view.run, verifier, seq))
        for key in reversed(missing):
            try:
                mirror.put(key, store.get(key))
                copied += 1
            except ObjectExistsError:
                continue
    return copied


def spread(store: Store, view: LogView, mirrors: Mapping[str, Store]) -> dict[str, str]:
    """Bring proofs and log of ``view`` from ``store`` to each mirror; mirror name → why it is behind.

    The log comes last, so that no mirror's log names a proof that the mirror lacks.
    """
    behind = {}
    for name, mirror in mirrors.items():
        try:
            mirror_proofs(store, view, mirror)
            mirror_log(store, view, mirror)
        except StoreError as error:
            behind[name] = str(error)
    return behind
