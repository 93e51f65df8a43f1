"""Locking a whole copy: what :mod:`seawall.stores.lock` locked for a short time as it arrived is locked for as long as copies are kept."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from seawall.errors import StoreRefusedError
from seawall.protect.place import Place


def lock_copy(place: Place, folder: str, until: datetime, transfers: int = 16) -> int:
    """Lock every object below ``folder`` until then; the number of objects. A lock that is longer already stays as it is."""
    keys = [stored.key for stored in place.store.list(folder)]

    def one(key: str) -> None:
        try:
            place.store.extend_lock(key, until)
        except StoreRefusedError:
            # No lock can be shortened, and none has to be.
            there = place.store.head(key).locked_until
            if there is None or there < until:
                raise

    with ThreadPoolExecutor(min(transfers, max(1, len(keys))), "lock") as pool:
        list(pool.map(one, keys))
    return len(keys)
