"""Checksums of tensor pieces, taken again while files are rebuilt and compared with those of save time."""

import threading

from seawall.vault.inventory import Inventory
from seawall.vault.piece_sums import PieceSums, spans_of


class PieceCheck:
    """Sums what streams past; each file's chunks come in order, files come from several threads."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._spans = spans_of(inventory.tensors, [file.size for file in inventory.files])
        self._sums: dict[int, PieceSums] = {}
        self._lock = threading.Lock()
        self.summed = 0
        """Pieces that were compared."""

    def observe(self, number: int, at: int, chunk: memoryview) -> None:
        """The chunk at byte ``at`` of file ``number``."""
        with self._lock:
            sums = self._sums.setdefault(number, PieceSums(self._spans[number]))
        sums.observe(at, chunk)

    def problems(self) -> list[tuple[str, str]]:
        """(tensor, why) for each piece whose checksum is another than at save time. Call it when all files are done."""
        crcs = {
            (number, start, nbytes): crc
            for number, sums in self._sums.items()
            for (start, nbytes), crc in zip(self._spans[number], sums.result(), strict=True)
        }
        found = []
        for tensor in self._inventory.tensors:
            for piece in tensor.pieces:
                if piece.crc64 is None or piece.start is None:
                    continue
                self.summed += 1
                if crcs.get((piece.file, piece.start, piece.nbytes)) != piece.crc64:
                    found.append((tensor.name, f"its bytes in {self._inventory.files[piece.file].name} are not those of save time"))
        return found
