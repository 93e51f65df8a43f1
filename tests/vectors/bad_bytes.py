"""Stored bytes of one object changed by somebody without any key: the manifest stays, and so does every signature."""

from collections.abc import Iterator

from seawall.vault.open import read_frame
from tests.log.actors import KEYS
from tests.vectors.copies import SealedCopy
from tests.vectors.vector import Vector

NAME = "file-5.sea"
OTHER = "file-6.sea"
HEADER = {
    "magic": (0, 8),
    "version": (8, 2),
    "suite": (10, 2),
    "flags": (12, 4),
    "chunk-size": (16, 4),
    "sealing": (20, 16),
    "kind": (36, 1),
    "zeros": (37, 3),
    "number": (40, 8),
    "signer": (48, 16),
    "salt": (64, 32),
    "commitment": (96, 32),
}
"""Offset and width of each field."""


def flipped(raw: bytes, at: int, mask: int = 1) -> bytes:
    return raw[:at] + bytes((raw[at] ^ mask,)) + raw[at + 1 :]


def put(raw: bytes, at: int, value: bytes) -> bytes:
    return raw[:at] + value + raw[at + len(value) :]


def bad_bytes(base: SealedCopy) -> Iterator[Vector]:
    raw = base.objects[NAME]
    frame = read_frame(lambda start, length: raw[start : start + length], len(raw), lambda key_id: KEYS.writer.public, NAME)
    tail = frame.offsets[-1] + frame.leaves[-1].length
    trailer = len(raw) - 80
    footer = tail + 8 + 36 * 3

    def one(name: str, done: str, changed: bytes, expect: str = "corrupt", **more: object) -> Vector:
        return Vector(name, base, done, expect, NAME, {NAME: changed}, **more)  # type: ignore[arg-type]  # fields of Vector

    # Cuts: at the border of every record, and inside every region.
    cuts = {
        "empty": 0,
        "in-header": 64,
        "after-header": 128,
        "in-record-0": 200,
        "after-record-0": frame.offsets[1],
        "after-record-1": frame.offsets[2],
        "in-record-2": frame.offsets[2] + 5,
        "after-record-2": tail,
        "in-leaf-count": tail + 4,
        "in-leaf-table": tail + 8 + 50,
        "after-leaf-table": footer,
        "in-footer": footer + 20,
        "before-trailer": trailer,
        "in-trailer": trailer + 40,
        "last-byte": len(raw) - 1,
    }
    for name, at in cuts.items():
        # A cut never leaves the length that the table names, so readers of a copy stop there; alone it ends in parsing.
        yield one(f"cut-{name}", f"cut to its first {at} bytes", raw[:at])
    # One bit in every field of the header.
    unsupported = {"version", "suite", "flags"}
    for name, (at, width) in HEADER.items():
        expect = "unsupported" if name in unsupported else "trust" if name == "signer" else "corrupt"
        yield one(f"flip-header-{name}", f"one bit of the header's {name} flipped", flipped(raw, at + width - 1, 2), expect)
    yield one("header-version-0", "version lowered to 0", put(raw, 8, b"\0\0"), "unsupported")
    yield one("header-suite-0", "suite lowered to 0", put(raw, 10, b"\0\0"), "unsupported")
    yield one("header-flag-31", "highest critical flag set", flipped(raw, 12, 0x80), "unsupported")
    yield one("header-chunk-size-half", "chunk size halved, still a power of two", put(raw, 16, (512).to_bytes(4, "big")))
    yield one("header-chunk-size-double", "chunk size doubled", put(raw, 16, (2048).to_bytes(4, "big")))
    yield one("header-chunk-size-0", "chunk size 0", put(raw, 16, bytes(4)))
    yield one("header-chunk-size-largest", "chunk size 2^32 - 1", put(raw, 16, b"\xff" * 4))
    yield one("header-kind-batch", "kind changed to batch", put(raw, 36, b"\3"))
    yield one("header-kind-0", "kind 0", put(raw, 36, b"\0"))
    yield one(
        "header-signer-other-writer",
        "signer changed to another listed writer, who is revoked",
        put(raw, 48, bytes.fromhex(KEYS.second_writer.key_id)),
        "trust",
    )
    yield one("header-signer-verifier", "signer changed to a verifier", put(raw, 48, bytes.fromhex(KEYS.verifier.key_id)), "trust")
    # Records.
    others = {0: (1, 2), 1: (0, 2), 2: (0, 1)}
    for number, readable in others.items():
        start, length = frame.offsets[number], frame.leaves[number].length
        yield one(f"flip-record-{number}", f"one bit in record {number} flipped", flipped(raw, start + 77), readable=readable)
        yield one(
            f"flip-record-{number}-tag",
            f"one bit in the tag of record {number} flipped",
            flipped(raw, start + length - 1),
            readable=readable,
        )
    first, second, third = (raw[start : start + leaf.length] for start, leaf in zip(frame.offsets, frame.leaves, strict=True))
    head, end = raw[:128], raw[tail:]
    yield one("records-swapped", "records 0 and 1 swapped", head + second + first + third + end, readable=(2,))
    yield one("record-repeated", "record 0 in place of record 1", head + first + first + third + end, readable=(0, 2))
    yield one("last-record-missing", "the bytes of the last record left out", head + first + second + end)
    yield one("middle-record-missing", "the bytes of record 1 left out", head + first + third + end)
    yield one(
        "record-zeroed",
        "record 1 overwritten by zeros, as a lost disk block is",
        head + first + bytes(len(second)) + third + end,
        readable=(0, 2),
    )
    # Tail and trailer.
    regions = {
        "leaf-count": tail + 7,
        "leaf-length": tail + 8 + 3,
        "leaf-digest": tail + 8 + 36 + 20,
        "footer": footer + 3,
        "footer-tag": trailer - 1,
        "trailer-crc": trailer + 3,
        "trailer-signature-r": trailer + 8,
        "trailer-signature-s": trailer + 8 + 40,
        "trailer-offset": len(raw) - 1,
    }
    for name, at in regions.items():
        yield one(f"flip-{name}", f"one bit of the {name} flipped", flipped(raw, at))
    counts = {"0": 0, "4": 4, "2": 2, "2^63": 1 << 63, "overflowing-32-bits": (1 << 32) + 3, "overflowing-64-bits": (1 << 64) // 36 + 3}
    for name, count in counts.items():
        yield one(f"leaf-count-{name}", f"leaf table claims {count} records", put(raw, tail, count.to_bytes(8, "big")))
    offsets = {
        "0": 0,
        "in-header": 100,
        "at-trailer": trailer,
        "beyond-the-end": len(raw) + 1,
        "largest": (1 << 64) - 1,
        "one-less": tail - 1,
    }
    for name, at in offsets.items():
        yield one(f"tail-offset-{name}", f"trailer says that the tail is at {at}", put(raw, len(raw) - 8, at.to_bytes(8, "big")))
    # What belongs to another object.
    other = base.objects[OTHER]
    other_tail = len(other) - (len(raw) - tail)
    yield one("tail-of-another-file", "tail and trailer of another file of the same size", raw[:tail] + other[other_tail:])
    yield one("trailer-of-another-file", "trailer of another file", raw[:trailer] + other[-80:])
    yield one("header-of-another-file", "header of another file", other[:128] + raw[128:])
    yield one(
        "record-of-another-file",
        "record 1 of another file",
        put(raw, frame.offsets[1], other[frame.offsets[1] : frame.offsets[2]]),
        readable=(0, 2),
    )
    yield one("another-file", "another file of the sealing in its place", base.objects["file-3.sea"], readers={"alone": "ok"})
    yield one("another-file-same-size", "another file of the same size in its place", other, readers={"alone": "ok"})
    yield one("a-batch-in-its-place", "a batch in its place", base.objects["batch-0.sea"], readers={"alone": "ok"})
    yield one("trailing-byte", "one byte after the end", raw + b"\0")
    yield one("trailing-trailer", "the trailer twice", raw + raw[-80:])
    yield one("leading-byte", "one byte before the beginning", b"\0" + raw)
    yield one("no-object", "no sealed object at all", b"<html>503 Slow Down</html>" * 20)
    for name in ("plan.sea", "batch-1.sea", "inventory.sea", "file-0.sea"):
        changed = flipped(base.objects[name], 130)
        # The one record of the empty file holds nothing that a range could ask for.
        readers = {"range": "ok"} if name == "file-0.sea" else {}
        yield Vector(
            f"flip-record-of-{name.removesuffix('.sea')}",
            base,
            f"one bit in record 0 of {name} flipped",
            "corrupt",
            name,
            {name: changed},
            readers=readers,
        )
    for name in ("file-0.sea", "file-5.sea", "inventory.sea", "batch-0.sea", "plan.sea", "objects.json", "keys-1.json"):
        yield Vector(f"missing-{name.partition('.')[0]}", base, f"{name} is not there", "corrupt", name, {name: None})
