"""A checkpoint on disk as sync takes it: judged, listed, and with the digest that says which save it is."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256

from seawall import __version__
from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Inspection, Verdict
from seawall.checkpoint.source import SourceFile, commit_mark_digest, is_temporary, list_source, pointer_for
from seawall.checkpoint.tensor_sums import NOT_THE_BYTES, other_pieces, summed_pieces
from seawall.checkpoint.tree import Folder
from seawall.clock import utc_text
from seawall.errors import CorruptError, HostileError, IncompleteError, UnknownLayoutError, UsageError
from seawall.vault.inventory import Inventory
from seawall.vault.names import identity_of
from seawall.vault.plan import Plan
from seawall.vault.tensors import TensorPiece, TensorRecord

_READ_BYTES = 1 << 20
_FIRST_SECOND = -(1 << 31)
_LAST_SECOND = 253_402_300_799
"""The end of the year 9999. Some file systems keep any time, and a clock that jumped sets any; what is saved is for information."""
_POINTED = ("deepspeed", "megatron")
"""Layouts whose steps are found by a pointer file in the folder above."""


@dataclass(frozen=True)
class ListedFile:
    """A file to seal. ``name`` is relative to the source's root."""

    name: str
    size: int
    mode: int
    identity: str


@dataclass(frozen=True)
class CheckpointSource:
    """What one sync reads."""

    root: str
    inspection: Inspection
    files: tuple[ListedFile, ...]
    folders: tuple[tuple[str, int], ...]
    links: tuple[tuple[str, str], ...]
    mark_digest: bytes
    saved_at: str
    pointer: tuple[str, str] | None = None
    prefix: str = ""
    """What stands before the inspection's file names to make them relative to the root: empty, or a folder and ``/``."""
    quarantine: str = ""
    """Why this checkpoint is committed quarantined from the start."""
    warnings: tuple[str, ...] = field(default=())

    @property
    def commit_mark(self) -> str | None:
        return None if self.inspection.commit_mark is None else self.prefix + self.inspection.commit_mark

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {file.name: number for number, file in enumerate(self.files)}

    def tensors(self) -> tuple[TensorRecord, ...]:
        """The structure with files by number. Tensors of an opaque or quarantined checkpoint are not recorded."""
        if self.quarantine:
            return ()
        records = []
        for tensor in self.inspection.tensors:
            pieces = tuple(
                TensorPiece(self._numbers[self.prefix + p.file], p.nbytes, p.start, p.offsets, p.shape, p.crc64)
                for p in tensor.pieces
                if self.prefix + p.file in self._numbers
            )
            records.append(TensorRecord(tensor.name, tensor.dtype, tensor.shape, pieces))
        return tuple(records)

    def notes(self) -> dict[str, str]:
        """For the inventory: what sealed it, and what the inspection had to say."""
        notes = {"seawall": __version__, "verdict": self.inspection.verdict.word}
        reasons = [f"{r.verdict.word}: {r.file} {r.text}" for r in self.inspection.reasons if r.verdict >= Verdict.WARN]
        pieces = [piece for tensor in self.tensors() for piece in tensor.pieces]
        if any(piece.crc64 is not None for piece in pieces):
            notes["tensor_sums"] = f"{sum(piece.crc64 is not None for piece in pieces)} of {len(pieces)} pieces were summed by training"
        if reasons:
            notes["reasons"] = "\n".join(reasons)[:4000]
        return notes

    def matches(self, plan: Plan) -> bool:
        """Whether the plan is of these very files. Devices are not compared: two hosts see one file system under two numbers."""
        same_files = [(f.name, f.size, _undeviced(f.identity)) for f in plan.files] == [
            (f.name, f.size, _undeviced(f.identity)) for f in self.files
        ]
        return same_files and self._same_rest(plan)

    def fits(self, plan: Plan) -> bool:
        """Whether a plan that is not carried out yet is for these files as this source takes them: one that records tensors is not for
        a checkpoint that is to be sealed as plain files, nor the other way."""
        return self.matches(plan) and bool(plan.tensors) == bool(self.tensors())

    def same_names(self, plan: Plan) -> bool:
        """Whether the plan has the same files in name and size."""
        return [(f.name, f.size) for f in plan.files] == [(f.name, f.size) for f in self.files] and self._same_rest(plan)

    def _same_rest(self, plan: Plan) -> bool:
        return [f.name for f in plan.folders] == [name for name, _ in self.folders] and [(k.name, k.target) for k in plan.links] == [
            *self.links
        ]

    def same_content(self, inventory: Inventory) -> bool:
        """Whether every byte is the inventory's. Reads all files."""
        return all(_digest(os.path.join(self.root, file.name)) == file.plaintext_digest for file in inventory.files)


def _undeviced(identity: str) -> str:
    return identity.rsplit(":", 1)[0]


def _digest(path: str) -> bytes:
    digest = sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
    return digest.digest()


def read_source(
    path: str,
    *,
    exclude: Sequence[str] = (),
    layout: str = "auto",
    commit_mark: str = "_COMMITTED",
    as_opaque: bool = False,
    step: int | None = None,
) -> CheckpointSource:
    """Judge and list the checkpoint at ``path``: a step's folder, a file, or a run folder (then the step that counts).

    ``step`` is for checkpoints whose step cannot be read from what they hold. Raises :class:`IncompleteError`,
    :class:`CorruptError`, :class:`HostileError` or :class:`UnknownLayoutError` for what should not be sealed; with
    ``as_opaque`` the last three are sealed as plain files, and corrupt and hostile ones are quarantined; tensors that training
    summed are read then, and a checkpoint with one that is another counts as corrupt.
    """
    inspection = inspect(path, layout=layout, commit_mark=commit_mark)
    if step is not None:
        if inspection.step is not None and inspection.step != step:
            raise UsageError("the checkpoint is of another step", where=inspection.path, why=f"step {inspection.step}, not {step}")
        inspection.step = step
    if as_opaque and inspection.verdict <= Verdict.WARN:
        _look_for_other_tensors(inspection)
    quarantine = _refuse_or_quarantine(inspection, as_opaque)
    root, prefix, pointer = inspection.path, "", None
    if os.path.isfile(root):
        root = os.path.dirname(root)
    elif inspection.layout in _POINTED:
        root, folder = os.path.split(root)
        prefix, pointer = folder + "/", pointer_for(inspection.layout, folder)
    listed = [_prefixed(file, prefix) for file in list_source(inspection.path, exclude) if not is_temporary(file.path)]
    files = [file for file in listed if file.kind == "file"]
    needed = {piece.file for tensor in inspection.tensors for piece in tensor.pieces}
    needed |= {inspection.commit_mark} if inspection.commit_mark else set()
    missing = {prefix + name for name in needed} - {file.path for file in listed}
    if missing and not quarantine:
        raise UsageError("an exclude pattern hides a file that the checkpoint needs", where=sorted(missing)[0], do="narrow the pattern")
    if not files:
        raise IncompleteError("there is no file to seal", where=path, why="everything is excluded, or the folder is empty")
    folders = [(file.path, file.mode) for file in listed if file.kind == "folder"]
    links = [(file.path, file.target) for file in listed if file.kind == "link"]
    mark = os.path.join(inspection.path, inspection.commit_mark) if inspection.commit_mark else inspection.path
    return CheckpointSource(
        root=root,
        inspection=inspection,
        files=tuple(
            ListedFile(file.path, file.size, file.mode, identity_of(file.mtime_ns, file.inode, file.device))
            for file in sorted(files, key=lambda file: file.path)
        ),
        folders=tuple(sorted(folders)),
        links=tuple(sorted(links)),
        mark_digest=bytes.fromhex(commit_mark_digest(inspection)),
        saved_at=utc_text(datetime.fromtimestamp(max(_FIRST_SECOND, min(os.stat(mark).st_mtime_ns // 10**9, _LAST_SECOND)), UTC)),
        pointer=pointer,
        prefix=prefix,
        quarantine=quarantine,
        warnings=tuple(f"{r.file}: {r.text}" for r in inspection.reasons if r.verdict == Verdict.WARN),
    )


def _prefixed(file: SourceFile, prefix: str) -> SourceFile:
    return replace(file, path=prefix + file.path) if prefix else file


def _look_for_other_tensors(inspection: Inspection) -> None:
    """Sealing refuses tensors that are not those that training summed. Who asks for plain files gets them, quarantined."""
    if pieces := summed_pieces(inspection.tensors):
        for tensor, piece in other_pieces(Folder(inspection.path, inspection.path), pieces):
            inspection.add(Verdict.CORRUPT, NOT_THE_BYTES, piece.file, tensor)


def _refuse_or_quarantine(inspection: Inspection, as_opaque: bool) -> str:
    if inspection.verdict <= Verdict.WARN:
        return ""
    worst = next(reason for reason in inspection.reasons if reason.verdict == inspection.verdict)
    where = " ".join(part for part in (inspection.path, worst.file, worst.tensor) if part)
    if inspection.verdict == Verdict.INCOMPLETE:
        raise IncompleteError("the checkpoint is not complete", where=where, why=worst.text, do="sync again when the save is over")
    if as_opaque:
        return (
            "" if inspection.verdict == Verdict.UNKNOWN else f"sealed as opaque, inspection: {inspection.verdict.word}: {worst.text}"[:900]
        )
    error = {Verdict.CORRUPT: CorruptError, Verdict.HOSTILE: HostileError, Verdict.UNKNOWN: UnknownLayoutError}[inspection.verdict]
    raise error(
        f"the checkpoint is {inspection.verdict.word}",
        where=where,
        why=worst.text,
        do="look with `seawall inspect --deep`; `--as-opaque` seals it as plain files, a corrupt or hostile one quarantined",
    )
