"""One sealed object to several places in flight: the first place must take it, the others are told of as behind when they fail.

The first place finishes first. So a later place never holds an object that the first one lacks, and the bytes that the
first one holds are the sealing's.
"""

import threading
from collections.abc import Sequence

from seawall.errors import StoreError
from seawall.protect.place import Place
from seawall.stores.base import Stored, Upload
from seawall.vault.seal import Part


class Behind:
    """Places that failed during a batch, with the first reason; they are filled by a copy later. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reasons: dict[str, StoreError] = {}

    def add(self, place: Place, error: StoreError) -> None:
        with self._lock:
            self.reasons.setdefault(place.name, error)

    def holds(self, place: Place) -> bool:
        with self._lock:
            return place.name in self.reasons


def put_everywhere(places: Sequence[Place], key: str, data: memoryview | bytes, crc64: int, behind: Behind) -> dict[str, Stored]:
    """A whole object in one request a place. Raises :class:`ObjectExistsError` when the first place has it already."""
    stored = {places[0].name: places[0].store.put(key, data, crc64)}
    for place in places[1:]:
        if not behind.holds(place):
            try:
                stored[place.name] = place.store.put(key, data, crc64)
            except StoreError as error:
                behind.add(place, error)
    return stored


class FannedUpload:
    """A multipart upload to all places at once."""

    def __init__(self, places: Sequence[Place], key: str, behind: Behind) -> None:
        self._behind = behind
        self._first = (places[0], places[0].store.begin(key))
        self._others: list[tuple[Place, Upload]] = []
        for place in places[1:]:
            if not behind.holds(place):
                try:
                    self._others.append((place, place.store.begin(key)))
                except StoreError as error:
                    behind.add(place, error)

    def part(self, part: Part) -> None:
        """Send one part everywhere. Only the first place's failure is raised."""
        self._first[1].part(part.number, part.start, part.data, part.crc64)
        for place, upload in self._others:
            if not self._behind.holds(place):
                try:
                    upload.part(part.number, part.start, part.data, part.crc64)
                except StoreError as error:
                    self._behind.add(place, error)

    def finish(self, crc64: int, size: int) -> dict[str, Stored]:
        """Make the object visible. :class:`ObjectExistsError` when the first place has it already; then nothing is left anywhere."""
        place, upload = self._first
        try:
            stored = {place.name: upload.finish(crc64, size)}
        except StoreError:
            self.abort()
            raise
        for place, upload in self._others:
            try:
                if self._behind.holds(place):
                    upload.abort()
                else:
                    stored[place.name] = upload.finish(crc64, size)
            except StoreError as error:
                self._behind.add(place, error)
                self._forget(upload)
        return stored

    def abort(self) -> None:
        """Leave nothing behind, as far as the places can be reached."""
        for _, upload in [self._first, *self._others]:
            self._forget(upload)

    @staticmethod
    def _forget(upload: Upload) -> None:
        try:
            upload.abort()
        except StoreError:
            # The leftover is found and removed by a later run (Store.leftovers); the failure that led here is the one to report.
            return
