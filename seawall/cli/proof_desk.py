"""Signing what is found while more is being looked for, so that a kill loses a minute's findings at most."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seawall.cli.spread import certified, spread
from seawall.verify.chain_cache import ChainCache
from seawall.verify.proofs import FAILED, Proof

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.vault.signing import SigningKey

SIGN_EVERY_SECONDS = 60.0
"""A large copy is signed when it is done; small ones together, because each signing is an entry that every reader of the log reads."""


class ProofDesk:
    """Takes proofs and signs them into this verifier's chain: a failure at once, others after a minute or when :meth:`sign` is called.

    Without a key it only counts.
    """

    def __init__(self, site: "Site", view: "LogView", key: "SigningKey | None") -> None:
        self._site = site
        self.view = view
        """The run's log as it is after the last signing."""
        self._key = key
        self._cache = ChainCache(site.state)
        self._waiting: list[Proof] = []
        self._since = site.clock.monotonic()
        self.signed = 0
        """Proofs that are signed and in the log."""

    def add(self, proofs: Sequence[Proof]) -> None:
        """Take what one check found."""
        self._waiting += proofs
        waited = self._site.clock.monotonic() - self._since
        if waited >= SIGN_EVERY_SECONDS or any(proof.result == FAILED for proof in proofs):
            self.sign()

    def sign(self) -> None:
        """Sign what is waiting, and bring it to the mirrors."""
        if self._key is not None and self._waiting:
            self.view = certified(self._site, self.view, self._waiting, self._key, self._cache)
            self.signed += len(self._waiting)
            self._waiting = []
            spread(self._site, self.view)
        self._since = self._site.clock.monotonic()
