"""How long a copy takes to a place, and whether all of it or only what is missing is sent. Pure.

The model: bytes at the rate of the link, or of the streams if their windows fill sooner; and the round trips that the requests cost,
spread over the transfers that run at once. It leaves out what a measurement would have to tell: loss on the way, a slow server, disks.
"""

from dataclasses import dataclass
from fractions import Fraction

FULL_BELOW_SECONDS = 300
"""A full copy that takes less is simply made: five minutes are within one task and one alert's patience, and a full copy depends on
nothing that is there already."""
STREAM_WINDOW_BYTES = 4 << 20
"""What one connection has on its way unacknowledged at most: Linux's largest send buffer unless it is raised (tcp(7), tcp_wmem)."""
REQUESTS_PER_OBJECT = 3
"""Opening a multipart upload, its last part, closing it. Every further part is one more."""
PART_BYTES = 8 << 20
"""The smallest part of an upload (DESIGN: max(8 MiB, size/9000))."""


@dataclass(frozen=True, slots=True)
class Link:
    """The way to a place."""

    bits_per_second: int
    round_trip_seconds: float = 0.0
    transfers: int = 16
    window_bytes: int = STREAM_WINDOW_BYTES

    @property
    def usable_bits_per_second(self) -> int:
        """The link's rate, or what its streams can have on their way at once in a round trip, if that is less (RFC 7323, section 1.1)."""
        if self.round_trip_seconds <= 0:
            return self.bits_per_second
        of_streams = Fraction(self.transfers * self.window_bytes * 8) / Fraction(str(self.round_trip_seconds))
        return max(1, min(self.bits_per_second, int(of_streams)))


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be copied. ``there_bytes`` of ``sealed_bytes`` lie at the place already, as identical objects."""

    sealed_bytes: int
    objects: int = 1
    there_bytes: int = 0
    there_objects: int = 0


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """What is sent, and how long it takes. ``line_seconds`` is the time of the bytes alone at the link's own rate."""

    mode: str
    """``full``, ``incremental`` or ``nothing``."""
    send_bytes: int
    send_objects: int
    seconds: float
    line_seconds: float
    full_seconds: float
    reasons: tuple[str, ...]


def sealed_size(plain_bytes: int, codec_ratio: float) -> int:
    """Bytes that a checkpoint has once sealed; ``codec_ratio`` is stored to plain, 1 without a codec. Rounded up."""
    ratio = Fraction(str(codec_ratio))
    return -(-plain_bytes * ratio.numerator // ratio.denominator)


def transfer_seconds(nbytes: int, objects: int, link: Link) -> float:
    """Time of ``nbytes`` in ``objects`` over ``link``."""
    requests = REQUESTS_PER_OBJECT * objects + nbytes // PART_BYTES
    turns = Fraction(requests, max(1, link.transfers)) * Fraction(str(link.round_trip_seconds))
    return float(Fraction(nbytes * 8, link.usable_bits_per_second) + turns)


def plan_transfer(load: Load, link: Link, full_below_seconds: int = FULL_BELOW_SECONDS) -> TransferPlan:
    """Everything if that takes less than ``full_below_seconds``, else only what is missing (R6).

    Objects that are there already are never stored twice, whatever is chosen; *full* means that nothing is asked about them first.
    """
    missing_bytes = load.sealed_bytes - load.there_bytes
    missing_objects = load.objects - load.there_objects
    full = transfer_seconds(load.sealed_bytes, load.objects, link)
    reasons = []
    if link.usable_bits_per_second < link.bits_per_second:
        reasons.append("the streams fill less than the link: more transfers, or larger windows, would be faster")
    if missing_bytes <= 0:
        return TransferPlan("nothing", 0, 0, 0.0, 0.0, full, (*reasons, "everything is there already"))
    if full < full_below_seconds:
        mode, nbytes, objects = "full", load.sealed_bytes, load.objects
        reasons.append(f"all of it takes less than {full_below_seconds} s")
    elif load.there_bytes <= 0:
        mode, nbytes, objects = "full", load.sealed_bytes, load.objects
        reasons.append("nothing of it is there yet")
    else:
        mode, nbytes, objects = "incremental", missing_bytes, missing_objects
        reasons.append(f"all of it takes {full_below_seconds} s or more, and a part is there already")
    line = float(Fraction(nbytes * 8, link.bits_per_second))
    return TransferPlan(mode, nbytes, objects, transfer_seconds(nbytes, objects, link), line, full, tuple(reasons))


def prediction_error(predicted_seconds: float, measured_seconds: float) -> float:
    """How far a prediction was off, as a share of what was measured: 0.1 is ten percent too long, -0.1 too short."""
    return (predicted_seconds - measured_seconds) / measured_seconds if measured_seconds > 0 else 0.0
