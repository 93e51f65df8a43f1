"""Whether boxes tile a tensor: disjoint and without holes. Pure arithmetic on integers."""

from collections.abc import Sequence

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""(offsets, lengths)"""


def volume(lengths: Sequence[int]) -> int:
    """Elements of a box; 1 for no dimensions."""
    product = 1
    for length in lengths:
        product *= length
    return product


def tiling_fault(shape: Sequence[int], boxes: Sequence[Box]) -> str:
    """What is wrong with ``boxes`` as a tiling of ``shape``; empty when nothing is. Boxes without elements do not count.

    A hole matters because the stock loader leaves such rows as they were in memory, without a word.
    """
    solid = [box for box in boxes if volume(box[1]) > 0]
    for offsets, lengths in solid:
        if any(offset + length > whole for offset, length, whole in zip(offsets, lengths, shape, strict=True)):
            return f"the chunk at {list(offsets)} of {list(lengths)} lies outside of {list(shape)}"
    clash = _overlap(solid)
    if clash:
        return clash
    covered, wanted = sum(volume(lengths) for _, lengths in solid), volume(shape)
    if covered != wanted:
        return f"chunks cover {covered} of {wanted} elements: the rest is nowhere"
    return ""


def _overlap(boxes: Sequence[Box]) -> str:
    """Sweep along the dimension with most distinct offsets, so that row-sharded tensors cost n log n."""
    if len(boxes) < 2:
        return ""
    dimensions = len(boxes[0][0])
    if dimensions == 0:
        return "a tensor without dimensions is stored twice"
    axis = max(range(dimensions), key=lambda dimension: len({offsets[dimension] for offsets, _ in boxes}))
    active: list[Box] = []
    for box in sorted(boxes, key=lambda box: box[0][axis]):
        active = [other for other in active if other[0][axis] + other[1][axis] > box[0][axis]]
        for other in active:
            if all(
                a < b + length_b and b < a + length_a for a, length_a, b, length_b in zip(box[0], box[1], other[0], other[1], strict=True)
            ):
                return f"the chunks at {list(other[0])} and {list(box[0])} overlap"
        active.append(box)
    return ""
