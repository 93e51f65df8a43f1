"""The sums that training took of its tensors, brought to the pieces that an inspection found, and compared with what is stored.

They show what no checksum of a file can: a bit that flipped between the tensor in memory and the file, before the file was written.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256

from seawall.checkpoint.inspection import Piece, Tensor, Verdict
from seawall.checkpoint.look import Look, plain_name
from seawall.checkpoint.reading import Readable
from seawall.checkpoint.sums_file import MAX_BYTES, SUMS_FILE, TensorSum, decode_sums, joint_digest, sums_name
from seawall.checkpoint.tree import Folder
from seawall.checkpoint.values import spans
from seawall.errors import CorruptError
from seawall.kernels.crc64 import crc64

NamedPiece = tuple[str, Piece]
"""A tensor's name and one of its pieces."""

NOT_THE_BYTES = "its bytes are not those that training had in memory when it saved"
_MAX_NAMED = 100
_WITH_TENSORS = (Verdict.OK, Verdict.WARN, Verdict.CORRUPT)
"""Verdicts beside which the tensors were looked at: a checkpoint that is not whole lacks pieces for another reason."""


def note_tensor_sums(look: Look) -> None:
    """Give the pieces of ``look.found`` the sums of save time, where the commit mark says that there are any. A deep look reads the
    bytes and tells which of them are others."""
    found = look.found
    if found.sums_digest is None or found.layout != "dcp" or found.verdict not in _WITH_TENSORS:
        return
    with look.guarded(look.mark):
        _attach(found.tensors, _read(look, found.sums_digest))
        for name, piece in other_pieces(look.folder, summed_pieces(found.tensors)) if look.deep else ():
            found.add(Verdict.CORRUPT, NOT_THE_BYTES, piece.file, name)


def summed_pieces(tensors: Iterable[Tensor]) -> list[NamedPiece]:
    """The pieces that training took a sum of."""
    return [(tensor.name, piece) for tensor in tensors for piece in tensor.pieces if piece.crc64 is not None]


def other_pieces(folder: Folder, pieces: Iterable[NamedPiece]) -> Iterator[NamedPiece]:
    """Those of ``pieces`` (all with a sum) whose bytes are not the ones that training summed, the first hundred. Reads all of them.

    Raises what :meth:`Folder.open` raises for a file that cannot be read.
    """
    by_file: dict[str, list[NamedPiece]] = {}
    for name, piece in pieces:
        by_file.setdefault(piece.file, []).append((name, piece))
    named = 0
    for file, of_file in sorted(by_file.items()):
        with folder.open(file) as source:
            for name, piece in of_file:
                if not _as_summed(source, piece):
                    yield name, piece
                    named += 1
                    if named == _MAX_NAMED:
                        return


def _as_summed(source: Readable, piece: Piece) -> bool:
    assert piece.start is not None
    crc = 0
    for block in spans(source, piece.start, piece.nbytes):
        crc = crc64(block, crc)
    return crc == piece.crc64


def _read(look: Look, digest: str) -> list[TensorSum]:
    """All ranks' sums, after comparing their files with the commit mark's digest."""
    ranks = sum(1 for name in look.folder.names() if SUMS_FILE.fullmatch(name))
    sums: list[TensorSum] = []
    digests = []
    for rank in range(ranks):
        if not look.folder.has(sums_name(rank)):
            raise CorruptError(f"{sums_name(rank)} is not there, tensor sums of {ranks} ranks are")
        raw = look.folder.read(sums_name(rank), MAX_BYTES)
        digests.append(sha256(raw).digest())
        sums += decode_sums(raw, rank, sums_name(rank))
    if joint_digest(digests) != digest:
        raise CorruptError(
            "the tensor sums are not those that the commit mark names", why=f"{ranks} files tensor_sums_*.json are there: lost or damaged"
        )
    return sums


def _attach(tensors: list[Tensor], sums: list[TensorSum]) -> None:
    known = {(plain_name(one.name), one.offsets): one for one in sums}
    if len(known) != len(sums):
        raise CorruptError("the tensor sums name one piece twice")
    here = {(tensor.name, piece.offsets) for tensor in tensors for piece in tensor.pieces}
    lost = sorted(name for name, _ in known.keys() - here)
    if lost:
        raise CorruptError(f"training saved {lost[0]}, and no such piece is here", why=f"{len(lost)} pieces that were summed are not")
    for number, tensor in enumerate(tensors):
        pieces = tuple(_with_sum(tensor, piece, known.get((tensor.name, piece.offsets))) for piece in tensor.pieces)
        tensors[number] = replace(tensor, pieces=pieces)


def _with_sum(tensor: Tensor, piece: Piece, said: TensorSum | None) -> Piece:
    if said is None or piece.start is None:
        return piece
    if said.nbytes != piece.nbytes:
        raise CorruptError(f"training summed {said.nbytes} bytes of {tensor.name} at {list(piece.offsets)}, {piece.nbytes} are stored")
    return replace(piece, crc64=said.crc64)
