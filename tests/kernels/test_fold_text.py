"""The written fold: the committed text is the generator's, and its statements are division by P, with words for bits."""

import random

from seawall.kernels.crc64 import POLYNOMIAL
from seawall.kernels.fold_text import fold_statements, fold_text
from seawall.kernels.programs import program_text


def test_the_committed_text_is_the_generated_one() -> None:
    assert program_text("crc64_fold") == fold_text(), "python -m seawall.kernels.fold_text > kernels/cu/crc64_fold.cu"


def test_eight_words_at_once_are_eight_steps_of_the_shift_register() -> None:
    """The C statements are Python as well, but for the declarations."""
    draw = random.Random(4)
    state = [draw.getrandbits(32) for _ in range(64)]
    word = [draw.getrandbits(32) for _ in range(8)]
    expected = list(state)
    for one in word:
        top = expected.pop()
        expected.insert(0, one)
        expected = [value ^ (top if POLYNOMIAL >> i & 1 else 0) for i, value in enumerate(expected)]
    names = {"state": state, "word": word}
    for statement in fold_statements():
        exec(statement.removeprefix("const u32 ").removesuffix(";"), names)
    assert state == expected


def test_it_takes_twelve_three_input_operations_a_word() -> None:
    operations = sum((statement.count(" ^ ") + 1) // 2 for statement in fold_statements())
    assert operations / 8 <= 12
