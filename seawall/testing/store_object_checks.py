"""Checks of single objects: writing, reading, listing, removing. Each raises, or returns what a person may want to know."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from seawall.errors import NoSuchObjectError, ObjectExistsError, StoreRefusedError, UsageError
from seawall.stores.base import Buffer
from seawall.testing.check_report import NotAttainableError, expect, expect_error
from seawall.testing.store_bench import StoreBench, body, crc

LOCK_SECONDS = 60
"""Long enough for a slow store to be asked while the lock lasts, short enough to leave nothing behind for a day."""

CLOCK_DRIFT_SECONDS = 180
"""kopia's provider validation allows three minutes too; S3 itself refuses requests beyond fifteen."""


def put_and_get(bench: StoreBench) -> str:
    """put, get and head agree, seen from a second connection"""
    key, data = bench.key("one"), body(300_000)
    stored = bench.one.put(key, data, crc(data))
    expect(stored.key == key and stored.size == len(data), f"put reported {stored}")
    expect(bench.two.get(key) == data, "other bytes came back")
    head = bench.two.head(key)
    expect((head.key, head.size, head.version) == (key, len(data), stored.version), f"head reports {head}, put reported {stored}")
    return f"version {head.version}"


def several_buffers(bench: StoreBench) -> None:
    """an object put together from several buffers"""
    key, data = bench.key("joined"), body(100_000, 1)
    pieces: list[Buffer] = [data[:1], memoryview(data)[1:70_000], b"", bytearray(data[70_000:])]
    bench.one.put(key, pieces, crc(data))
    expect(bench.two.get(key) == data, "the buffers were not joined in order")


def empty_object(bench: StoreBench) -> None:
    """an empty object"""
    key = bench.key("empty")
    bench.one.put(key, b"", 0)
    expect(bench.two.get(key) == b"" and bench.two.head(key).size == 0, "it is not empty")
    expect(bench.two.read_into(key, 0, memoryview(bytearray(8))) == 0, "bytes came out of it")


def odd_names(bench: StoreBench) -> None:
    """names with spaces, signs and other scripts"""
    names = [
        "with space",
        "plus+percent%25",
        "ünïcödé/日本語",
        "émoji 🧪",
        "quote'\"&<>",
        "tilde~(1)[2]{3}",
        "a=b&c;d:e@f,g!h$i",
        "x" * 200,
    ]
    for name in names:
        bench.one.put(bench.key(f"odd/{name}"), name.encode())
    for name in names:
        expect(bench.two.get(bench.key(f"odd/{name}")) == name.encode(), f"{name!r} cannot be read back")
    listed = [found.key for found in bench.two.list(bench.key("odd/"))]
    expect(listed == sorted(bench.key(f"odd/{name}") for name in names), f"listed as {listed}")


def bad_keys(bench: StoreBench) -> None:
    """keys that leave the root or are ambiguous are refused"""
    for key in ("", "/a", "a/", "a//b", "..", "../a", "a/../b", "./a", "a/.", "nul\0", "x" * 1001, "\ud800"):
        expect_error(UsageError, lambda key=key: bench.one.put(key, b"x"), f"put of {key!r:.40}")
        expect_error(UsageError, lambda key=key: bench.one.get(key), f"get of {key!r:.40}")


def ranges(bench: StoreBench) -> None:
    """ranges, also at and beyond the end"""
    key, data = bench.key("ranges"), body(200_000, 2)
    bench.one.put(key, data)
    for start, length in (
        (0, 1),
        (0, 65536),
        (99_999, 50_001),
        (199_999, 1),
        (199_999, 100),
        (200_000, 10),
        (300_000, 10),
        (0, 0),
        (5, None),
    ):
        wanted = data[start:] if length is None else data[start : start + length]
        expect(bench.two.get(key, start, length) == wanted, f"get from {start}, {length} bytes")
        if length is not None:
            buffer = bytearray(length)
            got = bench.two.read_into(key, start, memoryview(buffer))
            expect(got == len(wanted) and bytes(buffer[:got]) == wanted, f"read_into from {start}, {length} bytes: {got} came")


def missing_object(bench: StoreBench) -> None:
    """what is not there is reported as such"""
    key = bench.key("not/there")
    expect_error(NoSuchObjectError, lambda: bench.one.head(key), "head")
    expect_error(NoSuchObjectError, lambda: bench.one.get(key), "get")
    expect_error(NoSuchObjectError, lambda: bench.one.get(key, 5, 10), "get of a range")
    expect_error(NoSuchObjectError, lambda: bench.one.read_into(key, 0, memoryview(bytearray(4))), "read_into")
    expect(list(bench.one.list(key)) == [] and list(bench.one.list_folders(key + "/")) == [], "it is listed")


def second_create(bench: StoreBench) -> None:
    """a second create of a key is refused and changes nothing"""
    key = bench.key("created once")
    bench.one.put(key, b"first")
    expect_error(ObjectExistsError, lambda: bench.two.put(key, b"second"), "the second put")
    expect(bench.one.get(key) == b"first", "the first bytes were overwritten")


def listing(bench: StoreBench) -> None:
    """lists: key order, prefixes, starting points, folders"""
    names = sorted(["l/a b/1", "l/a!", "l/a-b", "l/a.b/x", "l/a.b/y/z", "l/a/1", "l/a/2", "l/a0", "l/ab/c/d", "l/zz"])
    for name in reversed(names):
        bench.one.put(bench.key(name), b"")
    for prefix in ("l/", "l/a", "l/a/", "l/a.", "l/ab/c/d", "l/none"):
        for after in ("", "l/a", "l/a-b", "l/a.b/y", "l/a/1", "l/a/9", "l/zz", "l/zzz"):
            wanted = [name for name in names if name.startswith(prefix) and name > after]
            listed = bench.two.list(bench.key(prefix), bench.key(after) if after else "")
            found = [stored.key.removeprefix(bench.folder) for stored in listed]
            expect(found == wanted, f"prefix {prefix!r} after {after!r}: {found} instead of {wanted}")
    expect(
        list(bench.two.list_folders(bench.key("l/"))) == ["a b", "a.b", "a", "ab"],
        f"folders: {list(bench.two.list_folders(bench.key('l/')))}",
    )


def many_objects(bench: StoreBench) -> str:
    """a list longer than a page"""
    if not bench.objects:
        raise NotAttainableError("left out on request")
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: bench.one.put(bench.key(f"many/{number:06d}"), b""), range(bench.objects)))
    found = [stored.key for stored in bench.two.list(bench.key("many/"))]
    expect(found == [bench.key(f"many/{number:06d}") for number in range(bench.objects)], f"{len(found)} of {bench.objects} in order")
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(bench.remove, found))
    return f"{bench.objects} objects"


def wrong_checksum(bench: StoreBench) -> None:
    """a wrong CRC-64 is refused and leaves nothing"""
    key, data = bench.key("wrong"), body(10_000, 3)
    if not bench.one.capabilities.full_object_crc:
        raise NotAttainableError("the store does not compute CRC-64/NVME")
    expect_error(StoreRefusedError, lambda: bench.one.put(key, data, crc(data) ^ 1), "put")
    expect(not bench.visible(key), "the object is there")


def reported_checksum(bench: StoreBench) -> None:
    """the store reports the CRC-64 of a whole object"""
    key, data = bench.key("reported"), body(10_000, 4)
    if not bench.one.capabilities.full_object_crc:
        raise NotAttainableError("the store does not compute CRC-64/NVME")
    bench.one.put(key, data)
    reported = bench.one.head(key).crc64
    expect(reported == crc(data), f"head reports {reported}")


def replacing(bench: StoreBench) -> None:
    """replace changes only the version that was named"""
    key = bench.key("repaired")
    damaged = bench.one.put(key, b"damaged")
    new = bench.one.replace(key, b"healthy", damaged.version, crc(b"healthy"))
    expect(bench.two.get(key) == b"healthy" and new.version == bench.two.head(key).version, "the new bytes are not there")
    expect_error(StoreRefusedError, lambda: bench.one.replace(key, b"again", damaged.version), "replace of a version that is gone")
    expect_error(StoreRefusedError, lambda: bench.one.replace(key, b"again", None), "replace without a version")
    expect(bench.two.get(key) == b"healthy", "a refused replace changed the object")


def old_versions(bench: StoreBench) -> None:
    """an overwritten object stays readable by its version"""
    if not bench.one.capabilities.versions:
        raise NotAttainableError("the store keeps no versions")
    key = bench.key("versions")
    old = bench.one.put(key, b"old")
    new = bench.one.replace(key, b"newer", old.version)
    expect(bench.two.get(key, version=old.version) == b"old", "the old version reads otherwise")
    expect(bench.two.get(key, version=new.version) == b"newer" and bench.two.head(key, old.version).size == 3, "versions are mixed up")


def deleting(bench: StoreBench) -> None:
    """delete removes the named version, and repeating it is no error"""
    key = bench.key("deleted")
    version = bench.one.put(key, b"x").version
    if bench.one.capabilities.object_lock and bench.one.head(key).locked_until is not None:
        raise NotAttainableError("the bucket locks every new object")
    bench.one.delete(key, version)
    expect(not bench.visible(key), "it is still there")
    bench.two.delete(key, version)
    if not bench.one.capabilities.versions:
        bench.two.delete(key)
        other = bench.one.put(key, b"another")
        expect_error(StoreRefusedError, lambda: bench.one.delete(key, version), "delete of another version than is there")
        expect(bench.two.head(key).version == other.version, "another object was deleted")


def lock_refuses(bench: StoreBench) -> str:
    """an object that was locked as it came cannot be deleted, and its lock only grows"""
    if not bench.one.capabilities.object_lock:
        expect_error(StoreRefusedError, lambda: bench.one.put(bench.key("asked"), b"", lock_until=_soon(bench)), "a lock that is not kept")
        raise NotAttainableError("the store has no object lock")
    until = _soon(bench)
    key, large = bench.key("locked"), bench.key("locked upload")
    bench.one.put(key, b"locked", lock_until=until)
    upload = bench.one.begin(large, lock_until=until)
    upload.part(1, 0, b"locked", crc(b"locked"))
    upload.finish(crc(b"locked"), 6)
    for name in (key, large):
        head = bench.two.head(name)
        expect(head.locked_until is not None and head.locked_until >= until, f"{name} is locked until {head.locked_until}")
        expect_error(StoreRefusedError, lambda name=name, head=head: bench.two.delete(name, head.version), "delete of a locked version")
        expect(bench.two.get(name, version=head.version) == b"locked", "the locked object is gone")
    version = bench.one.head(key).version
    later = until + timedelta(seconds=LOCK_SECONDS)
    bench.two.extend_lock(key, later, version)
    longer = bench.one.head(key).locked_until
    expect(longer is not None and longer >= later, f"extended until {longer}")
    expect_error(StoreRefusedError, lambda: bench.one.extend_lock(key, until - timedelta(seconds=5), version), "a shorter lock")
    return f"locked until {later.isoformat()}; two small objects stay until then"


def _soon(bench: StoreBench) -> datetime:
    return (bench.one.server_time() or datetime.now(UTC)) + timedelta(seconds=LOCK_SECONDS)


def clock(bench: StoreBench) -> str:
    """the store's clock is within three minutes of this host's"""
    if not bench.one.capabilities.server_time:
        raise NotAttainableError("the store has no clock of its own")
    moment = bench.one.server_time()
    expect(moment is not None and moment.tzinfo is not None, f"server_time is {moment}")
    assert moment is not None
    drift = (moment - datetime.now(UTC)).total_seconds()
    expect(abs(drift) <= CLOCK_DRIFT_SECONDS, f"it is off by {drift:.0f} s")
    arrived = bench.one.put(bench.key("clock"), b"").modified
    expect(arrived is None or abs((arrived - moment).total_seconds()) < 60, f"an object that was just put is from {arrived}")
    return f"off by {drift:.1f} s"
