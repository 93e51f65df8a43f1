"""A store of a run as the integrity matrix sees it: what the configuration says of it."""

from typing import TYPE_CHECKING

from seawall.verify.matrix_facts import StoreFacts

if TYPE_CHECKING:
    from seawall.cli.site import Site


def store_facts(site: "Site", run: str, name: str, store_id: str) -> StoreFacts:
    """The facts of store ``name``, whose id is known."""
    settings = site.config.stores[name]
    return StoreFacts(
        store_id,
        name,
        settings.medium,
        settings.fault_domain,
        settings.zone,
        lock_required=settings.lock_days is not None,
        archive=name == site.run(run).archive,
    )
