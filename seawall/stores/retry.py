"""Repeat what failed for a passing reason, and nothing else."""

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from seawall.errors import StoreError
from seawall.stores.base import Leftover, Store, Stored
from seawall.stores.wrapper import Result, Wrapper

if TYPE_CHECKING:
    import stamina

# Retries are told to whoever configured logging, instead of to stderr by Python's last resort.
logging.getLogger("stamina").addHandler(logging.NullHandler())


def is_transient(error: Exception) -> bool:
    """Only these are repeated. A store calls the loss of an answer to a create *ambiguous*, so no create is ever sent twice on a guess."""
    return isinstance(error, StoreError) and error.outcome == "transient"


class RetryStore(Wrapper):
    """Waits grow from ``first_wait`` to ``longest_wait`` seconds, with jitter so that many workers do not come back at once.

    The defaults outlive the restart of a server (SeaweedFS: 2 to 13 s) and a throttled minute, and give up before a task's time-out.
    """

    def __init__(
        self, inner: Store, *, attempts: int = 8, seconds: float = 120.0, first_wait: float = 0.2, longest_wait: float = 15.0
    ) -> None:
        super().__init__(inner)
        self._attempts = attempts
        self._seconds = seconds
        self._first_wait = first_wait
        self._longest_wait = longest_wait

    def around(self, method: str, key: str, action: Callable[[], Result]) -> Result:
        # The first try stands outside of stamina: importing it is a tenth of a small command's time, and a context for each
        # key of a listing would be most of the listing.
        try:
            return action()
        except StoreError as error:
            if not is_transient(error):
                raise
            failed: StoreError | None = error
        for attempt in self._tries():
            with attempt:
                if failed is not None:
                    # The first attempt is the one that failed already; stamina waits after it.
                    first, failed = failed, None
                    raise first
                return action()
        raise AssertionError("unreachable: the last attempt returns or raises")

    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        """Goes on behind the last key that came, instead of from the start."""
        last = after
        objects: Iterator[Stored] | None = None

        def following() -> Stored | None:
            nonlocal objects
            if objects is None:
                objects = self.inner.list(prefix, last)
            try:
                return next(objects, None)
            except StoreError:
                objects = None
                raise

        while (found := self.around("list", prefix, following)) is not None:
            last = found.key
            yield found

    def list_folders(self, prefix: str) -> Iterator[str]:
        return iter(self.around("list_folders", prefix, lambda: tuple(self.inner.list_folders(prefix))))

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        return iter(self.around("leftovers", prefix, lambda: tuple(self.inner.leftovers(prefix))))

    def _tries(self) -> "Iterator[stamina.Attempt]":
        import stamina
        from stamina.instrumentation import LoggingOnRetryHook, set_on_retry_hooks

        # By itself stamina tells structlog where that is installed (Airflow brings it), which writes to standard output until
        # it is configured: in front of what `--json` prints there.
        set_on_retry_hooks([LoggingOnRetryHook])
        return iter(
            stamina.retry_context(
                on=is_transient,
                attempts=self._attempts,
                timeout=self._seconds,
                wait_initial=self._first_wait,
                wait_max=self._longest_wait,
                wait_jitter=self._first_wait,
            )
        )
