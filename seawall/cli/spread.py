"""After a command extended a run's log: remember it on this host, and bring the mirrors up to it."""

from typing import TYPE_CHECKING

from seawall.cli.output import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.vault.signing import SigningKey
    from seawall.verify.chain_cache import ChainCache
    from seawall.verify.proofs import Proof


def spread(site: "Site", view: "LogView") -> dict[str, str]:
    """Mirror name → why it is behind. The coordination store has the entry already, so a mirror that does not answer is no failure."""
    from seawall.verify.mirror_proofs import spread as bring

    site.remember(view)
    behind = bring(site.coordination.store, view, site.mirrors(view.run))
    for name, why in behind.items():
        warn(f"the mirror in {name} is behind: {why}. `seawall log mirror {view.run}` tries again")
    return behind


def certified(site: "Site", view: "LogView", proofs: "Sequence[Proof]", key: "SigningKey", cache: "ChainCache") -> "LogView":
    """Sign proofs into this verifier's chain. Earlier ones that are missing are brought back from a mirror first, if one has them."""
    from seawall.errors import FreshnessError
    from seawall.verify.certify import certify
    from seawall.verify.mirror_proofs import bring_back

    store = site.coordination.store
    try:
        return certify(store, view, proofs, key, site.clock, cache)
    except FreshnessError:
        back = bring_back(store, view, site.mirrors(view.run))
        if not back.batches:
            raise
        warn(f"{back.batches} batches of proofs were missing and came back from a mirror")
        return certify(store, view, proofs, key, site.clock, cache)
