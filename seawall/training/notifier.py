"""Word to Airflow that a checkpoint is there. Training never waits for it and never dies of it."""

import logging
import random
import threading
import time
from pathlib import Path

from seawall.errors import CorruptError, SeawallError
from seawall.training.airflow_events import AirflowEvents, AirflowRefusedError
from seawall.training.committed import Committed
from seawall.training.spool import Spool

_log = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds between tries, doubled each time. A minute is little beside the time between two checkpoints."""


class Notifier:
    """Give it to :class:`~seawall.training.checkpointer.Checkpointer` as ``on_commit``; its events hold run, step, path and epoch.

    An event is on disk before anything is sent, and is removed after Airflow took it: a kill between the two sends it twice, which
    is harmless, because a sync of a checkpoint that is there does nothing. Events go out oldest first, those of earlier processes
    included. Lost altogether, an event costs time: the hourly sync finds the checkpoint.
    """

    def __init__(
        self,
        events: AirflowEvents,
        run: str,
        spool: Path,
        *,
        limit: int = 1000,
        first_wait: float = FIRST_WAIT,
        longest_wait: float = LONGEST_WAIT,
    ) -> None:
        """``spool`` is a folder of its own, on a disk that outlives the process. Starts its thread."""
        self._events = events
        self._run = run
        self._spool = Spool(spool, limit)
        self._first_wait, self._longest_wait = first_wait, longest_wait
        self._wake = threading.Condition()
        self._added = 0
        self._stop = False
        self._failing = False
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._deliver, name="seawall-notifier", daemon=True)
        self._thread.start()

    def __call__(self, committed: Committed) -> None:
        """Keep the event and return. Never raises for a disk that is full: then this event is lost, and logged."""
        event = {"run": self._run, "step": committed.step, "path": str(committed.path), "epoch": committed.epoch}
        try:
            dropped = self._spool.add(event)
        except OSError as error:
            _log.warning("the event of step %d cannot be kept, the next scheduled sync will find it: %s", committed.step, error)
            return
        if dropped:
            _log.warning("Airflow took nothing for so long that %d of the oldest events were dropped", dropped)
        with self._wake:
            self._added += 1
            self._idle.clear()
            self._wake.notify()

    @property
    def waiting(self) -> int:
        """Events that are not delivered yet."""
        return len(self._spool.waiting())

    def close(self, timeout: float = 5.0) -> None:
        """Give what waits up to ``timeout`` seconds to go out, then stop. The rest stays in the spool for the next process."""
        self._idle.wait(timeout)
        with self._wake:
            self._stop = True
            self._wake.notify()
        # Not joined for longer: a request that hangs is left to its daemon thread.
        self._thread.join(timeout=0.1)

    def _deliver(self) -> None:
        wait = self._first_wait
        while not self._stop:
            with self._wake:
                seen = self._added
            done = self._deliver_all()
            pause, wait = wait, self._first_wait if done else min(2 * wait, self._longest_wait)
            with self._wake:
                if self._added != seen or self._stop:
                    continue
                if done:
                    self._idle.set()
                # Spread, so that a hundred runs do not come back to a restarted Airflow in one instant. With nothing to send only
                # other processes' leftovers could come, which is no reason to look often.
                self._wake.wait(self._longest_wait if done else pause * random.uniform(0.5, 1.0))

    def _deliver_all(self) -> bool:
        """Whether nothing waits any more."""
        try:
            for path in self._spool.waiting():
                if self._stop:
                    return False
                self._deliver_one(path)
            self._failing = False
            return True
        except Exception as error:  # noqa: BLE001 -- the boundary to training, which goes on whatever Airflow or the disk does
            if not self._failing:
                what = str(error) if isinstance(error, SeawallError) else type(error).__name__
                _log.warning("Airflow was not told about every checkpoint yet; it is tried again: %s", what)
            self._failing = True
            return False

    def _deliver_one(self, path: Path) -> None:
        try:
            event = self._spool.read(path)
            if event is not None:
                began = time.monotonic()
                self._events.create(event)
                _log.debug("Airflow was told about step %s in %.2f s", event.get("step"), time.monotonic() - began)
        except (AirflowRefusedError, CorruptError) as error:
            _log.error("an event is set aside, in %s: %s", self._spool.folder, error)
            self._spool.set_aside(path)
            return
        self._spool.remove(path)
