"""The zip container that torch.save has written since version 1.6, and TorchScript archives, which share it.

Records: ``<prefix>/data.pkl``, ``<prefix>/data/<key>`` for each storage, ``<prefix>/version``, ``<prefix>/byteorder``
(torch/serialization.py,
caffe2/serialize/inline_container.h). Spans count from the start of the file, not of the archive.
"""

import zlib

from seawall.checkpoint import zips
from seawall.checkpoint.content import Content
from seawall.checkpoint.dtypes import BITS, can_be_non_finite
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.pickles.machine import read_pickle
from seawall.checkpoint.reading import Readable
from seawall.checkpoint.torch_objects import judge, noting, place, views_of
from seawall.checkpoint.views import Storage, View

MAX_PICKLE = 1 << 30
"""Bytes of one pickle record."""


def zip_kind(archive: zips.Archive) -> str:
    """What an archive is, by its records: torch-zip, npz, pt2, or zip."""
    names = archive.records
    if any(name.endswith("/archive_format") or name == "archive_format" for name in names):
        return "pt2"
    if any(name.endswith("/.data/extern_modules") for name in names):
        return "package"
    if main_pickles(archive):
        return "torch-zip"
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    if any("/data/" in name or name.endswith(("/version", "/byteorder")) for name in names):
        return "torch-zip"
    return "zip"


def main_pickles(archive: zips.Archive) -> list[str]:
    """Records that hold the structure. The case is of no account, because torch (miniz) finds ``DATA.PKL`` when it asks for
    ``data.pkl``, and of two it takes either."""
    return [name for name in archive.records if name.lower().rpartition("/")[2] == "data.pkl"]


def _same_but_for_case(archive: zips.Archive) -> list[str]:
    """Records that a loader may take for others. The source files of TorchScript are told apart by case, and run nothing."""
    seen: set[str] = set()
    found = []
    for name in archive.records:
        if "/code/" not in name and name.lower() in seen:
            found.append(name)
        seen.add(name.lower())
    return found


def read_torch_zip(source: Readable, file: str, base: int = 0, deep: bool = False) -> Content:
    """The structure of a torch zip. ``base`` is where ``source`` begins within ``file``."""
    archive = zips.read_archive(source)
    kind = zip_kind(archive)
    content = Content(kind, ours=kind == "torch-zip")
    for record, text in archive.threats:
        content.add(Verdict.HOSTILE, text, record)
    for record, text in archive.faults:
        content.add(Verdict.CORRUPT, text, record)
    if not content.ours:
        return content
    if archive.trailing:
        content.add(Verdict.WARN, f"{archive.trailing} bytes follow the archive; loaders pass over them")
    mains = main_pickles(archive)
    if not mains:
        content.add(Verdict.CORRUPT, "the record data.pkl, which holds the structure, is missing")
    elif len(mains) > 1:
        content.add(Verdict.HOSTILE, "the archive has several data.pkl: scanners and loaders may read different ones", mains[-1])
    elif (folder := next(iter(archive.records)).partition("/")[0]).lower() != mains[0].partition("/")[0].lower():
        content.add(Verdict.CORRUPT, f"loaders look in {folder}, where the first record is, and data.pkl is elsewhere", mains[0])
    for name in _same_but_for_case(archive):
        content.add(
            Verdict.HOSTILE, "the archive has two records whose names differ in case only: loaders may take one for the other", name
        )
    reader = _Reader(content, archive, source, file, base)
    for name in [*mains[:1], *(name for name in archive.records if name.lower().endswith(".pkl") and name not in mains[:1])]:
        with noting(content, name):
            reader.pickle(name, main=name in mains[:1])
    if mains and not any(name.endswith("/version") or name == "version" for name in archive.records):
        content.add(Verdict.CORRUPT, "the record version is missing, and loaders refuse the file without it")
    order = next((name for name in archive.records if name.endswith("/byteorder")), "")
    if order and archive.records[order].size < 16 and zips.contents(source, archive.records[order], 16) == b"big":
        content.add(Verdict.WARN, "the file was written on a big-endian machine")
    if deep:
        reader.read_all()
    elif archive.no_checksums:
        content.add(Verdict.OK, "the file was saved without checksums inside")
    return content


class _Reader:
    """One pass over one archive."""

    def __init__(self, content: Content, archive: zips.Archive, source: Readable, file: str, base: int) -> None:
        self.content = content
        self.archive = archive
        self.source = source
        self.file = file
        self.base = base
        self.views: dict[str, list[View]] = {}

    def pickle(self, name: str, main: bool) -> None:
        raw = zips.contents(self.source, self.archive.records[name], MAX_PICKLE)
        pickle = read_pickle(raw, 0, f"{self.file}: {name}" if self.file else name)
        judge(self.content, pickle, name)
        if main:
            self.content.top = pickle.top
        elif not name.endswith("/constants.pkl"):
            return
        prefix = name.rpartition("/")[0]
        folder = "data" if main else "constants"
        for view in views_of(self.content, pickle, self.file):
            self.place(view, f"{prefix}/{folder}/" if prefix else f"{folder}/")

    def place(self, view: View, folder: str) -> None:
        if view.storage is None:
            place(self.content, view, self.file, None, view.reach * view.width, "")
            return
        name = folder + view.storage.key
        record = self.archive.records.get(name)
        if record is None:
            self.content.add(Verdict.CORRUPT, f"record {name} of tensor {view.name} is not in the archive", name)
            return
        self.check_storage(view.storage, record, name not in self.views)
        self.views.setdefault(name, []).append(view)
        start = self.base + record.start if record.method == zips.STORED and not record.lost else None
        place(self.content, view, self.file, start, min(view.storage.nbytes, record.size), f"record {name}")

    def check_storage(self, storage: Storage, record: zips.Record, first: bool) -> None:
        if not first or record.size == storage.nbytes:
            return
        if record.method != zips.STORED and record.size > zips.BOMB_BYTES and record.ratio > zips.BOMB_RATIO:
            self.content.add(
                Verdict.HOSTILE,
                f"{storage.nbytes} bytes are wanted, {record.stored} compressed ones inflate to {record.size}: a bomb",
                record.name,
            )
        else:
            self.content.add(Verdict.CORRUPT, f"record {record.name} has {record.size} bytes, its storage {storage.nbytes}", record.name)

    def read_all(self) -> None:
        """Stream every record once: checksum, and values of the storages in it."""
        if not self.content.usable:
            return
        if self.archive.no_checksums:
            self.content.add(
                Verdict.OK, "the file was saved without checksums inside (all are 0), so its bytes prove nothing by themselves"
            )
        for name, record in self.archive.records.items():
            views = [view for view in self.views.get(name, []) if can_be_non_finite(view.dtype)]
            crc, sound = self.stream(record, views[0].dtype if views else "")
            if crc != record.crc and not self.archive.no_checksums:
                self.content.add(Verdict.CORRUPT, f"the checksum of record {name} is wrong: its bytes changed after they were saved", name)
            elif not sound:
                self.name_the_worst(record, views)

    def stream(self, record: zips.Record, dtype: str) -> tuple[int, bool]:
        if not dtype:
            return zips.checksum(self.source, record), True
        from seawall.kernels.nonfinite import count

        crc, sound, width = 0, True, max(1, BITS.get(dtype, 8) // 8)
        for block in zips.blocks(self.source, record):
            crc = zlib.crc32(block, crc)
            # Stored blocks hold whole elements; an inflated one may not, and then the values are looked at by tensor.
            if sound:
                sound = len(block) % width == 0 and count(block, dtype).sound
        return crc, sound

    def name_the_worst(self, record: zips.Record, views: list[View]) -> None:
        from seawall.checkpoint import values

        for view in views:
            if record.method == zips.STORED and view.contiguous:
                text = values.look(self.source, record.start + view.offset * view.width, view.elements * view.width, view.dtype)
            else:
                text = values.complaint(values.finiteness(zips.blocks(self.source, record), view.dtype))
            if text:
                self.content.add(Verdict.WARN, f"tensor {view.name} has {text}", view.name)
