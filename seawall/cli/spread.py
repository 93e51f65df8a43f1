"""After a command extended a run's log: remember it on this host, and bring the mirrors up to it."""

from typing import TYPE_CHECKING

from seawall.cli.output import warn
from seawall.errors import StoreError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView


def spread(site: "Site", view: "LogView") -> dict[str, str]:
    """Mirror name → why it is behind. The coordination store has the entry already, so a mirror that does not answer is no failure."""
    from seawall.log.mirror import mirror_log

    site.remember(view)
    behind = {}
    for name, mirror in site.mirrors(view.run).items():
        try:
            mirror_log(site.coordination.store, view, mirror)
        except StoreError as error:
            behind[name] = str(error)
            warn(f"the mirror in {name} is behind: {error}. `seawall log mirror {view.run}` tries again")
    return behind
