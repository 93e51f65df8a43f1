"""Objects that were wrong before they were signed, and a manifest that names them: what a faulty or hostile writer could make."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from seawall.kernels.crc64 import combine, crc64
from seawall.vault.header import ObjectKind
from seawall.vault.names import posix_bytes
from seawall.vault.records import nonce
from seawall.vault.tail import Footer, Leaf
from tests.log.actors import KEYS
from tests.vectors.bad_bytes import NAME, put
from tests.vectors.copies import SealedCopy, noise
from tests.vectors.craft import Craft
from tests.vectors.vector import Vector, instead

KEYLESS = {"scrub": "ok"}
"""What is encrypted is not for a keyless reader to see."""


def craft(base: SealedCopy, which: int, **hooks: Any) -> Craft:
    """File ``which`` of ``base``, to be made with one thing different."""
    name = base.inventory.files[which].name
    content = base.contents[name]
    return replace(
        Craft(base.sealing, ObjectKind.FILE, which, posix_bytes(name), content, base.data_key, KEYS.writer, base_chunk(base)), **hooks
    )


def base_chunk(base: SealedCopy) -> int:
    return int.from_bytes(base.objects["file-0.sea"][16:20], "big")


def edit(at: int, value: bytes) -> Callable[[bytearray], None]:
    def change(raw: bytearray) -> None:
        raw[at : at + len(value)] = value

    return change


def lying(**changes: Any) -> Callable[[Footer], bytes]:
    return lambda footer: replace(footer, **changes).pack()


def bad_signed(base: SealedCopy) -> Iterator[Vector]:
    def one(name: str, done: str, expect: str = "corrupt", readers: dict[str, str] | None = None, **hooks: Any) -> Vector:
        readable = hooks.pop("readable", None)
        crafted = craft(base, 5, **hooks)
        other = base.with_object(NAME, *crafted.row(NAME))
        return instead(base, name, done, other, expect, NAME, readers=readers or {}, readable=readable)

    yield one("control", "nothing: made by hand, right in all parts", "ok")
    # Who signed.
    yield one("foreign-signature", "signed by a key that no trust list has", "trust", signer=KEYS.stranger)
    yield one(
        "foreign-signature-writers-name",
        "signed by a stranger under the writer's key id",
        signer=KEYS.stranger,
        signer_id=KEYS.writer.key_id,
    )
    yield one("wrong-role", "signed by a verifier", "trust", signer=KEYS.verifier)
    yield one("revoked-key", "signed by a writer whose key was revoked before the commit", "trust", signer=KEYS.second_writer)
    # The wrong key.
    yield one("wrong-data-key", "sealed under another data key", "key", KEYLESS, data_key=noise("another data key", 32))
    yield one("footer-of-another-key", "footer sealed under another key", readers=KEYLESS, footer_key=lambda key: noise("footer", 32))
    # A header that no reader of format 1 knows, or that is another object's.
    yield one("signed-version-2", "version 2", "unsupported", header=edit(8, b"\0\2"))
    yield one("signed-suite-2", "suite 2", "unsupported", header=edit(10, b"\0\2"))
    yield one("signed-flag", "an unknown critical flag", "unsupported", header=edit(15, b"\1"))
    yield one("signed-zeros", "bytes that must be zero are not", header=edit(38, b"\1"))
    yield one("signed-kind-9", "kind 9", header=edit(36, b"\x09"))
    yield one("chunk-512", "chunk size below the smallest", chunk_bytes=512)
    yield one("chunk-1000", "chunk size is no power of two", chunk_bytes=1000)
    yield one("chunk-2^27", "chunk size above the largest", chunk_bytes=1 << 27)
    yield one("number-of-another-file", "numbered 4", readers={"alone": "ok"}, number=4)
    yield one("kind-of-a-batch", "kind batch", readers={"alone": "ok"}, kind=ObjectKind.BATCH)
    yield one("another-sealing", "of another sealing", readers={"alone": "ok"}, sealing=noise("sealing", 16))
    # Records that are not in their place.
    wrong_nonce = {"readers": KEYLESS, "readable": (0, 1)}
    yield one("last-record-not-marked", "last record not marked as the last", nonces=lambda n: [*n[:-1], nonce(2, False)], **wrong_nonce)
    yield one("counter-restarts", "record 2 encrypted as if it were number 0", nonces=lambda n: [*n[:-1], nonce(0, True)], **wrong_nonce)
    yield one(
        "two-last-records",
        "record 1 marked as the last, too",
        readers=KEYLESS,
        readable=(0, 2),
        nonces=lambda n: [n[0], nonce(1, True), n[2]],
    )
    yield one(
        "records-swapped-signed",
        "records 0 and 1 swapped before signing",
        readers=KEYLESS,
        readable=(2,),
        stored=lambda r: [r[1], r[0], r[2]],
    )
    yield one("record-left-out-signed", "last record left out before signing", readers=KEYLESS, stored=lambda r: r[:2])
    yield one("record-too-many", "a fourth, empty record", readers=KEYLESS, packed=lambda p: [*p, b"\0"])
    yield one("record-short", "record 1 holds a byte less", readers=KEYLESS, readable=(0, 2), packed=lambda p: [p[0], p[1][:-1], p[2]])
    yield one("record-long", "record 1 holds a byte more than a chunk", packed=lambda p: [p[0], p[1] + b"x", p[2]])
    yield one("record-tag-only", "record 2 is a tag without a codec byte", stored=lambda r: [*r[:2], r[2][-16:]])
    yield one("record-empty", "record 2 has no bytes at all", stored=lambda r: [*r[:2], b""])
    # Codecs.
    yield one(
        "codec-2",
        "record 1 uses the reserved codec",
        "unsupported",
        KEYLESS,
        readable=(0, 2),
        packed=lambda p: [p[0], b"\2" + p[1][1:], p[2]],
    )
    yield one(
        "codec-200", "record 1 uses codec 200", "unsupported", KEYLESS, readable=(0, 2), packed=lambda p: [p[0], b"\xc8" + p[1][1:], p[2]]
    )
    yield one(
        "codec-zstd-no-frame",
        "record 1 says zstd and is no frame",
        readers=KEYLESS,
        readable=(0, 2),
        packed=lambda p: [p[0], b"\1" + p[1][1:], p[2]],
    )
    # Footer, leaf table, CRC, space.
    yield one("footer-name-changed", "the footer names another file", readers={"scrub": "ok", "alone": "ok"}, footer=lying(name=b"one.bin"))
    yield one("footer-length-one-more", "the footer's length is a byte more, in a record more", readers=KEYLESS, footer=lying(length=3073))
    yield one("footer-length-one-less", "the footer's length is a byte less", readers=KEYLESS, footer=lying(length=3071))
    yield one("footer-length-largest", "the footer's length is 2^64 - 1", readers=KEYLESS, footer=lying(length=(1 << 64) - 1))
    yield one("footer-digest", "the footer's digest is another", readers=KEYLESS, footer=lying(digest=bytes(32)))
    yield one(
        "footer-name-length-lies",
        "the footer's name is longer than it says",
        readers=KEYLESS,
        footer=lambda f: put(f.pack(), 40, b"\0\0\0\1"),
    )
    yield one("footer-too-short", "the footer ends in its digest", footer=lambda f: f.pack()[:30])
    yield one("footer-name-too-long", "the footer's name has 65,537 bytes", footer=lying(name=b"n" * 65537))
    yield one(
        "leaf-digest-wrong",
        "leaf 1 is not the digest of its record",
        readers={"stream": "ok"},
        readable=(0, 2),
        leaves=lambda n: [n[0], Leaf(n[1].length, bytes(32)), n[2]],
    )
    yield one(
        "leaf-lengths-shifted",
        "leaf 0 a byte longer, leaf 1 a byte shorter",
        leaves=lambda n: [Leaf(n[0].length + 1, n[0].digest), Leaf(n[1].length - 1, n[1].digest), n[2]],
    )
    yield one("leaf-missing", "two leaves for three records", leaves=lambda n: n[:2])
    yield one("no-leaves", "no leaf at all", leaves=lambda n: [])
    yield one(
        "crc-wrong", "the CRC is another, and not the one that the row follows from", readers={"alone": "ok"}, crc=lambda crc: crc ^ 1
    )
    crafted = craft(base, 5, crc=lambda crc: crc ^ 1)
    raw, row = crafted.row(NAME)
    derived = replace(row, crc64=combine(int.from_bytes(raw[-80:-72], "big"), crc64(raw[-80:]), 80))
    other = base.with_object(NAME, raw, derived)
    lenient = {"stream": "ok", "range": "ok", "alone": "ok"}
    yield instead(base, "crc-wrong-row-too", "the CRC is another, and so is the row's", other, "corrupt", NAME, readers=lenient)
    yield one("gap-before-tail", "16 bytes between records and tail that belong to nothing", gap=bytes(16))


def _frame(base: SealedCopy, chunk: bytes, **options: Any) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(**{"level": 1, "write_checksum": True, "write_content_size": True, **options}).compress(chunk)


def bad_frames(base: SealedCopy) -> Iterator[Vector]:
    """Codec zstd: record 1 of a file of three, whose chunks shrink."""
    content = base.contents["text.bin"]
    chunks = [content[at : at + 1024] for at in range(0, 3072, 1024)]

    def one(name: str, done: str, frame: bytes, expect: str = "corrupt", *, well_formed: bool = False) -> Vector:
        packed = [b"\1" + _frame(base, chunks[0]), b"\1" + frame, b"\1" + _frame(base, chunks[2])]
        crafted = craft(base, 0, packed=lambda p: packed)
        other = base.with_object("file-0.sea", *crafted.row("file-0.sea"))
        readers = {"scrub": "ok", "range": "ok"} if well_formed else KEYLESS if expect != "ok" else {}
        readable = None if expect == "ok" else (0, 1, 2) if well_formed else (0, 2)
        return instead(base, name, done, other, expect, "file-0.sea", readers=readers, readable=readable)

    frame = _frame(base, chunks[1])
    yield one("zstd-control", "nothing: made by hand, right in all parts", frame, "ok")
    yield one("zstd-level-19", "nothing wrong: packed at another level", _frame(base, chunks[1], level=19), "ok")
    yield one("zstd-cut", "frame cut by a byte", frame[:-1])
    yield one("zstd-cut-checksum", "frame cut before its checksum", frame[:-4])
    yield one("zstd-cut-early", "frame cut in the middle", frame[: len(frame) // 2])
    yield one("zstd-empty", "no frame", b"")
    yield one("zstd-trailing-byte", "a byte after the frame", frame + b"\0")
    yield one("zstd-two-frames", "two frames, each half of the chunk", _frame(base, chunks[1][:512]) + _frame(base, chunks[1][512:]))
    yield one("zstd-empty-frame-after", "an empty frame after the frame", frame + _frame(base, b""))
    yield one("zstd-skippable-frame-before", "a skippable frame before the frame", struct.pack("<II", 0x184D2A50, 4) + b"skip" + frame)
    yield one("zstd-no-checksum", "frame without checksum", _frame(base, chunks[1], write_checksum=False))
    yield one("zstd-no-size", "frame without content size", _frame(base, chunks[1], write_content_size=False))
    yield one("zstd-checksum-wrong", "content checksum is another", frame[:-1] + bytes((frame[-1] ^ 1,)))
    yield one("zstd-declares-more", "frame of two chunks", _frame(base, content[:2048]))
    yield one("zstd-declares-less", "frame of a byte less than the chunk", _frame(base, chunks[1][:-1]))
    yield one("zstd-other-content", "frame of another chunk of the same size", _frame(base, chunks[0]), well_formed=True)
    yield from _hand_made_frames(base)


def _hand_made_frames(base: SealedCopy) -> Iterator[Vector]:
    """RFC 8878 section 3.1.1, for a file whose first chunk is zeros, so that one block with a run of them is a whole frame."""
    checksum = _frame(base, bytes(1024))[-4:]
    size = struct.pack("<H", 1024 - 256)

    def run(nbytes: int, last: bool) -> bytes:
        return struct.pack("<I", nbytes << 3 | 2 | last)[:3] + b"\0"

    def one(name: str, done: str, frame: bytes, expect: str = "corrupt") -> Vector:
        crafted = craft(base, 1, packed=lambda packed: [b"\1" + frame, packed[1]])
        other = base.with_object("file-1.sea", *crafted.row("file-1.sea"))
        ok = expect == "ok"
        return instead(base, name, done, other, expect, "file-1.sea", readers={} if ok else KEYLESS, readable=None if ok else (1,))

    # The descriptor: 0x40 a size of two bytes, 0x20 a single segment and so no window, 0x04 a checksum, 0x01 a dictionary id of one byte.
    magic = b"\x28\xb5\x2f\xfd"
    yield one("zstd-hand-made", "nothing: a frame made by hand", magic + b"\x64" + size + run(1024, True) + checksum, "ok")
    window = bytes((0 << 3,))
    yield one("zstd-window-small", "nothing wrong: a window of 1 KiB", magic + b"\x44" + window + size + run(1024, True) + checksum, "ok")
    window = bytes((18 << 3,))
    yield one("zstd-window-too-large", "asks for a window of 2^28 bytes", magic + b"\x44" + window + size + run(1024, True) + checksum)
    yield one("zstd-dictionary", "names a dictionary", magic + b"\x65\x07" + size + run(1024, True) + checksum)
    many = run(1024, False) * 199 + run(1024, True)
    yield one("zstd-inflates-to-more", "declares one chunk and inflates to 200", magic + b"\x64" + size + many + checksum)
