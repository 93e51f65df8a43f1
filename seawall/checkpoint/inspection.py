"""What an inspection finds: the verdict, its reasons, and the structure of a checkpoint."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from seawall.errors import CorruptError, HostileError, IncompleteError, UnknownLayoutError


class Verdict(IntEnum):
    """How usable a checkpoint is. The worst that applies wins, so the numbers are ordered."""

    OK = 0
    """Restorable, however odd it looks."""
    WARN = 1
    """Restorable, and a person should know something about it."""
    UNKNOWN = 2
    """A layout that is not ours (Orbax, GGUF, bare pickles, ...), which is no judgement about it."""
    INCOMPLETE = 3
    """Something that an index, a tag, a tracker or a world size names is not there (yet)."""
    CORRUPT = 4
    """A file that is there cannot be read back whole, or contradicts another one."""
    HOSTILE = 5
    """Reading it the usual way would run code, leave the directory or exhaust memory."""

    @property
    def word(self) -> str:
        return self.name.lower()


EXIT_CODE = {
    Verdict.OK: 0,
    Verdict.WARN: 0,
    Verdict.UNKNOWN: UnknownLayoutError.exit_code,
    Verdict.INCOMPLETE: IncompleteError.exit_code,
    Verdict.CORRUPT: CorruptError.exit_code,
    Verdict.HOSTILE: HostileError.exit_code,
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One finding. ``file`` is relative to the inspected folder; ``tensor`` names a tensor or a record inside it."""

    verdict: Verdict
    text: str
    file: str = ""
    tensor: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """One contiguous run of a tensor's bytes as stored: the whole tensor, or one chunk of a sharded one.

    ``start`` and ``nbytes`` are in bytes within ``file``; ``start`` is None where the bytes are not contiguous
    or not stored as they are (compressed records, strided views).
    """

    file: str
    nbytes: int
    start: int | None
    offsets: tuple[int, ...] = ()
    """Where the piece begins within the tensor, one number a dimension; empty for a whole tensor."""
    shape: tuple[int, ...] = ()
    crc64: int | None = None
    """CRC-64/NVME that training took of the bytes when it saved them; None where it took none. Nobody has compared it yet."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named tensor of a checkpoint. ``dtype`` is spelt as torch does without the prefix: ``float32``, ``bfloat16``."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]

    @property
    def nbytes(self) -> int:
        return sum(piece.nbytes for piece in self.pieces)


@dataclass(slots=True)
class Inspection:
    """The answer of :func:`seawall.checkpoint.inspect.inspect` about one checkpoint."""

    path: str
    """The folder (or file) that was judged, after links and pointers were resolved inside the root."""
    layout: str
    """torch-zip, torch-legacy, safetensors, safetensors-sharded, dcp, hf-trainer, deepspeed, megatron, rank-shards, opaque, unknown."""
    verdict: Verdict = Verdict.OK
    reasons: list[Reason] = field(default_factory=list)
    step: int | None = None
    world_size: int | None = None
    tensors: list[Tensor] = field(default_factory=list)
    commit_mark: str | None = None
    """File (relative to ``path``) whose presence says that the save finished; None where the layout has none or it is missing."""
    epoch: int | None = None
    """Epoch that the commit mark says the checkpoint was written in."""
    sums_digest: str | None = None
    """Digest that the commit mark gives of the sums that training took of its tensors; None where it took none."""
    files: list[str] = field(default_factory=list)
    """Files that belong to the checkpoint, relative to ``path``, sorted."""
    deep: bool = False
    """Whether record checksums were checked and values looked at."""

    def add(self, verdict: Verdict, text: str, file: str = "", tensor: str = "") -> None:
        """Record a finding; the verdict of the whole becomes the worse of the two."""
        self.reasons.append(Reason(verdict, text, file, tensor))
        self.verdict = max(self.verdict, verdict)

    def as_json(self) -> dict[str, Any]:
        """The object that ``seawall inspect --json`` prints."""
        return {
            "path": self.path,
            "verdict": self.verdict.word,
            "layout": self.layout,
            "step": self.step,
            "world_size": self.world_size,
            "epoch": self.epoch,
            "tensors": len(self.tensors),
            "tensor_bytes": str(sum(tensor.nbytes for tensor in self.tensors)),
            "files": len(self.files),
            "commit_mark": self.commit_mark,
            "deep": self.deep,
            "reasons": [
                {"verdict": reason.verdict.word, "file": reason.file, "tensor": reason.tensor, "text": reason.text}
                for reason in self.reasons
            ],
        }
