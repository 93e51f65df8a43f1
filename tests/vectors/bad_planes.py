"""Records of byte planes that were wrong before they were signed, and one whose master was damaged afterwards."""

from collections.abc import Iterator
from typing import Any

import zstandard

from seawall.vault.open import read_frame
from seawall.vault.plane_header import Kind
from seawall.vault.zstd_frames import Search, pack_frame
from tests.log.actors import KEYS
from tests.vectors.bad_bytes import flipped
from tests.vectors.bad_signed import KEYLESS, craft, edit
from tests.vectors.copies import SealedCopy, text
from tests.vectors.planes import framed, payload, plane, run, stored
from tests.vectors.vector import Vector, instead

NAME = "derived.bin"
OBJECT = "file-0.sea"
FLAG = edit(12, (4).to_bytes(4, "big"))


def bad_planes(base: SealedCopy) -> Iterator[Vector]:
    yield from _bad_records(base)
    yield from _bad_derived(base)


def _vector(base: SealedCopy, name: str, done: str, records: list[bytes], expect: str, bad: int, **more: Any) -> Vector:
    hooks = {"header": FLAG, **more.pop("hooks", {})}
    readers = more.pop("readers", KEYLESS if expect != "ok" else {})
    readable = more.pop("readable", None if expect == "ok" else tuple(number for number in range(3) if number != bad))
    crafted = craft(base, 0, packed=lambda packed: records, **hooks)
    other = base.with_object(OBJECT, *crafted.row(OBJECT))
    return instead(base, f"planes-{name}", done, other, expect, OBJECT, readers=readers, readable=readable)


def _records(base: SealedCopy) -> list[bytes]:
    """The three records right: two of one run of width 4, the last derived and text."""
    content = base.contents[NAME]
    chunks = [content[at : at + 1024] for at in (0, 1024)]
    packed = [b"\2" + payload([run(4, 1024)], [*(stored(chunk[rank::4]) for rank in range(3)), framed(chunk[3::4])]) for chunk in chunks]
    return [*packed, b"\2" + payload([run(Kind.BFLOAT16, 512, 0), run(1, 512)], [framed(text(512))])]


def _bad_records(base: SealedCopy) -> Iterator[Vector]:
    """Record 1, one run of 256 elements of four bytes."""
    first, _, third = _records(base)
    chunk = base.contents[NAME][1024:2048]
    low, top = [stored(chunk[rank::4]) for rank in range(3)], framed(chunk[3::4])

    def one(name: str, done: str, raw: bytes, expect: str = "corrupt", **more: Any) -> Vector:
        return _vector(base, name, done, [first, b"\2" + raw, third], expect, 1, **more)

    def last(coded: tuple[bytes, bytes]) -> bytes:
        return payload([run(4, 1024)], [*low, coded])

    def after_zeros(coded: tuple[bytes, bytes]) -> bytes:
        return payload([run(4, 1024)], [framed(bytes(256))] * 3 + [coded])

    yield one("control", "nothing: made by hand, right in all parts", last(top), "ok")
    entropy = plane(1, pack_frame(chunk[3::4], Search.ENTROPY))
    yield one("entropy-coder", "nothing wrong: a frame made with hardly any search", last(entropy), "ok")
    bytewise = payload([run(1, 1000), run(1, 24)], [framed(text(1024))])
    yield one("other-content", "two runs of bytes, of another chunk", bytewise, readers={"scrub": "ok", "range": "ok"}, readable=(0, 1, 2))
    yield one("form-2", "form 2", payload([run(4, 1024)], [*low, top], form=2), "unsupported")
    yield one("no-payload", "nothing behind the packing byte", b"", "unsupported")
    yield one("form-only", "nothing behind the form", b"\1")
    yield one("no-run", "no run", payload([], []))
    yield one("runs-cut", "more runs than there are bytes", payload([run(4, 1024)], [*low, top], count=65535))
    yield one("kind-3", "a kind of run that does not exist", payload([run(3, 1023), run(1, 1)], [*low[:2], top]), "unsupported")
    yield one("run-empty", "a run of no bytes", payload([run(4, 1024), run(1, 0)], [*low, top]))
    yield one("run-splits-element", "a run that ends inside an element", payload([run(4, 1023), run(1, 1)], [stored(b"1"), *low, top]))
    yield one("runs-too-short", "runs of four bytes less than the chunk", payload([run(4, 1020)], [*low, top]))
    yield one("runs-too-long", "runs of a byte more than the chunk", payload([run(4, 1024), run(1, 1)], [stored(b"1"), *low, top]))
    yield one("run-4-GiB", "a run of 2^32 - 4 bytes", payload([run(4, 2**32 - 4)], [*low, top]))
    yield one("method-2", "a method that does not exist", after_zeros(plane(2, chunk[3::4])), "unsupported")
    yield one("plane-missing", "the entry of the last plane cut", payload([run(4, 1024)], []) + b"\0\0\0\1\0" * 3)
    yield one("plane-short", "a stored plane of a byte less", after_zeros(stored(chunk[3::4][:-1])))
    yield one("plane-long", "a stored plane of a byte more", after_zeros(stored(chunk[3::4] + b"\0")))
    yield one("plane-4-GiB", "a frame of 2^32 - 1 bytes", last(plane(1, top[1], 2**32 - 1)))
    yield one("trailing-byte", "a byte behind the planes", payload([run(4, 1024)], [*low, top], after=b"\0"))
    yield one("cut", "the last byte cut", last(top)[:-1])
    yield one("no-shorter", "as long as the chunk", payload([run(1, 1024)], [stored(text(1024))])[:1024])
    frame = top[1]
    yield one("frame-empty", "a frame of no bytes", last(plane(1, b"")))
    yield one("frame-cut", "a frame cut by a byte", last(plane(1, frame[:-1])))
    yield one("frame-trailing-byte", "a byte behind the frame, within its plane", last(plane(1, frame + b"\0")))
    yield one("frame-of-more", "a frame of 257 bytes for 256", last(framed(chunk[3::4] + b"\x3c")))
    yield one("frame-of-less", "a frame of 255 bytes for 256", last(framed(chunk[3::4][:-1])))
    bare = zstandard.ZstdCompressor(write_checksum=False).compress(chunk[3::4])
    yield one("frame-no-checksum", "a frame without a checksum", last(plane(1, bare)))
    yield one("frame-checksum", "a frame whose checksum is another", last(plane(1, flipped(frame, len(frame) - 1))))


def _bad_derived(base: SealedCopy) -> Iterator[Vector]:
    """Record 2, whose first half is derived from record 0."""
    first, second, third = _records(base)
    rest = framed(text(512))

    def one(name: str, done: str, raw: bytes, expect: str = "corrupt", **more: Any) -> Vector:
        return _vector(base, name, done, [first, second, b"\2" + raw], expect, 2, **more)

    def derived(master: int, length: int = 512, kind: int = Kind.BFLOAT16) -> bytes:
        return payload([run(kind, length, master), run(1, 1024 - length)], [framed(text(1024 - length))])

    yield one("derived-no-flag", "derived without the flag of the header", third[1:], hooks={"header": lambda raw: None})
    other = {"readers": {"scrub": "ok", "range": "ok"}, "readable": (0, 1, 2)}
    yield one("derived-of-the-moment", "derived from another tensor", derived(1024), **other)
    yield one("derived-as-float16", "the same cast to float16", derived(0, kind=Kind.FLOAT16), **other)
    yield one("derived-overlapping", "derived from bytes that reach into itself", derived(1032))
    yield one("derived-behind", "derived from bytes behind it", derived(4096))
    yield one("derived-far", "derived from bytes near 2^64", derived(2**64 - 1024))
    yield one("derived-odd", "derived, of an odd length", derived(0, 511))
    yield one("derived-no-master", "a derived run without an offset", payload([run(Kind.BFLOAT16, 1024)], []))
    within = [run(Kind.BFLOAT16, 256, 0), run(1, 512), run(Kind.FLOAT16, 256, 2048)]
    yield one("derived-of-derived", "derived from a derived run of its record", payload(within, [rest]))
    # Record 1 derived from record 0, and record 2 from that.
    chain = b"\2" + payload([run(Kind.BFLOAT16, 512, 0), run(1, 512)], [rest])
    yield _vector(
        base, "derived-chain", "derived from a derived run of another record", [first, chain, b"\2" + derived(1024, 256)], "corrupt", 2
    )
    raw = base.objects[OBJECT]
    frame = read_frame(lambda start, length: raw[start : start + length], len(raw), lambda key_id: KEYS.writer.public, OBJECT)
    yield Vector(
        "planes-flip-master", base, "one bit in the record of a master flipped", "corrupt", OBJECT,
        {OBJECT: flipped(raw, frame.offsets[0] + 77)}, readable=(1,),
    )  # fmt: skip
