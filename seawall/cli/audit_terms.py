"""What a run's audits are judged by, from its configuration. For ``seawall audit`` and for its operator."""

from collections.abc import Callable

from seawall.audit.terms import Terms
from seawall.cli.site import Site
from seawall.errors import StoreError
from seawall.verify.levels import Level


def audit_terms(site: Site, run: str, passed_over: Callable[[str, StoreError], None]) -> tuple[Terms, dict[str, str]]:
    """Terms as they are configured now, and store id → name.

    A store that does not tell its id is left out, with a call of ``passed_over``: a lost zone must not stop the audits. Its copies are in
    the report as far as anything was ever proved about them.
    """
    settings = site.run(run)
    names: dict[str, str] = {}
    for name in settings.copies:
        try:
            names[site.place(name).id] = name
        except StoreError as error:
            passed_over(name, error)
    media = {store: site.config.stores[name].medium for store, name in names.items()}
    required = Level.parse(settings.required_level)
    return Terms(required=required, ages=site.config.verify.policy(media), stores=tuple(sorted(names))), names
