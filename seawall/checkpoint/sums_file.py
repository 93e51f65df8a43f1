"""``tensor_sums_<rank>.json``: what training says of the bytes of each tensor that a rank saved.

One object, in a file of its own for each rank, beside what it is about and durable before the commit mark::

    {"format": 1, "rank": 0, "algorithm": "CRC-64/NVME",
     "tensors": [{"name": "model.w", "offsets": [0, 0], "nbytes": "4096", "crc64": "ae8b14860a799888", "at": "cpu"}]}

``name`` is the name in DCP's metadata and ``offsets`` the place of the saved piece in the whole tensor, one number a dimension.
``nbytes`` is the length of the piece and ``crc64`` the CRC-64/NVME of its elements in C order, little-endian. ``at`` says where the
bytes were when they were summed: ``cpu`` in host memory, ``cuda`` in GPU memory before the copy to the host. The commit mark names the
digest of all ranks' files (:func:`joint_digest`), so that one that is lost or damaged is not taken for a save without sums.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from seawall.checkpoint import strict_json
from seawall.errors import CorruptError

SUMS_FILE = re.compile(r"tensor_sums_(\d{5,9})\.json")
MAX_BYTES = 64 << 20
"""Some hundred thousand pieces a rank."""
FORMAT = 1
ALGORITHM = "CRC-64/NVME"
_CRC = re.compile(r"[0-9a-f]{16}")
_COUNT = re.compile(r"0|[1-9][0-9]{0,18}")
PLACES = ("cpu", "cuda")


@dataclass(frozen=True, slots=True)
class TensorSum:
    """One saved piece of a tensor."""

    name: str
    offsets: tuple[int, ...]
    nbytes: int
    crc64: int
    at: str
    """One of :data:`PLACES`."""


def sums_name(rank: int) -> str:
    """The name of a rank's file, in the folder of the checkpoint."""
    return f"tensor_sums_{rank:05d}.json"


def encode_sums(rank: int, sums: Iterable[TensorSum]) -> bytes:
    """The bytes of a rank's file."""
    rows = [{"name": s.name, "offsets": list(s.offsets), "nbytes": str(s.nbytes), "crc64": f"{s.crc64:016x}", "at": s.at} for s in sums]
    return json.dumps({"format": FORMAT, "rank": rank, "algorithm": ALGORITHM, "tensors": rows}).encode() + b"\n"


def decode_sums(raw: bytes, rank: int, where: str) -> list[TensorSum]:
    """Read a rank's file. :class:`CorruptError` for anything else."""
    said = strict_json.parse_object(raw, where, "the tensor sums")
    if (said.get("format"), said.get("rank"), said.get("algorithm")) != (FORMAT, rank, ALGORITHM):
        raise CorruptError("these are no tensor sums of this rank", where=where, why=f"format {said.get('format')!r}"[:80])
    rows = said.get("tensors")
    if not isinstance(rows, list):
        raise CorruptError("the tensor sums have no list of tensors", where=where)
    return [_decode_row(row, where) for row in rows]


def _decode_row(row: Any, where: str) -> TensorSum:
    if isinstance(row, dict):
        name, offsets, nbytes, crc, at = (row.get(field) for field in ("name", "offsets", "nbytes", "crc64", "at"))
        if (
            isinstance(name, str)
            and isinstance(offsets, list)
            and all(isinstance(offset, int) and not isinstance(offset, bool) and 0 <= offset < 1 << 63 for offset in offsets)
            and isinstance(nbytes, str)
            and _COUNT.fullmatch(nbytes)
            and isinstance(crc, str)
            and _CRC.fullmatch(crc)
            and at in PLACES
        ):
            return TensorSum(name, tuple(offsets), int(nbytes), int(crc, 16), str(at))
    raise CorruptError("a row of the tensor sums cannot be read", where=where, why=repr(row)[:120])


def joint_digest(digests: Sequence[bytes]) -> str:
    """What the commit mark names: SHA-256 over the SHA-256 of each rank's file, in order of ranks, in hex."""
    return sha256(b"".join(digests)).hexdigest()
