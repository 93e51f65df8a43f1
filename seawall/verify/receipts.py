"""The newest receipt of a copy: which versions make it up, and since when it is whole."""

import re
from collections.abc import Mapping
from hashlib import sha256

from seawall.errors import NoSuchObjectError
from seawall.log.state import RunState
from seawall.stores.base import Store
from seawall.vault.identity import sealing_folder
from seawall.vault.open import Resolve
from seawall.vault.receipt import MAX_BYTES, Receipt, parse_receipt, receipt_name
from seawall.vault.signing import PublicKey, Role

SIGNERS: tuple[Role, ...] = ("writer", "verifier", "operator")
"""Whose receipts count (docs/spec/format-1.md, section 11)."""


def receipt_signers(state: RunState) -> Resolve:
    """Key id to public key, for those whose receipts count now."""
    resolvers = [state.resolver(role) for role in SIGNERS]

    def resolve(key_id: str) -> PublicKey | None:
        return next((key for resolver in resolvers if (key := resolver(key_id)) is not None), None)

    return resolve


def newest_receipt(store: Store, store_id: str, run: str, sealing: str, manifest: str, resolve: Resolve) -> Receipt | None:
    """The receipt of the highest number; None when there is none. One listing and one read.

    Raises :class:`CorruptError` or :class:`TrustError` when it is not what it should be: then nobody knows which versions count.
    """
    folder = sealing_folder(run, bytes.fromhex(sealing))
    prefix = f"{folder}receipt-{store_id}-"
    name = re.compile(re.escape(prefix) + r"([1-9][0-9]{0,8})\.json\Z", re.ASCII)
    numbers = [int(match[1]) for match in (name.match(found.key) for found in store.list(prefix)) if match]
    if not numbers:
        return None
    number = max(numbers)
    key = folder + receipt_name(store_id, number)
    try:
        raw = store.get(key, 0, MAX_BYTES + 1)
    except NoSuchObjectError:
        return None
    receipt = parse_receipt(raw, resolve, key)
    receipt.check_place(run, bytes.fromhex(sealing), manifest, store_id, number, key)
    return receipt


def versions_digest(versions: Mapping[str, str]) -> str:
    """What a proof says of the versions that were read (:attr:`~seawall.verify.proofs.Proof.versions`); empty without versions."""
    if not versions:
        return ""
    return sha256("".join(f"{name} {version}\n" for name, version in sorted(versions.items())).encode()).hexdigest()
