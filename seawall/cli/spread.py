"""After a command extended a run's log: remember it on this host, and bring the mirrors up to it."""

from typing import TYPE_CHECKING

from seawall.cli.output import warn

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView


def spread(site: "Site", view: "LogView") -> dict[str, str]:
    """Mirror name → why it is behind. The coordination store has the entry already, so a mirror that does not answer is no failure."""
    from seawall.verify.mirror_proofs import spread as bring

    site.remember(view)
    behind = bring(site.coordination.store, view, site.mirrors(view.run))
    for name, why in behind.items():
        warn(f"the mirror in {name} is behind: {why}. `seawall log mirror {view.run}` tries again")
    return behind
