"""Tensors as the plan and the inventory of a sealing record them."""

from collections.abc import Sequence
from dataclasses import dataclass

from seawall.errors import CorruptError
from seawall.vault import canonical
from seawall.vault.canonical import Document


@dataclass(frozen=True, slots=True)
class TensorPiece:
    """One run of a tensor's bytes. ``file`` is a file's number, ``start`` and ``nbytes`` are bytes within it.

    ``start`` is None where the bytes are not contiguous or not stored as they are. ``crc64`` is CRC-64/NVME of the bytes: in a plan the one
    that training took when it saved, None where it took none; in an inventory that of the bytes that were sealed, None where there is
    no ``start``.
    """

    file: int
    nbytes: int
    start: int | None
    offsets: tuple[int, ...]
    shape: tuple[int, ...]
    crc64: int | None = None


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor as it was at save time."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[TensorPiece, ...]


def encode_tensors(tensors: Sequence[TensorRecord]) -> list[Document]:
    return [
        {"name": tensor.name, "dtype": tensor.dtype, "shape": _numbers(tensor.shape), "pieces": [_encode_piece(p) for p in tensor.pieces]}
        for tensor in tensors
    ]


def decode_tensors(document: Document, files: int, where: str) -> tuple[TensorRecord, ...]:
    """Read the field ``tensors`` of a document that has ``files`` files."""
    return tuple(
        TensorRecord(
            canonical.text_field(item, "name", where=where, most=1 << 16, empty=True),
            canonical.text_field(item, "dtype", where=where, empty=True),
            _parse_numbers(item.get("shape"), where),
            tuple(_decode_piece(piece, files, where) for piece in canonical.objects_field(item, "pieces", where=where)),
        )
        for item in canonical.objects_field(document, "tensors", where=where, most=100_000_000)
    )


def _numbers(values: tuple[int, ...]) -> str:
    return ",".join(canonical.number(value) for value in values)


def _parse_numbers(text: object, where: str) -> tuple[int, ...]:
    if not isinstance(text, str):
        raise CorruptError("a list of numbers is not text", where=where)
    return tuple(canonical.parse_number(part, where=where) for part in text.split(",")) if text else ()


def _encode_piece(piece: TensorPiece) -> Document:
    return {
        "file": canonical.number(piece.file),
        "nbytes": canonical.number(piece.nbytes),
        "start": None if piece.start is None else canonical.number(piece.start),
        "offsets": _numbers(piece.offsets),
        "shape": _numbers(piece.shape),
        "crc64": None if piece.crc64 is None else f"{piece.crc64:016x}",
    }


def _decode_piece(item: Document, files: int, where: str) -> TensorPiece:
    if files == 0:
        raise CorruptError("a tensor lies in a file that is not there", where=where)
    start, crc = item.get("start"), item.get("crc64")
    return TensorPiece(
        canonical.number_field(item, "file", where=where, most=files - 1),
        canonical.number_field(item, "nbytes", where=where),
        None if start is None else canonical.parse_number(start, where=where),
        _parse_numbers(item.get("offsets"), where),
        _parse_numbers(item.get("shape"), where),
        None if crc is None else int(canonical.hex_text(crc, 8, where=where), 16),
    )
