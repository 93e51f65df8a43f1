"""From seawall.toml to what retention and the score look at: for the commands, and for Airflow's operators."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seawall.errors import ConfigurationError, KeyMissingError, StoreError
from seawall.protect.retention_facts import Site as StoreSite
from seawall.protect.retention_gather import Desk

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.protect.place import Place


def retention_desk(site: "Site", run: str) -> Desk:
    """The run as this host can see it. Stores that do not answer are named in ``absent``; the coordination store must."""
    settings = site.run(run)
    places, absent = [], {}
    for name in settings.copies:
        try:
            places.append(site.place(name))
        except StoreError as error:
            absent[name] = str(error)
    stores = {place.id: site.config.stores[place.name] for place in places}
    return Desk(
        run,
        site.coordination,
        tuple(places),
        tuple(StoreSite(p.id, p.name, stores[p.id].medium, stores[p.id].fault_domain, stores[p.id].zone) for p in places),
        lambda: site.view(run),
        site.config.retention,
        site.config.verify.policy({store: kept.medium for store, kept in stores.items()}),
        site.clock,
        absent,
        live_keys(site),
        lambda view: _losses(site, view, places),
    )


def _losses(site: "Site", view: "LogView", places: "Sequence[Place]") -> dict[str, float]:
    """What training said was the loss, on a host with a key that opens checkpoints; nothing on others."""
    from seawall.protect.recorded_loss import recorded_losses

    try:
        unwrappers = site.unwrappers()
    except KeyMissingError:
        return {}
    return recorded_losses(view, places, unwrappers, site.state) if unwrappers else {}


def live_keys(site: "Site") -> frozenset[str] | None:
    """``kind id`` of the keys that this host knows to exist; None where it holds none, and cannot tell."""
    try:
        found = [*site.recipients(), *site.unwrappers()]
    except (KeyMissingError, ConfigurationError):
        return None
    return frozenset(f"{key.kind} {key.id}" for key in found)
