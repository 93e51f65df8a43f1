"""Retry, throttle, count and fail, around a real file store."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seawall.errors import ObjectExistsError, StoreAmbiguousError, StoreRefusedError, StoreUnavailableError, UsageError
from seawall.kernels.crc64 import crc64
from seawall.stores.file import FileStore
from seawall.stores.locate import open_store
from seawall.stores.retry import RetryStore
from seawall.stores.s3 import S3Store
from seawall.stores.throttle import ThrottleStore, TokenBucket
from seawall.stores.wrapper import Wrapper
from seawall.testing.check_store import check_store
from seawall.testing.counting import CountingStore
from seawall.testing.fake_clock import FakeClock
from seawall.testing.faulty import FaultyStore

GONE = StoreUnavailableError("gone for a moment")
MAYBE = StoreAmbiguousError("who knows")


@pytest.fixture
def counted(tmp_path: Path) -> CountingStore:
    return CountingStore(FileStore((tmp_path / "store").as_uri(), create=True))


@pytest.fixture
def faulty(counted: CountingStore) -> FaultyStore:
    return FaultyStore(counted)


def _retrying(store: FaultyStore, attempts: int = 4) -> RetryStore:
    return RetryStore(store, attempts=attempts, first_wait=0.001, longest_wait=0.002)


def test_wrappers_change_nothing_else(tmp_path: Path) -> None:
    root = (tmp_path / "store").as_uri()
    FileStore(root, create=True)
    clock = FakeClock()
    report = check_store(
        lambda: FaultyStore(ThrottleStore(RetryStore(CountingStore(Wrapper(FileStore(root)))), 8_000_000_000, clock)), objects=50
    )
    assert report.ok, report.failed


CALLS: dict[str, Callable[[RetryStore], object]] = {
    "put": lambda store: store.put("new", b"x"),
    "begin": lambda store: store.begin("new").abort(),
    "get": lambda store: store.get("there"),
    "read_into": lambda store: store.read_into("there", 0, memoryview(bytearray(1))),
    "head": lambda store: store.head("there"),
    "list": lambda store: list(store.list("")),
    "list_folders": lambda store: list(store.list_folders("")),
    "replace": lambda store: store.replace("there", b"y", store.head("there").version),
    "delete": lambda store: store.delete("there"),
    "server_time": lambda store: store.server_time(),
    "leftovers": lambda store: list(store.leftovers()),
    "capabilities": lambda store: store.capabilities,
}


@pytest.mark.parametrize("method", CALLS)
def test_passing_failures_are_repeated_and_others_are_not(faulty: FaultyStore, counted: CountingStore, method: str) -> None:
    counted.put("there", b"x")
    store = _retrying(faulty)
    faulty.fail(method, GONE, times=3)
    CALLS[method](store)
    assert faulty.unused == 0
    for error in (MAYBE, StoreRefusedError("no"), ObjectExistsError("taken")):
        faulty.fail(method, error)
        before = counted.calls[method]
        with pytest.raises(type(error)):
            CALLS[method](store)
        assert counted.calls[method] == before and faulty.unused == 0


def test_it_gives_up(faulty: FaultyStore) -> None:
    calls: list[str] = []
    faulty.before("head", calls.append, times=None).fail("get", GONE, times=None)
    faulty.before("get", calls.append, times=None)
    with pytest.raises(StoreUnavailableError):
        _retrying(faulty, attempts=3).get("a")
    assert faulty.unused == 0


def test_an_upload_is_retried_part_by_part(faulty: FaultyStore, counted: CountingStore) -> None:
    faulty.fail("part", GONE, times=2).fail("finish", GONE)
    upload = _retrying(faulty).begin("a")
    upload.part(1, 0, b"x", crc64(b"x"))
    upload.finish(crc64(b"x"), 1)
    assert counted.calls["part"] == 1 and counted.calls["finish"] == 1 and faulty.unused == 0


def test_a_finish_that_may_have_worked_is_not_repeated(faulty: FaultyStore, counted: CountingStore) -> None:
    faulty.after("finish", MAYBE)
    upload = _retrying(faulty).begin("a")
    upload.part(1, 0, b"x", crc64(b"x"))
    with pytest.raises(StoreAmbiguousError):
        upload.finish(crc64(b"x"), 1)
    assert counted.calls["finish"] == 1 and counted.get("a") == b"x"


def test_a_list_goes_on_where_it_broke(counted: CountingStore) -> None:
    for number in range(10):
        counted.put(f"{number}", b"")
    starts: list[str] = []

    class Breaks(Wrapper):
        def list(self, prefix: str, after: str = ""):  # type: ignore[no-untyped-def]  # as in Wrapper
            starts.append(after)
            for number, found in enumerate(self.inner.list(prefix, after)):
                if number == 3 and len(starts) < 4:
                    raise GONE
                yield found

    found = [stored.key for stored in RetryStore(Breaks(counted), first_wait=0.001, longest_wait=0.002).list("")]
    assert found == [str(number) for number in range(10)]
    assert starts == ["", "2", "5", "8"]


def test_a_faulty_store_hits_the_key_and_the_number_of_calls_it_was_told(faulty: FaultyStore, counted: CountingStore) -> None:
    seen: list[str] = []
    faulty.fail("put", GONE, key="b").after("put", seen.append, times=2).before("put", lambda key: seen.append(f"before {key}"))
    faulty.put("a", b"")
    with pytest.raises(StoreUnavailableError):
        faulty.put("b", b"")
    faulty.put("b", b"")
    faulty.put("c", b"")
    assert seen == ["before a", "a", "b"] and faulty.unused == 0
    assert counted.calls["put"] == 3


def test_counting_is_exact_from_many_threads(counted: CountingStore) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: counted.put(f"{number}", [b"ab", b"c"]), range(64)))
        list(threads.map(lambda number: counted.get(f"{number}"), range(64)))
    assert (counted.total, counted.bytes_up, counted.bytes_down) == (128, 192, 192)


def test_a_throttle_holds_the_rate_in_each_direction(counted: CountingStore) -> None:
    clock = FakeClock()
    store = ThrottleStore(counted, 8_000_000, clock)
    data = bytes(1_000_000)
    for number in range(10):
        store.put(f"{number}", data)
    # Ten megabytes at one megabyte a second, the first of them saved up.
    assert clock.monotonic() == pytest.approx(9.0)
    for number in range(10):
        store.get(f"{number}")
    # The second of reading that was saved up meanwhile comes on top of what writing took.
    assert clock.monotonic() == pytest.approx(18.0)
    upload = store.begin("big")
    upload.part(1, 0, data, crc64(data))
    upload.part(2, 1_000_000, data, crc64(data))
    assert clock.monotonic() == pytest.approx(19.0)
    assert store.read_into("0", 0, memoryview(bytearray(500_000))) == 500_000


def test_a_throttle_is_shared_by_all_threads() -> None:
    class Frozen(FakeClock):
        """Notes what it is asked to wait, and stands still."""

        def __init__(self) -> None:
            super().__init__()
            self.waits: list[float] = []
            self.lock = threading.Lock()

        def sleep(self, seconds: float) -> None:
            with self.lock:
                self.waits.append(seconds)

    clock = Frozen()
    bucket = TokenBucket(8_000, clock)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: bucket.take(1000), range(11)))
    assert sorted(clock.waits) == pytest.approx([float(second) for second in range(1, 11)])


def test_a_throttle_of_nothing_is_refused(counted: CountingStore) -> None:
    with pytest.raises(UsageError):
        ThrottleStore(counted, 0, FakeClock())


def test_a_url_opens_the_store_that_it_names(tmp_path: Path) -> None:
    store = open_store((tmp_path / "store").as_uri(), create=True, bandwidth_bits_per_second=1 << 40)
    store.put("a", b"x")
    assert isinstance(store, RetryStore) and isinstance(store.inner, ThrottleStore)
    bare = open_store("s3://bucket/prefix")
    assert isinstance(bare, RetryStore) and isinstance(bare.inner, S3Store)
    for url in ("tape://library", "bucket/prefix", "", "http://host/bucket"):
        with pytest.raises(UsageError, match="names no store"):
            open_store(url)
