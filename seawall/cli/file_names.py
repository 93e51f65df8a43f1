"""What the files behind sealed objects are called and hold, where this host has a key that tells."""

from typing import TYPE_CHECKING

from seawall.errors import SeawallError
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.sealing import read_inventory, read_sealing, unlock

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord
    from seawall.protect.place import Place
    from seawall.vault.inventory import Inventory


def file_names(site: "Site", view: "LogView", commit: "CommitRecord", place: "Place") -> dict[str, str]:
    """Object name → the file's own name, when this host can open some copy's inventory. Without a key the object's name has to do."""
    inventory = any_inventory(site, view, commit, place)
    return {} if inventory is None else names_in(inventory)


def names_in(inventory: "Inventory") -> dict[str, str]:
    """Object name → the file's own name."""
    return {object_name(ObjectKind.FILE, number): file.name for number, file in enumerate(inventory.files)}


def any_inventory(site: "Site", view: "LogView", commit: "CommitRecord", place: "Place") -> "Inventory | None":
    """A sealing's inventory from the first copy that has it whole, ``place``'s before others; None where no key of this host opens it."""
    state = view.state
    for name in [place.name, *(other for other in site.run(view.run).copies if other != place.name)]:
        try:
            store = site.place(name).store
            opened = read_sealing(store, view.run, bytes.fromhex(commit.sealing), commit.manifest, state.writer_of(commit))
            return read_inventory(opened, unlock(opened, site.unwrappers(), state.resolver("operator")))
        except SeawallError:
            continue
    return None
