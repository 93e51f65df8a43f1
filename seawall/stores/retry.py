"""Repeat what failed for a passing reason, and nothing else."""

import logging
from collections.abc import Callable, Iterator

import stamina
from stamina.instrumentation import LoggingOnRetryHook, set_on_retry_hooks

from seawall.errors import StoreError
from seawall.stores.base import Leftover, Store, Stored
from seawall.stores.wrapper import Result, Wrapper

# Retries are told to whoever configured logging, instead of to stderr by Python's last resort. By itself stamina tells structlog where that
# is installed (Airflow brings it), which writes to standard output until it is configured: in front of what `--json` prints there.
logging.getLogger("stamina").addHandler(logging.NullHandler())
set_on_retry_hooks([LoggingOnRetryHook])


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
        for attempt in self._tries():
            with attempt:
                return action()
        raise AssertionError("unreachable: the last attempt returns or raises")

    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        """Goes on behind the last key that came, instead of from the start."""
        last = after
        objects: Iterator[Stored] | None = None
        while True:
            for attempt in self._tries():
                with attempt:
                    if objects is None or attempt.num > 1:
                        objects = self.inner.list(prefix, last)
                    found = next(objects, None)
            if found is None:
                return
            last = found.key
            yield found

    def list_folders(self, prefix: str) -> Iterator[str]:
        return iter(self.around("list_folders", prefix, lambda: tuple(self.inner.list_folders(prefix))))

    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        return iter(self.around("leftovers", prefix, lambda: tuple(self.inner.leftovers(prefix))))

    def _tries(self) -> Iterator[stamina.Attempt]:
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
