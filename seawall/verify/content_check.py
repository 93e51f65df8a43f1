"""Looking at tensors while files are rebuilt: checksums, numbers, and the state dict beside that of the checkpoint before."""

import threading
from dataclasses import dataclass

from seawall.vault.inventory import Inventory
from seawall.vault.piece_sums import spans_of
from seawall.vault.tensors import TensorRecord
from seawall.verify import evidence
from seawall.verify.piece_check import PieceCheck
from seawall.verify.value_counts import SpanValues, ValueSpan, width_of


@dataclass(frozen=True, slots=True)
class Before:
    """The checkpoint before, as far as the state dict goes."""

    sealing: str
    keys: frozenset[str]


def keys_of(inventory: Inventory) -> frozenset[str]:
    """The names in the state dict."""
    return frozenset(tensor.name for tensor in inventory.tensors)


class ContentCheck:
    """Watches what streams past; each file's chunks come in order, files come from several threads."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.pieces = PieceCheck(inventory)
        self._spans = _value_spans(inventory.tensors, [file.size for file in inventory.files])
        self._values: dict[int, SpanValues] = {}
        self._lock = threading.Lock()

    def observe(self, number: int, at: int, chunk: memoryview) -> None:
        """The chunk at byte ``at`` of file ``number``."""
        self.pieces.observe(number, at, chunk)
        with self._lock:
            values = self._values.setdefault(number, SpanValues(self._spans[number]))
        values.observe(at, chunk)

    def evidence(self, before: Before | None) -> dict[str, str]:
        """Counts for the proof; call it when all files are done. Only counts: who reads proofs learns no name and no value."""
        keys = keys_of(self._inventory)
        found = {"tensors": str(len(self._inventory.tensors)), "summed": str(self.pieces.summed), evidence.KEYS: str(len(keys))}
        if before is not None:
            found[evidence.KEYS_MISSING] = str(len(before.keys - keys))
            found[evidence.KEYS_NEW] = str(len(keys - before.keys))
            found[evidence.COMPARED_WITH] = before.sealing
        counts = [each for values in self._values.values() for each in values.counts]
        found[evidence.FLOATS] = str(sum(each.floats for each in counts))
        found[evidence.NONFINITE] = str(sum(each.nonfinite for each in counts))
        found[evidence.ZEROS] = str(sum(each.zeros for each in counts))
        found[evidence.SATURATED] = str(sum(each.saturated for each in counts))
        return found


def _value_spans(tensors: tuple[TensorRecord, ...], file_sizes: list[int]) -> list[list[ValueSpan]]:
    """For each file the distinct runs of numbers, in order of their start; none where checksums are not taken either."""
    dtypes: list[dict[tuple[int, int], str]] = [{} for _ in file_sizes]
    for tensor in tensors:
        width = width_of(tensor.dtype)
        for piece in tensor.pieces:
            if width is not None and piece.start is not None and piece.nbytes % width == 0:
                dtypes[piece.file].setdefault((piece.start, piece.nbytes), tensor.dtype)
    return [
        [ValueSpan(start, nbytes, of_file[start, nbytes]) for start, nbytes in spans if (start, nbytes) in of_file]
        for spans, of_file in zip(spans_of(tensors, file_sizes), dtypes, strict=True)
    ]
