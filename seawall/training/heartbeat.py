"""The heartbeat of one rank: where training is, and when it last said so, on a health board.

The board is a folder in which the newest overwrites; each rank has one file there, ``<board>/<run>/rank-<rank>.json``. Two times are in
it: ``at``, when training last reported, and ``alive_at``, when the file was written. A process that lives and makes no progress has a
young ``alive_at`` and an old ``at``; whoever judges it needs to tell the two apart (tiny files for hours, Megatron-LM issue 2422).
"""

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from seawall.clock import Clock, SystemClock, utc_text
from seawall.errors import UsageError
from seawall.vault.identity import checked_run

_log = logging.getLogger(__name__)

DEFAULT_EVERY = 5.0
"""Seconds between two writes. 10,000 ranks then make 2,000 small writes a second, which a parallel file system takes."""


class Heartbeat:
    """Reports are kept in memory and written by a thread of their own, so a board that hangs (NFS) holds nothing up.

    Nothing that goes wrong with the board is raised into training; it is logged once until it works again.
    """

    def __init__(
        self, board: str | Path, run: str, *, rank: int = 0, epoch: int = 0, every: float = DEFAULT_EVERY, clock: Clock | None = None
    ) -> None:
        """``board`` is a folder or a ``file://`` url. Writes at once, then every ``every`` seconds. :class:`UsageError` for other urls."""
        self.path = board_folder(board) / checked_run(run) / f"rank-{rank:05d}.json"
        self._every = every
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._failing = False
        self._reported: tuple[int, float] | None = None
        self._said: dict[str, object] = {
            "run": run,
            "rank": rank,
            "epoch": epoch,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "phase": "starting",
            "step": None,
            "loss": None,
            "gradient_norm": None,
            "step_seconds": None,
            "at": utc_text(self._clock.now()),
        }
        self._thread = threading.Thread(target=self._beat, name="seawall-heartbeat", daemon=True)
        self._thread.start()

    def report(self, step: int, *, loss: float | None = None, gradient_norm: float | None = None) -> None:
        """A step is done. Costs two looks at the clock; the time of a step is measured from one report to the next."""
        now = self._clock.monotonic()
        seconds = None
        if self._reported is not None and step > self._reported[0]:
            seconds = (now - self._reported[1]) / (step - self._reported[0])
        self._reported = (step, now)
        # Text, because JSON has neither nan nor inf, and a run that diverges must still be read.
        self._set(
            step=step,
            loss=None if loss is None else repr(float(loss)),
            gradient_norm=None if gradient_norm is None else repr(float(gradient_norm)),
            step_seconds=None if seconds is None else round(seconds, 6),
            phase="training",
        )

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """What training does meanwhile: ``loading``, ``saving``, ``evaluating``. Written soon, and the phase before it comes back after."""
        with self._lock:
            before = self._said["phase"]
        self._set(phase=name)
        self._wake.set()
        try:
            yield
        finally:
            self._reported = None  # The next step's time would contain this phase.
            self._set(phase=before)

    def close(self) -> None:
        """Say that training ended, and stop. Waits a second at most."""
        self._set(phase="ended")
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout=1.0)

    def _set(self, **said: object) -> None:
        at = utc_text(self._clock.now())
        with self._lock:
            self._said.update(said, at=at)

    def _beat(self) -> None:
        last = float("-inf")
        while True:
            ending = self._stop.is_set()
            self._wake.clear()
            try:
                self._write()
                self._failing = False
            except Exception as error:  # noqa: BLE001 -- the boundary to training, which goes on whatever the board does
                if not self._failing:
                    _log.warning("the heartbeat cannot be written to %s: %s", self.path, error)
                self._failing = True
            if ending:
                return
            # A wake-up may shorten the wait for a new phase, but never below a tenth: that bounds the writes.
            last = time.monotonic()
            self._wake.wait(self._every)
            if not self._stop.is_set():
                self._stop.wait(max(0.0, last + self._every / 10 - time.monotonic()))

    def _write(self) -> None:
        with self._lock:
            document = {**self._said, "alive_at": utc_text(self._clock.now())}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        # Not made durable: after a power cut nobody trains, and the next beat overwrites it.
        fresh.write_text(json.dumps(document) + "\n")
        fresh.replace(self.path)


def board_folder(board: str | Path) -> Path:
    """The folder of a health board: a path, or the ``[health] board`` of seawall.toml."""
    parts = urlsplit(str(board))
    if not parts.scheme:
        return Path(board)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise UsageError("a health board is a folder", where=str(board), do="write a path or file:///absolute/path")
    return Path(unquote(parts.path))
