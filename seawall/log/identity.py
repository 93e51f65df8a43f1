"""The id of a store, ``<root>/seawall.json``: written once, so that a place cannot be taken for another one."""

import secrets

from seawall.errors import (
    CorruptError,
    NoSuchObjectError,
    ObjectExistsError,
    StoreAmbiguousError,
    StoreUnavailableError,
)
from seawall.stores.base import Store
from seawall.vault import canonical

IDENTITY_KEY = "seawall.json"

_MAX_BYTES = 4096


def identify(store: Store, *, create: bool = False) -> str:
    """The store's id, 16 random bytes in hex.

    With ``create`` a place without an id is given one; of several that do so at once, all get the same answer.
    ``NoSuchObjectError`` if there is none, ``CorruptError`` if the object is damaged.
    """
    try:
        return _read(store)
    except NoSuchObjectError:
        if not create:
            raise NoSuchObjectError(
                "this place is no seawall store yet",
                where=store.url,
                why=f"it has no {IDENTITY_KEY}",
                do="check the URL; `seawall init` prepares a new place",
            ) from None
    fresh = canonical.encode({"format": canonical.FORMAT, "store": secrets.token_hex(16)})
    for _ in range(3):
        try:
            store.put(IDENTITY_KEY, fresh)
        except (ObjectExistsError, StoreAmbiguousError, StoreUnavailableError):
            # Taken, or perhaps ours: what is there decides. Still nothing there: the same bytes are put again.
            try:
                return _read(store)
            except NoSuchObjectError:
                continue
        return _read(store)
    raise StoreAmbiguousError("a store's id could not be written", where=store.url, why="the outcome is unknown", do="run it again")


def _read(store: Store) -> str:
    where = f"{store.url} {IDENTITY_KEY}"
    data = store.get(IDENTITY_KEY, 0, _MAX_BYTES + 1)
    document = canonical.decode(data, where=where, max_bytes=_MAX_BYTES)
    canonical.check_format(document, where=where)
    canonical.only_fields(document, {"format", "store"}, where=where)
    found = canonical.hex_field(document, "store", 16, where=where)
    if found == "0" * 32:
        raise CorruptError("a store's id is empty", where=where)
    return found
