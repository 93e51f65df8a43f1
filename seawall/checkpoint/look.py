"""One inspection under way: the folder, what has been found so far, and each file read at most once."""

import math
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from seawall.checkpoint import strict_json
from seawall.checkpoint.content import Content
from seawall.checkpoint.inspection import Inspection, Tensor, Verdict
from seawall.checkpoint.kinds import FOREIGN, MISTAKEN, WEIGHT_ENDINGS, kind_of
from seawall.checkpoint.pickles.judge import Finding, judge_broken, judge_pickle
from seawall.checkpoint.pickles.machine import read_pickle
from seawall.checkpoint.reading import Readable
from seawall.checkpoint.safetensors import read_safetensors
from seawall.checkpoint.torch_legacy import read_torch_legacy
from seawall.checkpoint.torch_zip import read_torch_zip
from seawall.checkpoint.tree import Folder
from seawall.checkpoint.views import shortened
from seawall.errors import CorruptError, HostileError, IncompleteError, SeawallError

MAX_JSON = 64 << 20
"""Bytes of a state or index file; the index of the largest published models has 10 MB."""
MAX_ABSENT = 100
MAX_NAME = 60_000
"""Characters of a tensor's name; the inventory of a sealing takes 65,536 (docs/spec/format-1.md, section 8)."""
MAX_BARE_PICKLE = 256 << 20
_SCALARS = {"float32": "<f", "float64": "<d", "int64": "<q", "int32": "<i"}


@dataclass(slots=True)
class Look:
    """What a layout works with. ``below`` is the part of the folder that the layout judges: "" or a sub-folder."""

    folder: Folder
    found: Inspection
    deep: bool = False
    mark: str = "_COMMITTED"
    seen: dict[str, Content | None] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    absent: int = 0

    @contextmanager
    def guarded(self, file: str = "", tensor: str = "") -> Iterator[None]:
        """Turn what a parser raises into a finding about ``file``. Errors of other types go on: they are not about the checkpoint."""
        try:
            yield
        except HostileError as error:
            self.found.add(Verdict.HOSTILE, _text(error), file, tensor)
        except CorruptError as error:
            self.found.add(Verdict.CORRUPT, _text(error), file, tensor)
            for finding in judge_broken(error):
                self.found.add(finding.verdict, finding.text, file, tensor)
        except IncompleteError as error:
            self.found.add(Verdict.INCOMPLETE, _text(error), file, tensor)

    def json(self, file: str) -> dict[str, Any] | None:
        """A JSON object of the checkpoint; None (and a finding) when it is not one."""
        with self.guarded(file):
            raw = self.folder.read(file, MAX_JSON)
            if not raw.strip(b"\0 \r\n\t"):
                raise CorruptError("the file is empty" if not raw else "the file is nothing but zeros", where=file)
            return strict_json.parse_object(raw, file, "the file")
        return None

    def read(self, file: str, expected: bool = True) -> Content | None:
        """A file's structure, with its troubles recorded; None when it could not be read.

        ``expected`` says that the checkpoint needs tensors or objects from this file: then anything else in it is damage.
        """
        if file in self.seen:
            return self.seen[file]
        content: Content | None = None
        with self.guarded(file), self.folder.open(file) as source:
            content = read_content(source, file, self.deep, expected or file.endswith(WEIGHT_ENDINGS))
        if content is not None:
            for trouble in content.troubles:
                self.found.add(trouble.verdict, trouble.text, file, trouble.tensor)
        self.seen[file] = content
        return content

    def missing(self, path: str, text: str) -> None:
        """Something that the checkpoint names is not there. Counts come from inside of files, so only the first hundred are spelt out."""
        self.absent += 1
        if self.absent <= MAX_ABSENT:
            self.found.add(Verdict.INCOMPLETE, text, path)
        elif self.absent == MAX_ABSENT + 1:
            self.found.add(Verdict.INCOMPLETE, "more is not there than is listed here", path)

    def scalar(self, file: str, tensor: str) -> int | None:
        """A whole number kept as a tensor of one element; None for anything else."""
        content = self.seen.get(file)
        found = next((one for one in content.tensors if one.name == tensor), None) if content is not None else None
        if (
            found is None
            or found.pieces[0].start is None
            or found.dtype not in _SCALARS
            or found.pieces[0].nbytes != struct.calcsize(_SCALARS[found.dtype])
        ):
            return None
        with suppress(SeawallError), self.folder.open(file) as source:
            raw = source.read(found.pieces[0].start, found.pieces[0].nbytes)
            value = struct.unpack(_SCALARS[found.dtype], raw)[0] if len(raw) == found.pieces[0].nbytes else math.nan
            return int(value) if math.isfinite(value) and value == int(value) else None
        return None

    def take(self, content: Content | None, part: str = "") -> None:
        """Count a file's tensors as the checkpoint's. ``part`` goes before their names where several files use the same ones.

        Names come out unique: a proof compares tensors by name.
        """
        for tensor in content.tensors if content is not None else ():
            self.add_tensor(replace(tensor, name=f"{part}:{tensor.name}") if part else tensor)

    def add_tensor(self, tensor: Tensor) -> None:
        """One tensor, under a name that no other has."""
        plain = plain_name(tensor.name)
        if plain != tensor.name:
            tensor = replace(tensor, name=plain)
        if tensor.name in self.names and tensor.pieces:
            tensor = replace(tensor, name=f"{tensor.pieces[0].file}:{tensor.name}")
        name, copies = tensor.name, 1
        while tensor.name in self.names:
            copies += 1
            tensor = replace(tensor, name=f"{name}#{copies}")
        self.names.add(tensor.name)
        self.found.tensors.append(tensor)


def plain_name(name: str) -> str:
    """A name that the documents of a sealing can hold: pickles may have halves of surrogate pairs in theirs, and any length."""
    if not name.isascii():
        name = name.encode("utf-8", "backslashreplace").decode()
    return shortened(name, MAX_NAME)


def _text(error: CorruptError | HostileError | IncompleteError) -> str:
    return f"{error.what}: {error.why}" if error.why else error.what


_READERS: dict[str, Callable[[Readable, str, int, bool], Content]] = {
    "torch-zip": read_torch_zip,
    "torch-legacy": read_torch_legacy,
    "safetensors": read_safetensors,
}


def read_content(source: Readable, file: str, deep: bool, expected: bool) -> Content:
    """Structure of a file by its content. Raises ``CorruptError`` and ``HostileError``; foreign kinds come back as such."""
    kind = kind_of(source)
    if kind in _READERS:
        try:
            return _READERS[kind](source, file, 0, deep)
        except CorruptError as error:
            if kind == "safetensors" and file.endswith(".json"):
                return Content("json", ours=False)
            raise error
    if kind == "pickle":
        return _bare_pickle(source, file)
    if kind in FOREIGN or not expected:
        return Content(kind, ours=False)
    raise CorruptError(MISTAKEN[kind], where=file, why=f"{source.size} bytes")


def _bare_pickle(source: Readable, file: str) -> Content:
    """A pickle without torch's container is not ours, but whoever opens it as usual runs what it says."""
    content = Content("pickle", ours=False)
    raw = source.read(0, min(source.size, MAX_BARE_PICKLE))
    findings: list[Finding] = []
    try:
        pickle = read_pickle(raw, 0, file)
        content.top = pickle.top
        findings = judge_pickle(pickle)
    except CorruptError as error:
        content.add(Verdict.UNKNOWN, f"a bare pickle that cannot be read: {error.what}")
        findings = judge_broken(error)
    for finding in findings:
        if finding.verdict is Verdict.HOSTILE:
            content.add(finding.verdict, finding.text)
    return content
