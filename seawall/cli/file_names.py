"""What the files behind sealed objects are called, where this host has a key that tells."""

from typing import TYPE_CHECKING

from seawall.errors import SeawallError
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.sealing import read_inventory, read_sealing, unlock

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.log.state import CommitRecord
    from seawall.protect.place import Place


def file_names(site: "Site", view: "LogView", commit: "CommitRecord", place: "Place") -> dict[str, str]:
    """Object name → the file's own name, when this host can open some copy's inventory. Without a key the object's name has to do."""
    state = view.state
    for name in [place.name, *(other for other in site.run(view.run).copies if other != place.name)]:
        try:
            store = site.place(name).store
            opened = read_sealing(store, view.run, bytes.fromhex(commit.sealing), commit.manifest, state.writer_of(commit))
            inventory = read_inventory(opened, unlock(opened, site.unwrappers(), state.resolver("operator")))
        except SeawallError:
            continue
        return {object_name(ObjectKind.FILE, number): file.name for number, file in enumerate(inventory.files)}
    return {}
