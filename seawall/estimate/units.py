"""Sizes in bytes and rates in bits per second, from the way people write them. Exact: nothing passes through floats.

GB and GiB, bits and bytes are kept apart, because a plan that mixes them is wrong by a factor that looks plausible: 2.8 TB over
25 Gbit/s take 896 s at line rate, not 112 and not 1147. Prefixes: SI brochure, table 7; IEC 80000-13, table of binary prefixes.
"""

import re
from fractions import Fraction

from seawall.errors import UsageError

_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18} | {
    "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60
}  # fmt: skip
_NUMBER = r"\s*(?P<number>\d+(?:\.\d+)?)\s*"
_PREFIX = r"(?P<prefix>[kKMGTPE]i?|)"
_SIZE = re.compile(_NUMBER + _PREFIX + r"B\s*")
_RATE = re.compile(_NUMBER + _PREFIX + r"(?P<unit>bit/s|b/s|bps|B/s)\s*")
_SECONDS = {"ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600)}
_TIME = re.compile(_NUMBER + r"(?P<unit>ms|s|min|h)\s*")
_BYTES_ALONE = re.compile(r"\s*\d+\s*")


def parse_bytes(text: str) -> int:
    """``2.8TB``, ``16 GiB``, ``512 B``, or a bare number of bytes. ``UsageError`` for anything else, ``Gb`` above all."""
    if _BYTES_ALONE.fullmatch(text):
        return int(text)
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError("this is no size", where=text, why="a size ends in B, as in 2.8TB or 16GiB; b would be bits", do="write the unit")
    return _whole(match, 1, text)


def parse_bits_per_second(text: str) -> int:
    """``25Gbit/s``, ``25Gbps``, ``3.1GB/s`` (bytes, times eight). ``UsageError`` for anything else, a bare number above all."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise UsageError("this is no rate", where=text, why="a rate ends in bit/s or B/s, as in 25Gbit/s or 3.1GB/s", do="write the unit")
    rate = _whole(match, 8 if match["unit"] == "B/s" else 1, text)
    if rate == 0:
        raise UsageError("nothing moves at this rate", where=text)
    return rate


def parse_seconds(text: str) -> float:
    """``80ms``, ``0.08s``, ``2min``, ``12h``. ``UsageError`` for anything else."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise UsageError("this is no time", where=text, why="a time ends in ms, s, min or h, as in 80ms", do="write the unit")
    return float(Fraction(match["number"]) * _SECONDS[match["unit"]])


def _whole(match: "re.Match[str]", factor: int, text: str) -> int:
    prefix = match["prefix"]
    # K is no SI prefix, but nobody means kelvin.
    scale = _PREFIXES["k" if prefix == "K" else prefix]
    value = Fraction(match["number"]) * scale * factor
    if value.denominator != 1:
        raise UsageError("this comes to a fraction of a byte or bit", where=text)
    return int(value)


def bytes_text(nbytes: int) -> str:
    """``2.80 TB``: decimal, because links and disks are sold so; bytes below a thousand stand as they are."""
    return _text(nbytes, "B")


def rate_text(bits_per_second: int) -> str:
    """``25.0 Gbit/s``."""
    return _text(bits_per_second, "bit/s")


def _text(value: int, unit: str) -> str:
    if value < 1000:
        return f"{value} {unit}"
    for prefix in ("k", "M", "G", "T", "P", "E"):
        scale = _PREFIXES[prefix]
        # What would round to 1000 of one prefix is 1.00 of the next.
        if value * 1000 < scale * 999_500 or prefix == "E":
            return f"{value / scale:.3g} {prefix}{unit}"
    raise AssertionError("unreachable: E takes everything")


def seconds_text(seconds: float) -> str:
    """``14 min 56 s``, ``2.4 s``, ``3 d 4 h``: two units, which is as much as an estimate knows."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for large, small, name, below in ((86400, 3600, "d", "h"), (3600, 60, "h", "min"), (60, 1, "min", "s")):
        if whole >= large:
            return f"{whole // large} {name} {whole % large // small} {below}"
    return f"{whole} s"
