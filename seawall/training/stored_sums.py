"""Before a checkpoint is loaded: are the stored tensors those that were in memory when it was saved?"""

import heapq

from seawall.checkpoint.tensor_sums import NOT_THE_BYTES, NamedPiece, other_pieces
from seawall.checkpoint.tree import Folder
from seawall.errors import CorruptError, SeawallError
from seawall.training.ranks import Ranks


def check_stored(folder: str, pieces: list[NamedPiece], ranks: Ranks) -> None:
    """Read the pieces (rank 0's; all with a sum) and compare them with their sums, each rank its share.

    Every rank raises the same :class:`CorruptError`, which names a file and a tensor, or what one of them met while reading.
    """
    mine = ranks.scatter(shares(pieces, ranks.size))
    failure: SeawallError | None = None
    try:
        for name, piece in other_pieces(Folder(folder, folder), mine):
            failure = CorruptError(
                "a stored tensor is not what was saved",
                where=f"{folder} {piece.file} {name}",
                why=NOT_THE_BYTES,
                do="load an older step, or bring this one back with `seawall restore`; `seawall inspect --deep` names all of them",
            )
            break
    except SeawallError as error:
        failure = error
    failures = [one for one in ranks.gather(failure) if one is not None]
    if failures:
        raise failures[0]


def shares(pieces: list[NamedPiece], count: int) -> list[list[NamedPiece]]:
    """``pieces`` in ``count`` parts of about as many bytes, the largest pieces first. Pure."""
    parts: list[list[NamedPiece]] = [[] for _ in range(count)]
    sizes = [(0, number) for number in range(count)]
    for name, piece in sorted(pieces, key=lambda one: one[1].nbytes, reverse=True):
        nbytes, number = heapq.heappop(sizes)
        parts[number].append((name, piece))
        heapq.heappush(sizes, (nbytes + piece.nbytes, number))
    return parts
