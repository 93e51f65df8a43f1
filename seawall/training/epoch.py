"""Whether the epoch that this process trains in is still open. Read in the background; training never waits for it."""

import logging
import threading
from collections.abc import Callable

from seawall.errors import EpochClosedError, SeawallError
from seawall.log.read import LogView, read_log
from seawall.stores.base import Store
from seawall.vault.signing import PublicKey

_log = logging.getLogger(__name__)

DEFAULT_EVERY = 30.0
"""Seconds. Far below the minutes that a failover takes, and a handful of requests a minute."""


class EpochWatch:
    """The newest epoch that the run's log was seen to have.

    While the log cannot be read, training goes on with what is known: what it saves carries its epoch, and sync refuses marks of
    closed epochs. What is known never goes down.
    """

    def __init__(self, read: Callable[[], int], *, every: float = DEFAULT_EVERY) -> None:
        """``read`` gives the log's epoch and may take its time or raise; :func:`epoch_of` makes one. Starts its thread."""
        self._read = read
        self._every = every
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._first = threading.Event()
        self._known = 0
        self._failing = False
        self._thread = threading.Thread(target=self._watch, name="seawall-epoch", daemon=True)
        self._thread.start()

    @property
    def known(self) -> int:
        """The newest epoch seen; 0 before the log was read."""
        return self._known

    def refresh(self) -> None:
        """Have the log read now. Returns at once."""
        self._wake.set()

    def wait_first(self, timeout: float) -> bool:
        """Wait until the log was read once, for a start that would rather know; False when it was not in time."""
        return self._first.wait(timeout)

    def check(self, epoch: int, where: str = "") -> None:
        """:class:`EpochClosedError` when the log has a newer epoch than ``epoch``."""
        if self._known > epoch:
            raise EpochClosedError(
                "this process trains under a closed epoch",
                where=where,
                why=f"it was started in epoch {epoch}, the run is in epoch {self._known}",
                do="stop it: the run goes on elsewhere, and nothing that is saved here becomes a recovery point",
            )

    def close(self) -> None:
        """Stop reading. A request that is under way is left to its thread."""
        self._stop.set()
        self._wake.set()

    def _watch(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                self._known = max(self._known, self._read())
                self._first.set()
                self._failing = False
            except Exception as error:  # noqa: BLE001 -- the boundary to training, which goes on whatever the log's store does
                if not self._failing:
                    what = str(error) if isinstance(error, SeawallError) else repr(error)
                    _log.warning("the run's log cannot be read; training goes on under what is known (epoch %d): %s", self._known, what)
                self._failing = True
            self._wake.wait(self._every)


def epoch_of(store: Store, run: str, trust_root: PublicKey) -> Callable[[], int]:
    """A reader for :class:`EpochWatch`: the epoch in the verified log of ``run`` in its coordination store.

    An unchanged log costs three requests. Raises the errors of :func:`seawall.log.read.read_log`.
    """
    view: LogView | None = None

    def read() -> int:
        nonlocal view
        view = read_log(store, run, trust_root, view)
        return view.epoch

    return read
