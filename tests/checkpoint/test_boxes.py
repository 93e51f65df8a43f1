"""Chunks tile a tensor or they do not: cuts of a box always do, a moved, dropped or doubled one never does."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.checkpoint.boxes import Box, tiling_fault, volume

SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=3)


@st.composite
def tilings(draw: st.DrawFn) -> tuple[list[int], list[Box]]:
    """A shape and a grid of boxes that fills it."""
    shape = draw(SHAPES)
    boxes: list[Box] = [((), ())]
    for length in shape:
        cuts = sorted({0, length, *draw(st.lists(st.integers(0, length), max_size=3))})
        spans = list(pairwise(cuts))
        boxes = [((*offsets, a), (*lengths, b - a)) for offsets, lengths in boxes for a, b in spans]
    return shape, draw(st.permutations(boxes))


@settings(deadline=None)
@given(tilings())
def test_a_grid_tiles(case: tuple[list[int], list[Box]]) -> None:
    shape, boxes = case
    assert tiling_fault(shape, boxes) == ""
    empty: Box = (tuple(0 for _ in shape), (0, *shape[1:]))
    assert tiling_fault(shape, [*boxes, empty]) == "", "a box without elements changes nothing"


@settings(deadline=None)
@given(tilings(), st.data())
def test_a_missing_or_doubled_box_is_found(case: tuple[list[int], list[Box]], data: st.DataObject) -> None:
    shape, boxes = case
    index = data.draw(st.integers(0, len(boxes) - 1))
    assert "nowhere" in tiling_fault(shape, boxes[:index] + boxes[index + 1 :])
    assert "overlap" in tiling_fault(shape, [*boxes, boxes[index]])
    offsets, lengths = boxes[index]
    moved: Box = ((offsets[0] + 1, *offsets[1:]), lengths)
    assert tiling_fault(shape, [*boxes[:index], moved, *boxes[index + 1 :]]) != ""


def test_a_number_by_itself() -> None:
    assert tiling_fault((), [((), ())]) == ""
    assert "twice" in tiling_fault((), [((), ()), ((), ())])
    assert "nowhere" in tiling_fault((), [])
    assert volume(()) == 1


def test_ten_thousand_rows_are_quick() -> None:
    boxes: list[Box] = [((row, 0), (1, 8)) for row in range(10_000)]
    assert tiling_fault((10_000, 8), boxes) == ""
