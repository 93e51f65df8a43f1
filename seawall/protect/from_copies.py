"""A checkpoint from the first of its copies that can be used."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from seawall.errors import CorruptError, NoSuchCopyError, SeawallError, StoreError, TrustError
from seawall.log.read import LogView
from seawall.log.state import CommitRecord
from seawall.protect.assignment import Progress
from seawall.protect.place import Place
from seawall.protect.restore import Restored, restore
from seawall.vault.identity import sealing_folder
from seawall.vault.inventory import Inventory
from seawall.vault.sealing import Sealing, read_inventory, read_sealing, unlock

if TYPE_CHECKING:
    from seawall.vault.recipients import Unwrapper

_T = TypeVar("_T")


@dataclass(frozen=True)
class OpenedCopy:
    """A copy whose manifest holds and whose inventory is open."""

    place: Place
    sealing: Sealing
    inventory: Inventory
    data_key: bytes


def open_copy(view: LogView, commit: CommitRecord, place: Place, unwrappers: "Sequence[Unwrapper]") -> OpenedCopy:
    """Open the copy of ``commit`` in ``place``, recalled first where that is needed, which takes hours.

    Raises what reading a damaged or missing copy raises, or :class:`KeyMissingError`.
    """
    state = view.state
    if place.retrieval:
        recall(place, sealing_folder(view.run, bytes.fromhex(commit.sealing)))
    opened = read_sealing(place.store, view.run, bytes.fromhex(commit.sealing), commit.manifest, state.writer_of(commit))
    data_key = unlock(opened, unwrappers, state.resolver("operator"))
    return OpenedCopy(place, opened, read_inventory(opened, data_key), data_key)


def first_sealing(view: LogView, commit: CommitRecord, places: Sequence[Place]) -> Sealing:
    """Manifest and objects table of ``commit`` from the first of the places that has them whole. Raises as :func:`from_first_good` does."""
    sealing, writers = bytes.fromhex(commit.sealing), view.state.writer_of(commit)

    def read(place: Place) -> Sealing:
        return read_sealing(place.store, view.run, sealing, commit.manifest, writers)

    return from_first_good(places, read, lambda place, error: None)


def recall(place: Place, folder: str) -> None:
    """Ask for all objects below ``folder``, and wait until they can be read: at most twice the time that their tier is said to take.

    Raises :class:`~seawall.errors.StoreUnavailableError` after that; what was asked for keeps coming.
    """
    keys = [stored.key for stored in place.store.list(folder)]
    place.store.warm(keys)
    place.store.wait_warm(keys, 2 * place.retrieval.total_seconds())


def soonest_first(places: Sequence[Place]) -> list[Place]:
    """The places in their order, those from which objects have to be recalled last."""
    return sorted(places, key=lambda place: place.retrieval)


def from_first_good(places: Sequence[Place], use: Callable[[Place], _T], on_problem: Callable[[Place, SeawallError], None]) -> _T:
    """Try the copies in order. A damaged or missing copy is told to ``on_problem`` and passed over; anything else ends it.

    One flipped bit can make the signature of an object another key's, so an error of trust in a copy is damage of that copy too. Raises
    the first problem that is more than an absent copy, when no copy can be used.
    """
    problem: SeawallError | None = None
    for place in places:
        try:
            return use(place)
        except (CorruptError, NoSuchCopyError, StoreError, TrustError) as error:
            on_problem(place, error)
            problem = error if problem is None or isinstance(problem, NoSuchCopyError) else problem
    raise problem or NoSuchCopyError("no store that can be reached has this checkpoint")


def restore_from_copies(
    view: LogView,
    commit: CommitRecord,
    places: Sequence[Place],
    unwrappers: "Sequence[Unwrapper]",
    target: Path,
    *,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
    on_problem: Callable[[Place, SeawallError], None] = lambda place, error: None,
) -> tuple[Restored, Place]:
    """Rebuild ``commit``'s checkpoint at ``target`` from the first copy that holds, and say which it was."""

    def use(place: Place) -> tuple[Restored, Place]:
        opened = open_copy(view, commit, place, unwrappers)
        return restore(opened.sealing, opened.inventory, opened.data_key, target, transfers=transfers, progress=progress), place

    return from_first_good(places, use, on_problem)
