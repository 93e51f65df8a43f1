"""The conformance kit finds stores that break their contract: each control here must fail, in the check that is meant for it."""

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from seawall.errors import NoSuchObjectError, ObjectExistsError, SeawallError, StoreUnavailableError
from seawall.stores.base import Buffer, Capabilities, Leftover, Store, Stored, Upload
from seawall.stores.file import FileStore
from seawall.stores.wrapper import WrappedUpload, Wrapper
from seawall.testing.check_report import Report
from seawall.testing.check_store import check_store
from seawall.testing.faulty import FaultyStore
from seawall.testing.validate import validate

_LOOKED = threading.Barrier(16)


class Overwrites(Wrapper):
    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        try:
            return self.inner.put(key, data, crc64)
        except ObjectExistsError:
            return self.inner.replace(key, data, self.inner.head(key).version, crc64)


class LooksBeforeItWrites(Overwrites):
    """Create-if-absent as a look and a write: right for one writer, wrong for two."""

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        try:
            self.inner.head(key)
        except NoSuchObjectError:
            if "race" in key:
                # Long enough for every racer to have looked.
                _LOOKED.wait(30)
            return super().put(key, data, crc64)
        raise ObjectExistsError("taken")


class ListsInAnyOrder(Wrapper):
    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        return iter(sorted(self.inner.list(prefix, after), key=lambda found: found.key[::-1]))


class ListsTheStart(Wrapper):
    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        return (found for found in self.inner.list(prefix) if found.key >= after)


class ListsOnePage(Wrapper):
    def list(self, prefix: str, after: str = "") -> Iterator[Stored]:
        for number, found in enumerate(self.inner.list(prefix, after)):
            if number < 20:
                yield found


class RangesOffByOne(Wrapper):
    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        return self.inner.get(key, start, None if length is None else length + 1, version)


class AcceptsAnyKey(Wrapper):
    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        return self.inner.put("/".join(part for part in key.split("/") if part not in ("", ".", "..")) or "x", data, crc64)


class ClaimsChecksums(Wrapper):
    @property
    def capabilities(self) -> Capabilities:
        return dataclasses.replace(self.inner.capabilities, full_object_crc=True)


class ClaimsVersions(Wrapper):
    @property
    def capabilities(self) -> Capabilities:
        return dataclasses.replace(self.inner.capabilities, versions=True)


class ClaimsLocks(Wrapper):
    @property
    def capabilities(self) -> Capabilities:
        return dataclasses.replace(self.inner.capabilities, object_lock=True)

    def head(self, key: str, version: str | None = None) -> Stored:
        found = self.inner.head(key, version)
        return dataclasses.replace(found, locked_until=datetime.max.replace(tzinfo=UTC)) if "locked" in key else found


class ClockOff(Wrapper):
    @property
    def capabilities(self) -> Capabilities:
        return dataclasses.replace(self.inner.capabilities, server_time=True)

    def server_time(self) -> datetime | None:
        moment = self.inner.server_time()
        return moment and moment + timedelta(minutes=4)


class ReplacesAnything(Wrapper):
    def replace(self, key: str, data: Buffer | Sequence[Buffer], damaged_version: str | None, crc64: int | None = None) -> Stored:
        return self.inner.replace(key, data, self.inner.head(key).version, crc64)


class DeletesAnything(Wrapper):
    def delete(self, key: str, version: str | None = None) -> None:
        self.inner.delete(key)


class HidesLeftovers(Wrapper):
    def leftovers(self, prefix: str = "") -> Iterator[Leftover]:
        return iter(())


class KeepsAborted(Wrapper):
    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        class Kept(WrappedUpload):
            def abort(self) -> None:
                """Forget to."""

        return Kept(self, key, self.inner.begin(key))


class ShowsHalves(Wrapper):
    """Makes an object visible with its first part."""

    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        store = self.inner

        class Hasty(WrappedUpload):
            def part(self, number: int, start: int, data: Buffer, crc64: int) -> None:
                if number == 1 and key.endswith("large"):
                    try:
                        store.put(key, data)
                    except ObjectExistsError:
                        return
                self.inner.part(number, start, data, crc64)

        return Hasty(self, key, store.begin(key))


class IgnoresPartBorders(Wrapper):
    def begin(self, key: str, *, lock_until: datetime | None = None) -> Upload:
        class Careless(WrappedUpload):
            def finish(self, crc64: int, size: int) -> Stored:
                self.inner.abort()
                return self.wrapper.inner.put(self.key, bytes(size))

        return Careless(self, key, self.inner.begin(key))


class JoinsBackwards(Wrapper):
    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        return self.inner.put(key, list(reversed(data)) if isinstance(data, list) else data)


class FindsEverything(Wrapper):
    def head(self, key: str, version: str | None = None) -> Stored:
        try:
            return self.inner.head(key, version)
        except NoSuchObjectError:
            return Stored(key, 0)


class RefusesNothing(Wrapper):
    """Drops writes of empty objects and says that they are there."""

    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        return self.inner.put(key, data, crc64) if data else Stored(key, 0)


class MixesNames(Wrapper):
    def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
        return self.inner.put(key.replace("%25", "%"), data, crc64)


CONTROLS: list[tuple[type[Wrapper], str]] = [
    (Overwrites, "second_create"),
    (ListsInAnyOrder, "listing"),
    (ListsTheStart, "listing"),
    (ListsOnePage, "many_objects"),
    (RangesOffByOne, "ranges"),
    (AcceptsAnyKey, "bad_keys"),
    (ClaimsChecksums, "reported_checksum"),
    (ClaimsVersions, "old_versions"),
    (ClaimsLocks, "lock_refuses"),
    (ClockOff, "clock"),
    (ReplacesAnything, "replacing"),
    (DeletesAnything, "deleting"),
    (HidesLeftovers, "leftovers"),
    (KeepsAborted, "aborted_upload"),
    (ShowsHalves, "large_upload"),
    (IgnoresPartBorders, "wrong_parts"),
    (JoinsBackwards, "several_buffers"),
    (FindsEverything, "missing_object"),
    (RefusesNothing, "empty_object"),
    (MixesNames, "odd_names"),
]


def _report(tmp_path: Path, wrap: Callable[[Store], Store], objects: int = 40) -> Report:
    root = (tmp_path / "store").as_uri()
    FileStore(root, create=True)
    return check_store(lambda: wrap(FileStore(root)), objects=objects)


@pytest.mark.parametrize(("broken", "check"), CONTROLS, ids=lambda value: getattr(value, "__name__", value))
def test_a_store_that_breaks_its_contract_is_found(tmp_path: Path, broken: type[Wrapper], check: str) -> None:
    report = _report(tmp_path, broken)
    assert not report.ok
    assert report.outcome(check) == "failed", [found.name for found in report.failed]


def test_a_create_that_looks_first_loses_the_race(tmp_path: Path) -> None:
    report = _report(tmp_path, LooksBeforeItWrites)
    assert report.outcome("second_create") == "passed"
    assert report.outcome("concurrent_create") == "failed"


def test_a_checksum_that_is_not_checked_is_found(tmp_path: Path) -> None:
    class Ignores(ClaimsChecksums):
        def put(self, key: str, data: Buffer | Sequence[Buffer], crc64: int | None = None, *, lock_until: datetime | None = None) -> Stored:
            return self.inner.put(key, data)

    assert _report(tmp_path, Ignores).outcome("wrong_checksum") == "failed"


def test_a_sound_store_passes_and_nothing_stays(tmp_path: Path) -> None:
    seen: list[str] = []
    root = tmp_path / "store"
    FileStore(root.as_uri(), create=True)
    validation = validate(lambda: FileStore(root.as_uri()), objects=40, on_check=lambda check: seen.append(check.name))
    assert validation.ok and validation.may_be_first, validation.report.failed
    assert seen == [check.name for check in validation.report.checks] and seen[-1] == "nothing_left"
    assert [path for path in root.rglob("*") if path.is_file()] == []
    facts: dict[str, Any] = validation.as_json()
    assert facts["ok"] and facts["capabilities"]["conditional_put"] and facts["checks"][0]["name"] == "put_and_get"


def test_what_stays_behind_is_a_failure(tmp_path: Path) -> None:
    class Keeps(Wrapper):
        def delete(self, key: str, version: str | None = None) -> None:
            """Forget to."""

    report = _report(tmp_path, Keeps, objects=0)
    assert report.outcome("nothing_left") == "failed" and report.outcome("many_objects") == "not attainable"


def test_a_store_that_cannot_be_reached_says_so_itself(tmp_path: Path) -> None:
    with pytest.raises(SeawallError, match="away"):
        _report(tmp_path, lambda store: FaultyStore(store).fail("capabilities", StoreUnavailableError("away"), times=None))
