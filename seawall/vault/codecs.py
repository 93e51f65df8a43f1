"""Codecs: what a sealing asks for, and what the first byte of a record's plaintext says about the rest."""

from enum import IntEnum

from seawall.errors import CorruptError, UsageError
from seawall.vault.header import UnsupportedFormatError
from seawall.vault.zstd_frames import unpack_frame


class Codec(IntEnum):
    """How the files of a sealing are packed. The numbers are part of the format: the field ``codec`` of a plan."""

    NONE = 0
    ZSTD = 1
    FAST = 2
    """Byte planes, as quick as they can be; each record stands alone."""
    BALANCED = 3
    """Byte planes; weights that are the cast of an earlier master copy are derived from it."""
    SMALL = 4
    """The same with a longer search: slower to seal, as quick to open."""

    @property
    def has_planes(self) -> bool:
        return self >= Codec.FAST

    @property
    def derives(self) -> bool:
        return self >= Codec.BALANCED


class Packing(IntEnum):
    """The first byte of a record's plaintext. The numbers are part of the format."""

    NONE = 0
    ZSTD = 1
    PLANES = 2


def codec_named(name: str) -> Codec:
    """The codec that a configuration or a command line names; :class:`UsageError` where there is none."""
    try:
        return Codec[name.upper()]
    except KeyError:
        raise UsageError(
            "there is no such codec", where=name, do=f"use one of {', '.join(codec.name.lower() for codec in Codec)}"
        ) from None


def codec_of_plan(number: int, where: str) -> Codec:
    """The codec that a plan asks for; :class:`UnsupportedFormatError` for a number of a newer seawall."""
    try:
        return Codec(number)
    except ValueError:
        raise UnsupportedFormatError(
            "the plan asks for a codec that this writer does not know",
            where=where,
            why=f"codec {number}",
            do="finish the sync with the seawall that planned it, or a newer one",
        ) from None


def unpack(packing: int, payload: memoryview, limit: int) -> bytes | memoryview:
    """The chunk back, at most ``limit`` bytes, of the packings that need nothing but their payload (planes.py has the third).

    Raises :class:`CorruptError` for anything else.
    """
    if packing == Packing.NONE:
        if len(payload) > limit:
            raise CorruptError("a record holds more than its chunk size")
        return payload
    if packing != Packing.ZSTD:
        raise UnsupportedFormatError("a record uses a codec that this reader does not know", why=f"codec {packing}")
    return unpack_frame(payload, limit)
