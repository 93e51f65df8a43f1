"""An assignment: a sealing that was planned and whose data key this host holds. Each verb of a sync takes one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from seawall.errors import CorruptError, NoSuchCopyError, NoSuchObjectError
from seawall.stores.base import Store
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.identity import sealing_folder
from seawall.vault.objects import Row, row_of_frame
from seawall.vault.open import Resolve, open_bytes
from seawall.vault.plan import Plan, decode_plan
from seawall.vault.recipients import Unwrapper
from seawall.vault.wraps import MAX_BYTES as MAX_KEYS_BYTES
from seawall.vault.wraps import keys_name, parse_wraps

Progress = Callable[[int, int], None]
"""Called with bytes and files done since the last call; from several threads."""


MAX_SEALED_DOCUMENT_BYTES = 1 << 30
"""Largest plan or batch that is read into memory: ten million files' worth, far beyond what one checkpoint has."""


@dataclass(frozen=True)
class Assignment:
    """What seal and commit need to know."""

    plan: Plan
    data_key: bytes
    keys_digest: bytes
    """SHA-256 of ``keys-1.json``."""
    resumed: bool
    """The plan was there before: objects may be, too."""
    plan_row: Row
    """The plan object's row of the objects table."""

    @property
    def folder(self) -> str:
        return sealing_folder(self.plan.run, self.plan.sealing)


def load_assignment(store: Store, run: str, sealing: bytes, unwrappers: Sequence[Unwrapper], resolve: Resolve) -> Assignment:
    """Read keys and plan of a sealing back from a store: how a worker on another host joins in.

    Raises :class:`NoSuchCopyError` when the sealing was not planned there, :class:`KeyMissingError` when no key opens it.
    """
    folder = sealing_folder(run, sealing)
    try:
        raw_keys = store.get(folder + keys_name(1), 0, MAX_KEYS_BYTES + 1)
        raw_plan = store.get(folder + object_name(ObjectKind.PLAN, 0), 0, MAX_SEALED_DOCUMENT_BYTES + 1)
    except NoSuchObjectError as error:
        raise NoSuchCopyError(
            "this sealing has no plan in the store", where=f"{store.url} {sealing.hex()}", do="plan the sync first"
        ) from error
    data_key = parse_wraps(raw_keys, run, sealing, 1, resolve, folder + keys_name(1)).unwrap(unwrappers)
    plaintext, opener = open_bytes(raw_plan, data_key, resolve, folder + "plan.sea")
    plan = decode_plan(plaintext, folder + "plan.sea")
    if plan.run != run or plan.sealing != sealing:
        raise CorruptError("the plan belongs to another sealing", where=folder)
    return Assignment(plan, data_key, sha256(raw_keys).digest(), True, row_of_frame(opener.frame, object_name(ObjectKind.PLAN, 0)))
