"""The trust lists that lie in a store, ``trust/<version>.json``: hints, each checked against the root and the one before.

Which list is in force for a run, its log says. These are where a new run takes its first list from, and what the next
list is made from.
"""

from collections.abc import Sequence

from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreAmbiguousError, TrustError
from seawall.stores.base import Store
from seawall.vault.signing import PublicKey
from seawall.vault.trust import MAX_LIST_BYTES, check_successor, read_list, store_key


def stored_lists(store: Store, root: PublicKey) -> list[bytes]:
    """The stored bytes of all lists, version 1 first; one request a list. ``TrustError`` or ``CorruptError`` for a wrong one."""
    found: list[bytes] = []
    before = None
    while True:
        key = store_key(len(found) + 1)
        where = f"{store.url}/{key}"
        try:
            raw = store.get(key, 0, MAX_LIST_BYTES + 1)
        except NoSuchObjectError:
            return found
        trust = read_list(raw, root, where=where)
        if before is not None:
            check_successor(before, trust, where=where)
        elif trust.version != 1:
            raise TrustError("a trust list lies under another number", where=where, why=f"it is version {trust.version}")
        before = trust
        found.append(raw)


def put_lists(store: Store, lists: Sequence[bytes]) -> int:
    """Put the lists that ``store`` lacks; the number of them. ``lists`` begin with version 1. ``TrustError`` if it has another one."""
    added = 0
    for number, raw in enumerate(lists, 1):
        key = store_key(number)
        try:
            store.put(key, raw)
            added += 1
        except (ObjectExistsError, StoreAmbiguousError):
            if store.get(key, 0, MAX_LIST_BYTES + 1) != raw:
                raise TrustError(
                    "there are two trust lists of one number",
                    where=f"{store.url}/{key}",
                    why="the root key signed both, or one store was changed",
                    do="find out who used the root key; nothing was changed here",
                ) from None
    return added
