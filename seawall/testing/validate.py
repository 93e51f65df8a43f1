"""What ``seawall store validate URL`` does: prove a real place before it is trusted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seawall.stores.base import Capabilities, Store
from seawall.stores.capabilities import capabilities_as_json
from seawall.testing.check_report import Check, Report
from seawall.testing.check_store import check_store


@dataclass(frozen=True, slots=True)
class Validation:
    """What the store claims after its probe, and how each claim fared."""

    url: str
    capabilities: Capabilities
    report: Report

    @property
    def ok(self) -> bool:
        """Whether the store keeps its contract."""
        return self.report.ok

    @property
    def may_be_first(self) -> bool:
        """Whether it may hold a first copy or a log.

        A store without create-if-absent is a secondary: it takes one writer, under a lease from a store that has it.
        """
        return self.ok and self.capabilities.conditional_put

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "url": self.url,
            "ok": self.ok,
            "may_be_first": self.may_be_first,
            "capabilities": capabilities_as_json(self.capabilities),
            **self.report.as_json(),
        }


def validate(make_store: Callable[[], Store], *, objects: int = 1100, on_check: Callable[[Check], None] | None = None) -> Validation:
    """Probe the store anew and run :func:`check_store` on it; arguments are those of that function.

    ``make_store`` opens it without known capabilities. Everything happens below one new folder ``seawall-validate-…``, which is removed.
    Raises the store's own error when it cannot be reached or written at all.
    """
    store = make_store()
    try:
        capabilities = store.capabilities
        url = store.url
    finally:
        store.close()
    return Validation(url, capabilities, check_store(make_store, objects=objects, on_check=on_check))
