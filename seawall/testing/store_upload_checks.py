"""Checks of races and of multipart uploads. Each raises, or returns what a person may want to know."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from seawall.errors import ObjectExistsError, StoreError, StoreRefusedError
from seawall.testing.check_report import NotAttainableError, expect, expect_error
from seawall.testing.store_bench import StoreBench, body, crc

_RACERS = 16
_PART = 5 << 20
"""S3's smallest part that is not the last one."""


def concurrent_create(bench: StoreBench) -> None:
    """of sixteen simultaneous creates exactly one wins"""
    if not bench.one.capabilities.conditional_put:
        raise NotAttainableError("the store cannot refuse a second create by itself")
    key = bench.key("race")
    bodies = [body(2000, seed) for seed in range(_RACERS)]

    def create(number: int) -> None:
        (bench.one if number % 2 else bench.two).put(key, bodies[number])

    winners = _winners(create)
    expect(len(winners) == 1, f"{len(winners)} of {_RACERS} were told that they created it")
    expect(bench.one.get(key) == bodies[winners[0]], "the object is not the winner's")


def concurrent_finish(bench: StoreBench) -> None:
    """of simultaneous uploads of one key exactly one finishes"""
    if not bench.one.capabilities.conditional_put:
        raise NotAttainableError("the store cannot refuse a second create by itself")
    key = bench.key("upload race")
    bodies = [body(3000, seed) for seed in range(_RACERS)]
    uploads = [(bench.one if number % 2 else bench.two).begin(key) for number in range(_RACERS)]
    for upload, data in zip(uploads, bodies, strict=True):
        upload.part(1, 0, data, crc(data))
    winners = _winners(lambda number: uploads[number].finish(crc(bodies[number]), len(bodies[number])))
    for upload in uploads:
        upload.abort()
    expect(len(winners) == 1, f"{len(winners)} of {_RACERS} were told that they finished it")
    expect(bench.one.get(key) == bodies[winners[0]], "the object is not the winner's")
    expect(not list(bench.one.leftovers(key)), "losers left uploads behind")


def _winners(create: Callable[[int], object]) -> list[int]:
    barrier = threading.Barrier(_RACERS)

    def race(number: int) -> bool:
        barrier.wait(30)
        try:
            create(number)
        except ObjectExistsError:
            return False
        except StoreError as error:
            if error.outcome == "transient":
                # "Another writer is busy with this key" (S3's 409): not a winner either.
                return False
            raise
        return True

    with ThreadPoolExecutor(_RACERS) as threads:
        return [number for number, won in enumerate(threads.map(race, range(_RACERS))) if won]


def large_upload(bench: StoreBench) -> str:
    """a multipart upload: parts of different lengths, out of order, from threads, one of them twice"""
    key, data = bench.key("large"), body(2 * _PART + 77_777 + 1234, 5)
    borders = [0, _PART, 2 * _PART + 77_777, len(data)]
    parts = [(number, borders[number - 1], data[borders[number - 1] : borders[number]]) for number in (3, 1, 2, 1)]
    upload = bench.one.begin(key)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda part: upload.part(part[0], part[1], part[2], crc(part[2])), parts))
    expect(not bench.visible(key), "it is visible before it is finished")
    stored = upload.finish(crc(data), len(data))
    expect(stored.size == len(data) and bench.two.get(key) == data, "other bytes came back")
    expect(bench.two.get(key, _PART - 5, 10) == data[_PART - 5 : _PART + 5], "a range over the border of two parts is wrong")
    head = bench.one.head(key)
    expect(head.version == stored.version, f"head reports {head}, finish {stored}")
    if bench.one.capabilities.full_object_crc:
        expect(head.crc64 == crc(data), f"head reports CRC-64 {head.crc64}")
    return f"{len(data)} bytes"


def empty_upload(bench: StoreBench) -> None:
    """an upload without parts is an empty object"""
    key = bench.key("empty upload")
    bench.one.begin(key).finish(0, 0)
    expect(bench.two.head(key).size == 0, "it is not empty")


def finish_after_create(bench: StoreBench) -> None:
    """an upload for a key that was created meanwhile is refused and leaves nothing"""
    key = bench.key("created meanwhile")
    upload = bench.one.begin(key)
    upload.part(1, 0, b"late", crc(b"late"))
    bench.two.put(key, b"early")
    expect_error(ObjectExistsError, lambda: upload.finish(crc(b"late"), 4), "finish")
    expect(bench.one.get(key) == b"early", "the first object was overwritten")
    expect(not list(bench.two.leftovers(key)), "the upload is still there")
    upload.abort()


def wrong_parts(bench: StoreBench) -> None:
    """a gap between parts, a wrong length and a wrong CRC-64 are refused"""
    data = body(1000, 6)
    for name, parts, announced in (
        ("gap", [(1, 0, data[:500]), (2, 501, data[501:])], (crc(data), 1000)),
        ("length", [(1, 0, data)], (crc(data), 1001)),
        ("whole", [(1, 0, data)], (crc(data) ^ 1, 1000)),
    ):
        key = bench.key(f"wrong {name}")
        upload = bench.one.begin(key)
        for number, start, piece in parts:
            upload.part(number, start, piece, crc(piece))
        expect_error(StoreRefusedError, lambda upload=upload, announced=announced: upload.finish(*announced), f"finish with a wrong {name}")
        upload.abort()
        expect(not bench.visible(key), f"the object with a wrong {name} is there")
    if not bench.one.capabilities.full_object_crc:
        return
    upload = bench.one.begin(bench.key("wrong part"))
    expect_error(StoreRefusedError, lambda: upload.part(1, 0, data, crc(data) ^ 1), "a part with a wrong CRC-64")
    upload.abort()


def aborted_upload(bench: StoreBench) -> None:
    """abort leaves nothing and may be repeated"""
    key = bench.key("aborted")
    upload = bench.one.begin(key)
    upload.part(1, 0, b"x", crc(b"x"))
    upload.abort()
    upload.abort()
    expect(not bench.visible(key) and not list(bench.two.leftovers(key)), "something is left")


def leftovers(bench: StoreBench) -> None:
    """an upload that nobody finished is found from elsewhere, and can be removed"""
    key = bench.key("left/over")
    bench.one.begin(key).part(1, 0, b"x", crc(b"x"))
    found = list(bench.two.leftovers(bench.key("left/")))
    expect([leftover.key for leftover in found] == [key], f"found {found}")
    expect(not list(bench.two.leftovers(bench.key("right/"))), "it is found under another prefix")
    bench.two.abort_leftover(found[0])
    bench.two.abort_leftover(found[0])
    expect(not list(bench.one.leftovers(bench.key("left/"))), "it is still there")
