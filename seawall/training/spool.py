"""Events that wait on disk until they are delivered: one file an event, oldest first, never more than a bound."""

import contextlib
import itertools
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from seawall.errors import CorruptError
from seawall.training.mark import sync_folder

_EVENT = re.compile(r"\d{20}-\d+-\d{6}\.json")
REFUSED = "refused"
"""Folder of events that can never be delivered, for a person to look at. It has the same bound."""
MAX_EVENT = 1 << 20


class Spool:
    """A folder of events. Several processes may use one: at worst an event is delivered twice."""

    def __init__(self, folder: Path, limit: int = 1000) -> None:
        """``limit`` is in events: a thousand saves without Airflow are weeks, and the next sync finds what was dropped anyway."""
        self.folder = folder
        self._limit = limit
        self._numbers = itertools.count()

    def add(self, event: Mapping[str, object]) -> int:
        """Keep an event; durable when this returns. Gives the number of oldest ones dropped to stay within the bound."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # By the clock, so that the order outlives the process; a clock that was set back costs the order and nothing else.
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(self._numbers):06d}.json"
        fresh = self.folder / f".{name}"
        with fresh.open("w") as file:
            json.dump(event, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(fresh, self.folder / name)
        sync_folder(self.folder)
        return self._drop_oldest(self.folder)

    def waiting(self) -> list[Path]:
        """The events that are not delivered yet, oldest first."""
        return _events(self.folder)

    def read(self, path: Path) -> dict[str, object] | None:
        """An event; None when another process delivered it meanwhile. :class:`CorruptError` for one that cannot be read."""
        try:
            with path.open("rb") as file:
                event = json.loads(file.read(MAX_EVENT))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise CorruptError("a spooled event cannot be read", where=str(path), why=str(error)) from None
        if not isinstance(event, dict):
            raise CorruptError("a spooled event cannot be read", where=str(path), why="it is no JSON object")
        return event

    def remove(self, path: Path) -> None:
        """An event was delivered."""
        path.unlink(missing_ok=True)

    def set_aside(self, path: Path) -> None:
        """An event can never be delivered; without this it would hold up all that come after it."""
        aside = self.folder / REFUSED
        aside.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, aside / path.name)
        self._drop_oldest(aside)

    def _drop_oldest(self, folder: Path) -> int:
        surplus = _events(folder)[: -self._limit]
        for path in surplus:
            path.unlink(missing_ok=True)
        return len(surplus)


def _events(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if _EVENT.fullmatch(path.name))
    except FileNotFoundError:
        return []
