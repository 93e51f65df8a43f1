"""Coding one plane: stored, or a zstd frame made in the way that a sample says is worth its time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seawall.vault.codecs import Codec
from seawall.vault.zstd_frames import Search, pack_frame

if TYPE_CHECKING:
    import numpy

    Bytes = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]

SAMPLE_PLACES = 8
SAMPLE_PLACE_BYTES = 4096
"""A plane is judged by so many places of so many bytes: enough for a table of 256 codes, and 2 % of a plane of 2 MiB."""
_SMALL_BYTES = 2 * SAMPLE_PLACES * SAMPLE_PLACE_BYTES
"""Up to this a plane is coded in every way, and the shortest taken."""
_LEAST_BYTES = 32
"""A frame's own fields take half of this."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What is tried. A later search must come below ``keep`` times the best before it, because samples err by a little; what is not below
    ``gain`` is stored."""

    searches: tuple[Search, ...]
    keep: float
    gain: float


EFFORTS = {
    # The entropy coder is half again as quick as level 1 both ways, where both are as good.
    Codec.FAST: Effort((Search.ENTROPY, Search.QUICK), keep=0.95, gain=0.97),
    Codec.BALANCED: Effort((Search.ENTROPY, Search.QUICK), keep=0.99, gain=0.99),
    Codec.SMALL: Effort((Search.ENTROPY, Search.QUICK, Search.PATIENT), keep=0.99, gain=0.999),
}


def code_plane(plane: "Bytes", effort: Effort) -> bytes | None:
    """The plane as a frame, or None where it is better stored."""
    count = len(plane)
    if count < _LEAST_BYTES:
        return None
    sample = plane if count <= _SMALL_BYTES else _sample(plane)
    best, chosen, frame = effort.gain * len(sample), None, b""
    for search in effort.searches:
        coded = pack_frame(sample, search)
        if len(coded) < (best if chosen is None else effort.keep * best):
            best, chosen, frame = len(coded), search, coded
    if chosen is None:
        return None
    if sample is not plane:
        frame = pack_frame(plane, chosen)
    return frame if len(frame) < count else None


def _sample(plane: "Bytes") -> "Bytes":
    """Places at equal distances, the first bytes and the last among them."""
    import numpy

    step = (len(plane) - SAMPLE_PLACE_BYTES) // (SAMPLE_PLACES - 1)
    return numpy.concatenate([plane[place * step : place * step + SAMPLE_PLACE_BYTES] for place in range(SAMPLE_PLACES)])
