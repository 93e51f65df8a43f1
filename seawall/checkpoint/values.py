"""Looking at values: the deep part of an inspection, and the only one that needs numpy."""

from collections.abc import Iterable

from seawall.checkpoint.dtypes import BITS, can_be_non_finite
from seawall.checkpoint.reading import BLOCK, Readable
from seawall.kernels.nonfinite import Finiteness, count


def finiteness(blocks: Iterable[bytes], dtype: str) -> Finiteness:
    """Counts over blocks of one run of elements; a block may end inside an element."""
    total = Finiteness()
    width = max(1, BITS.get(dtype, 8) // 8)
    rest = b""
    for block in blocks:
        block = rest + block if rest else block
        whole = len(block) // width * width
        rest = block[whole:]
        found = count(memoryview(block)[:whole], dtype)
        if found.sound and block.strip(b"\0"):
            found = Finiteness(other_than_zero=1)
        total += found
    return total


def spans(source: Readable, start: int, nbytes: int) -> Iterable[bytes]:
    """A range of a file, block by block."""
    end = start + nbytes
    while start < end:
        block = source.read(start, min(BLOCK, end - start))
        if not block:
            return
        yield block
        start += len(block)


def complaint(found: Finiteness) -> str:
    """What to say about a tensor, or an empty text.

    A tensor of zeros and minus infinities is an attention mask, which many models keep as a buffer.
    """
    if found.sound:
        return ""
    if not found.nan and not found.positive_infinity and not found.other_than_zero:
        return ""
    infinite = found.positive_infinity + found.negative_infinity
    return f"values that are not finite: {found.nan} NaN, {infinite} infinite"


def look(source: Readable, start: int, nbytes: int, dtype: str) -> str:
    """The complaint about one stored run of elements, empty when all is well."""
    if not can_be_non_finite(dtype) or nbytes == 0:
        return ""
    return complaint(finiteness(spans(source, start, nbytes), dtype))
