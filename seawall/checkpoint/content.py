"""What one file (or one chunk of one) turned out to hold: its kind, its tensors, its inert objects, and what is wrong with it."""

from dataclasses import dataclass, field

from seawall.checkpoint.inspection import Piece, Tensor, Verdict
from seawall.checkpoint.pickles.nodes import Node


@dataclass(frozen=True, slots=True)
class Trouble:
    """One finding inside a file."""

    verdict: Verdict
    text: str
    tensor: str = ""


@dataclass(slots=True)
class Content:
    """A file's structure. ``kind`` is torch-zip, torch-legacy, safetensors, or the name of something that is not ours."""

    kind: str
    tensors: list[Tensor] = field(default_factory=list)
    top: Node = None
    """The object that a torch file holds, as inert nodes."""
    metadata: dict[str, str] = field(default_factory=dict)
    """The free text map of a safetensors header."""
    troubles: list[Trouble] = field(default_factory=list)
    ours: bool = True

    def add(self, verdict: Verdict, text: str, tensor: str = "") -> None:
        self.troubles.append(Trouble(verdict, text, tensor))

    @property
    def usable(self) -> bool:
        """Whether the structure can be relied on."""
        return all(trouble.verdict < Verdict.CORRUPT for trouble in self.troubles)


def whole(name: str, dtype: str, shape: tuple[int, ...], file: str, start: int | None, nbytes: int) -> Tensor:
    """A tensor that lies in one piece."""
    return Tensor(name, dtype, shape, (Piece(file, nbytes, start, (), shape),))
