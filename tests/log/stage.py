"""Several writers on one store, one request at a time, in an order and with faults that a test decides.

Each writer runs in its own thread and stops before every request until it is its turn. So a race is a list of numbers:
it can be drawn by hypothesis, shrunk, and played again.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from seawall.errors import ObjectExistsError, StoreAmbiguousError, StoreUnavailableError
from seawall.stores.base import Buffer, Stored
from seawall.testing.memory import MemoryStore

FAULTS = ("none", "before", "after", "late", "refused")
"""What happens to a put: nothing odd; it is lost and times out; it arrives and then times out; it times out and
arrives when somebody else's turn has come and gone; it is lost and the store says to come back later."""


class Stage:
    """The order of requests. ``turns`` are taken modulo the number of writers that wait."""

    def __init__(self, turns: Sequence[int]) -> None:
        self._turns: Iterator[int] = iter(turns)
        self._condition = threading.Condition()
        self._waiting: list[str] = []
        self._allowed: str | None = None
        self._running = 0
        self._names: dict[threading.Thread, str] = {}

    def play(self, actors: dict[str, Callable[[], None]]) -> None:
        """Run the actors to their end. What they raise is their own business: each catches what it expects."""
        failures: list[BaseException] = []

        def act(name: str, actor: Callable[[], None]) -> None:
            self._names[threading.current_thread()] = name
            try:
                actor()
            except BaseException as problem:  # noqa: BLE001  # a thread's end: raised again by play
                failures.append(problem)
            finally:
                with self._condition:
                    self._running -= 1
                    self._condition.notify_all()

        threads = [threading.Thread(target=act, args=item, daemon=True) for item in actors.items()]
        self._running = len(threads)
        for thread in threads:
            thread.start()
        while True:
            with self._condition:
                assert self._condition.wait_for(lambda: self._allowed is None and len(self._waiting) == self._running, timeout=30)
                if self._running == 0:
                    break
                ready = sorted(self._waiting)
                chosen = ready[next(self._turns, 0) % len(ready)]
                self._waiting.remove(chosen)
                self._allowed = chosen
                self._condition.notify_all()
        for thread in threads:
            thread.join(timeout=30)
        if failures:
            raise failures[0]

    def wait_for_turn(self) -> None:
        """Called before every request. Threads that are no actors (a reader's pool) are not held up."""
        name = self._names.get(threading.current_thread())
        if name is None:
            return
        with self._condition:
            self._waiting.append(name)
            self._condition.notify_all()
            assert self._condition.wait_for(lambda: self._allowed == name, timeout=30)
            self._allowed = None
            self._condition.notify_all()


class FaultyStore(MemoryStore):
    """A store whose puts fail as the list says, whose requests wait for their turn, and where a lost request may arrive late."""

    def __init__(self, faults: Sequence[str] = (), stage: Stage | None = None) -> None:
        super().__init__("faulty")
        self.stage = stage
        self._faults: Iterator[str] = iter(faults)
        self._late: list[tuple[str, bytes]] = []

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        self._turn()
        fault = next(self._faults, "none")
        whole = self._joined(key, data, crc64)
        if fault in ("before", "late"):
            if fault == "late":
                self._late.append((key, whole))
            raise StoreAmbiguousError("the connection died", where=key)
        if fault == "refused":
            raise StoreUnavailableError("slow down", where=key)
        stored = super().put(key, data, crc64)
        if fault == "after":
            raise StoreAmbiguousError("the connection died", where=key)
        return stored

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        self._turn()
        found = super().get(key, start, length, version)
        return found

    def arrive(self) -> None:
        """Let every request that is still on its way arrive."""
        while self._late:
            key, whole = self._late.pop(0)
            try:
                self._create(key, whole)
            except ObjectExistsError:
                continue

    def _turn(self) -> None:
        if self.stage is not None:
            self.stage.wait_for_turn()
        # What was on its way arrives after the turn of somebody else, which is when it can do harm.
        if len(self._late) > 1:
            key, whole = self._late.pop(0)
            self.objects.setdefault(key, whole)
