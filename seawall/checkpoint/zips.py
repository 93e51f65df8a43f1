"""The directory of a zip archive, read as an auditor and not as an unpacker (APPNOTE 6.3.10; torch writes zip64, stored, 64-byte aligned).

Two readers of one archive can disagree (central directory, local headers, duplicates, bytes in front); each disagreement is either a
damaged file or an attempt to show a scanner something else than the loader sees. Nothing is inflated beyond what the directory claims,
and claims that cannot be honest are refused before.
"""

import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from seawall.checkpoint.reading import BLOCK, Readable, read_exactly
from seawall.errors import CorruptError, HostileError

STORED, DEFLATED = 0, 8
MAX_RECORDS = 1_000_000
MAX_DIRECTORY = 256 << 20
"""Bytes of the central directory."""
BOMB_BYTES = 1 << 20
"""Smaller records are never called bombs."""
BOMB_RATIO = 100
"""Real weights do not deflate tenfold; all-zero optimizer state does, a thousandfold. So the ratio counts only with a second sign."""
BOMB_TOTAL = 32 << 20
"""Inflated bytes of a whole archive above which the overall ratio alone decides."""

_END = b"PK\x05\x06"
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")


@dataclass(slots=True)
class Record:
    """One member of the archive."""

    name: str
    start: int
    """Offset of the stored bytes in the archive."""
    stored: int
    """Bytes as stored."""
    size: int
    """Bytes when inflated."""
    method: int
    crc: int
    encrypted: bool = False
    lost: bool = False
    """Its own header is not where the directory says, so its bytes cannot be found."""

    @property
    def ratio(self) -> float:
        return self.size / max(1, self.stored)


@dataclass(slots=True)
class Archive:
    """A zip archive's records in directory order, by name."""

    source: Readable
    records: dict[str, Record]
    faults: list[tuple[str, str]]
    """(record, text): what is corrupt without hiding the rest."""
    threats: list[tuple[str, str]]
    """(record, text): what is hostile."""
    trailing: int = 0
    """Bytes behind the end of the archive."""
    no_checksums: bool = False
    """All CRCs are 0 though records are not empty: the writer did not compute them."""


def is_zip_end(source: Readable) -> bool:
    """Whether an end-of-directory record stands at the very end (torch writes no comment) or close to it."""
    tail = source.read(max(0, source.size - 22), 22)
    return tail[:4] == _END or _END in source.read(max(0, source.size - 4096), 4096)


def read_archive(source: Readable) -> Archive:
    """Read and check the directory. Raises ``CorruptError`` without one, ``HostileError`` for impossible claims."""
    count, size, offset, trailing = _find_directory(source)
    if count > MAX_RECORDS or size > MAX_DIRECTORY:
        raise HostileError(f"a zip directory of {count} records in {size} bytes", where=source.name)
    raw = read_exactly(source, offset, size, "the zip directory")
    archive = Archive(source, {}, [], [], trailing)
    at = 0
    spans: list[tuple[int, int, str]] = []
    for _ in range(count):
        record, header, at = _central_entry(source, raw, at)
        if record.name in archive.records:
            archive.threats.append((record.name, "the archive has two records of this name: scanners and loaders may read different ones"))
            continue
        archive.records[record.name] = record
        problem = _bad_name(record.name)
        if problem:
            archive.threats.append((record.name, f"the archive has a record whose name {problem}"))
        _local_entry(archive, record, header)
        if not record.lost:
            spans.append((header, record.start + record.stored, record.name))
    if at != len(raw):
        archive.faults.append(("", "the zip directory is longer than its records"))
    _check_overlaps(archive, spans, offset)
    _check_bombs(archive)
    with_bytes = [record for record in archive.records.values() if record.size]
    archive.no_checksums = bool(with_bytes) and all(record.crc == 0 for record in with_bytes)
    return archive


def _find_directory(source: Readable) -> tuple[int, int, int, int]:
    """(records, bytes, offset) of the central directory, through zip64 where it is used, and how many bytes follow the archive."""
    window = 22
    tail = source.read(max(0, source.size - window), window)
    if tail[:4] != _END:
        tail = source.read(max(0, source.size - 65557), 65557)
    found = tail.rfind(_END)
    if found < 0 or found + 22 > len(tail):
        raise CorruptError(
            "the zip directory at the end is missing", where=source.name, why=f"the file has {source.size} bytes and is cut or overwritten"
        )
    end = source.size - len(tail) + found
    disk, first, _here, count, size, offset, comment = struct.unpack_from("<4H2LH", tail, found + 4)
    if (disk, first) not in ((0, 0), (0xFFFF, 0xFFFF)):
        raise CorruptError("a zip archive in several parts", where=source.name)
    expected = end
    locator = source.read(end - 20, 20) if end >= 20 else b""
    if locator[:4] == b"PK\x06\x07":
        (at,) = struct.unpack_from("<Q", locator, 8)
        record = read_exactly(source, at, 56, "the zip64 end record") if at <= source.size else b""
        if record[:4] != b"PK\x06\x06":
            raise CorruptError(
                "the zip64 end record is not where it should be", where=source.name, why="bytes were inserted, removed or damaged"
            )
        count64, size64, offset64 = struct.unpack_from("<3Q", record, 32)
        if (count not in (count64, 0xFFFF)) or (size not in (size64, 0xFFFFFFFF)) or (offset not in (offset64, 0xFFFFFFFF)):
            raise CorruptError("the two end records of the zip disagree", where=source.name)
        count, size, offset, expected = count64, size64, offset64, at
    if offset + size > source.size:
        raise CorruptError("the zip directory is said to lie outside of the file", where=source.name)
    if offset + size != expected:
        shift = expected - size - offset
        raise CorruptError(
            "the zip directory is not where it should be",
            where=source.name,
            why=f"it is off by {shift} bytes: something was put in front or cut out",
        )
    return count, size, offset, max(0, source.size - end - 22 - comment)


def _central_entry(source: Readable, raw: bytes, at: int) -> tuple[Record, int, int]:
    if at + _CENTRAL.size > len(raw):
        raise CorruptError("the zip directory has fewer records than it says", where=source.name)
    (
        magic,
        _made,
        _need,
        flags,
        method,
        _time,
        _date,
        crc,
        stored,
        size,
        name_length,
        extra_length,
        note_length,
        _disk,
        _inner,
        outer,
        header,
    ) = _CENTRAL.unpack_from(raw, at)
    if magic != b"PK\x01\x02":
        raise CorruptError("the zip directory is damaged", where=source.name)
    at += _CENTRAL.size
    name = _decoded(raw[at : at + name_length])
    extra = raw[at + name_length : at + name_length + extra_length]
    stored, size, header = _zip64(extra, size, stored, header)
    record = Record(name, 0, stored, size, method, crc, bool(flags & 1))
    if stat.S_ISLNK(outer >> 16):
        record.method = -1
    return record, header, at + name_length + extra_length + note_length


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("cp437")


def _zip64(extra: bytes, size: int, stored: int, header: int) -> tuple[int, int, int]:
    """Sizes and offset with the zip64 extra field applied: (stored, size, header)."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        at += 4
        if kind == 1:
            numbers = list(struct.unpack_from(f"<{min(length, len(extra) - at) // 8}Q", extra, at))
            if size == 0xFFFFFFFF and numbers:
                size = numbers.pop(0)
            if stored == 0xFFFFFFFF and numbers:
                stored = numbers.pop(0)
            if header == 0xFFFFFFFF and numbers:
                header = numbers.pop(0)
        at += length
    return stored, size, header


def _local_entry(archive: Archive, record: Record, header: int) -> None:
    source = archive.source
    raw = source.read(header, _LOCAL.size + len(record.name.encode()))
    if len(raw) < _LOCAL.size or raw[:4] != b"PK\x03\x04":
        # A fault and no more: a loader that never asks for this record runs what stands in the others.
        record.lost = True
        archive.faults.append((record.name, f"record {record.name} does not begin where the directory says"))
        return
    (_magic, _need, flags, method, _time, _date, crc, stored, size, name_length, extra_length) = _LOCAL.unpack_from(raw)
    record.start = header + _LOCAL.size + name_length + extra_length
    local_name = raw[_LOCAL.size :] if name_length == len(raw) - _LOCAL.size else source.read(header + _LOCAL.size, name_length)
    if record.start + record.stored > source.size:
        record.lost = True
        archive.faults.append((record.name, f"record {record.name} is said to reach outside of the file"))
        return
    if _decoded(local_name) != record.name:
        archive.threats.append((record.name, f"the directory and the record disagree about the name ({_short(_decoded(local_name))})"))
    streamed = flags & 8
    if record.method == -1:
        archive.threats.append((record.name, "the archive has a record that is a symbolic link"))
        record.method = method
    if (
        method != record.method
        or (not streamed and size not in (record.size, 0xFFFFFFFF))
        or (not streamed and stored not in (record.stored, 0xFFFFFFFF))
    ):
        archive.faults.append((record.name, "the directory and the record itself disagree about its size or method"))
    if not streamed and crc != record.crc:
        archive.faults.append((record.name, "the directory and the record itself disagree about its checksum"))
    if record.encrypted:
        archive.faults.append((record.name, "the record is marked as encrypted"))
    if record.method == STORED and record.size != record.stored:
        archive.faults.append((record.name, f"stored as it is, yet {record.stored} bytes are said to become {record.size}"))
    elif record.method not in (STORED, DEFLATED):
        archive.faults.append((record.name, f"compressed by method {record.method}, which no loader of checkpoints reads"))


def _short(name: str) -> str:
    return name.encode("unicode_escape").decode()[:80]


def _bad_name(name: str) -> str:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts:
        return "climbs out of the folder"
    if name.startswith(("/", "\\")) or name[1:3] in (":\\", ":/"):
        return "is absolute"
    if "\0" in name:
        return "has a NUL in it"
    return ""


def _check_overlaps(archive: Archive, spans: list[tuple[int, int, str]], directory: int) -> None:
    """Overlapping records are how the densest known bombs are made; torch never writes them."""
    reached, owner = 0, ""
    for start, end, name in sorted(spans):
        if start < reached:
            archive.threats.append((name, f"the record overlaps {_short(owner)}"))
        if end > reached:
            reached, owner = end, name
    if reached > directory:
        archive.threats.append((owner, "the record overlaps the zip directory"))


def _check_bombs(archive: Archive) -> None:
    squeezed = [record for record in archive.records.values() if record.method != STORED]
    total, stored = sum(record.size for record in squeezed), sum(record.stored for record in squeezed)
    if total > BOMB_TOTAL and total > BOMB_RATIO * max(1, stored):
        worst = max(squeezed, key=lambda record: record.size)
        archive.threats.append((worst.name, f"{stored} compressed bytes would inflate to {total}: a bomb"))


def blocks(source: Readable, record: Record) -> Iterator[bytes]:
    """The record's own bytes, block by block, never more than its size says. Raises ``CorruptError`` when they do not inflate."""
    if record.lost:
        raise CorruptError(f"record {record.name} does not begin where the directory says", where=source.name)
    if record.method == STORED:
        at = record.start
        end = record.start + record.stored
        while at < end:
            block = read_exactly(source, at, min(BLOCK, end - at), f"record {record.name}")
            at += len(block)
            yield block
        return
    if record.method != DEFLATED:
        raise CorruptError(f"record {record.name} is compressed by method {record.method}", where=source.name)
    inflater = zlib.decompressobj(-15)
    given = 0
    for at in range(record.start, record.start + record.stored, BLOCK >> 4):
        rest = read_exactly(source, at, min(BLOCK >> 4, record.start + record.stored - at), f"record {record.name}")
        while rest:
            try:
                block = inflater.decompress(rest, BLOCK)
            except zlib.error as error:
                raise CorruptError(f"record {record.name} does not inflate", where=source.name, why=str(error)) from error
            given += len(block)
            if given > record.size:
                raise HostileError(f"record {record.name} inflates to more than the {record.size} bytes it claims", where=source.name)
            if block:
                yield block
            if rest == inflater.unconsumed_tail and not block:
                break
            rest = inflater.unconsumed_tail
    if given != record.size or not inflater.eof:
        raise CorruptError(f"record {record.name} inflates to {given} bytes, not {record.size}", where=source.name)


def contents(source: Readable, record: Record, limit: int) -> bytes:
    """All of a record in memory; ``HostileError`` when it claims more than ``limit`` bytes."""
    if record.size > limit:
        raise HostileError(
            f"record {record.name} of {record.size} bytes is more than is ever read into memory ({limit})", where=source.name
        )
    if record.method != STORED and record.size > BOMB_BYTES and record.ratio > BOMB_RATIO:
        raise HostileError(f"record {record.name} would inflate {record.stored} bytes to {record.size}: a bomb", where=source.name)
    return b"".join(blocks(source, record))


def checksum(source: Readable, record: Record) -> int:
    """CRC-32 of the record's bytes as a loader gets them."""
    crc = 0
    for block in blocks(source, record):
        crc = zlib.crc32(block, crc)
    return crc
