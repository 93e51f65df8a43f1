"""From a sealing to the plaintext of its files: whole, record by record, or one range alone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from seawall.errors import CorruptError, NoSuchCopyError
from seawall.kernels.crc64 import crc64
from seawall.stores.part_buffers import PartBuffers, fresh_buffer
from seawall.stores.read_ahead import read_ahead
from seawall.vault.header import ObjectKind, object_name
from seawall.vault.inventory import Inventory
from seawall.vault.names import posix_bytes
from seawall.vault.objects import Row
from seawall.vault.open import DamagedRecordError, EarlierRecords, Frame, Opener, ReadInto
from seawall.vault.planes import Earlier
from seawall.vault.sealing import WHOLE_BYTES, Sealing, read_whole

REQUEST_BYTES = (16 << 20) + 64
"""Two whole records and what encryption adds: a request costs about a millisecond of CPU, and memory is bounded by those in flight."""


def open_file(sealing: Sealing, inventory: Inventory, number: int, data_key: bytes) -> tuple[Row, Opener, bytes | None]:
    """Row and opener of a file, its footer compared with the inventory; its bytes too where one request gave them all."""
    file = inventory.files[number]
    name = object_name(ObjectKind.FILE, number)
    row = sealing.table.row(name)
    if row is None:
        raise CorruptError("the objects table lacks a file of the inventory", where=name)
    raw = read_whole(sealing.store, sealing.key_of(row), row.length) if row.length <= WHOLE_BYTES else None
    opener = Opener(sealing.frame_of(row, raw), data_key)
    footer = opener.footer
    if (footer.name, footer.length, footer.digest) != (posix_bytes(file.name), file.size, file.plaintext_digest):
        raise CorruptError("a sealed file is another than the inventory says", where=f"{name} {file.name}")
    return row, opener, raw


def plaintext_of(
    sealing: Sealing,
    inventory: Inventory,
    number: int,
    data_key: bytes,
    pool: ThreadPoolExecutor,
    buffers: PartBuffers,
    earlier: Earlier | None = None,
    check_leaves: bool = False,
) -> Iterator[bytes | memoryview]:
    """The plaintext of one file, record by record, each authenticated; the caller compares the digest of the whole, which is signed.

    With ``check_leaves`` every stored byte is held against what was signed as well: each record against its leaf before it is opened, and
    at the end the CRC over the whole, as :func:`~seawall.vault.open.scrub` does.
    Chunks are lent until the next one is asked for. ``earlier`` is for who keeps them: derived weights are then rebuilt from there, and
    their master's records are not read twice.
    """
    row, opener, raw = open_file(sealing, inventory, number, data_key)
    earlier = earlier or EarlierRecords(opener, _reads(sealing, sealing.key_of(row), raw))
    frame = opener.frame
    spans = [(start, leaf.length) for start, leaf in zip(frame.offsets, frame.leaves, strict=True)]
    out = fresh_buffer(max(length for _, length in spans))
    crc = crc64(frame.header.pack())

    def opened(index: int, record: memoryview) -> bytes | memoryview:
        nonlocal crc
        if check_leaves:
            crc = crc64(record, crc)
            if not frame.check_record(index, record):
                raise DamagedRecordError(frame.where, (index,), "its bytes are not those that were signed")
        return opener.open_record(index, record, out, earlier)

    if raw is not None:
        view = memoryview(raw)
        for index, (start, length) in enumerate(spans):
            yield opened(index, view[start : start + length])
        if check_leaves:
            frame.check_crc(crc, frame.tail)
        return
    runs = _runs(frame)
    places = [(frame.offsets[run.start], sum(frame.leaves[index].length for index in run)) for run in runs]
    for run, stored in zip(runs, read_ahead(sealing.store, sealing.key_of(row), places, pool, buffers), strict=True):
        at = 0
        for index in run:
            length = frame.leaves[index].length
            yield opened(index, stored[at : at + length])
            at += length
    if check_leaves:
        frame.check_crc(crc, frame.tail)


def _runs(frame: Frame) -> list[range]:
    """Records to read together: as many as fit into :data:`REQUEST_BYTES`, at least one."""
    runs, first, nbytes = [], 0, 0
    for index, leaf in enumerate(frame.leaves):
        if index > first and nbytes + leaf.length > REQUEST_BYTES:
            runs.append(range(first, index))
            first, nbytes = index, 0
        nbytes += leaf.length
    return [*runs, range(first, len(frame.leaves))]


def find_file(inventory: Inventory, name: str) -> int:
    """The number of the file called ``name``; :class:`NoSuchCopyError` when the checkpoint has none."""
    for number, file in enumerate(inventory.files):
        if file.name == name:
            return number
    raise NoSuchCopyError("the checkpoint has no such file", where=name, do="`seawall copies --files` lists them")


def read_range(sealing: Sealing, inventory: Inventory, number: int, data_key: bytes, start: int, length: int) -> Iterator[bytes]:
    """A range of one file alone: only the records that hold it are read, each verified against its signed leaf."""
    row, opener, raw = open_file(sealing, inventory, number, data_key)
    return opener.read_range(start, length, _reads(sealing, sealing.key_of(row), raw))


def _reads(sealing: Sealing, key: str, raw: bytes | None) -> ReadInto:
    """Reads an object: from ``raw`` where that is all of it, else from the store."""

    def from_memory(at: int, buffer: memoryview) -> int:
        piece = memoryview(raw or b"")[at : at + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)

    return from_memory if raw is not None else lambda at, buffer: sealing.store.read_into(key, at, buffer)
