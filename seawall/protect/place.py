"""A place for copies as the verbs of this room see it: a configured name, the store's own id, and the store."""

from dataclasses import dataclass
from datetime import timedelta

from seawall.stores.base import Store


@dataclass(frozen=True)
class Place:
    """``name`` is the key below ``[stores]`` in seawall.toml; ``id`` is what ``seawall.json`` in the store says. ``lock`` is for how long a
    copy is locked once it is whole; None where nobody asked for locks. ``retrieval`` is how long its objects take to become readable."""

    name: str
    id: str
    store: Store
    lock: timedelta | None = None
    retrieval: timedelta = timedelta(0)
