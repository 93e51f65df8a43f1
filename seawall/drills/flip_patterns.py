"""Errors to put into chunks: which bits are flipped, drawn from a seed.

A bit's position is 8 × its byte + its place in the byte, the lowest bit being 0. That is the order in which reflected CRCs take bits,
so a burst here is a burst to them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

BLOCK_TRIALS = 1 << 15
"""Trials drawn at once: bounds the memory, a burst of 256 bits takes up to 2 KiB."""
SHORT_BURST = (2, 64)
LONG_BURST = (65, 256)
"""Shortest and longest burst in bits, both ends counted and flipped; lengths are drawn evenly."""


@dataclass(frozen=True, slots=True)
class Flips:
    """The errors of some trials. A trial has ``parts`` parts, one for each chunk that it touches; each chunk is checked by itself."""

    positions: "NDArray[numpy.int64]"
    """Of all flipped bits, part by part, each within its own chunk."""
    starts: "NDArray[numpy.int64]"
    """Where each part begins in ``positions``; no part is empty."""
    parts: int

    @property
    def trials(self) -> int:
        return len(self.starts) // self.parts

    def of_trial(self, trial: int) -> list[list[int]]:
        """The positions of one trial, a list for each part."""
        bounds = [*self.starts[trial * self.parts : (trial + 1) * self.parts + 1].tolist(), len(self.positions)]
        return [self.positions[bounds[part] : bounds[part + 1]].tolist() for part in range(self.parts)]


Draw = Callable[["numpy.random.Generator", int, int], Flips]
"""Generator, bits of a chunk, trials → errors."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A kind of error."""

    name: str
    draw: Draw

    def blocks(self, seed: int, chunk_bits: int, trials: int) -> Iterator[Flips]:
        """``trials`` errors in blocks. The same seed and pattern give the same errors, with one version of numpy."""
        import numpy

        number = [pattern.name for pattern in PATTERNS].index(self.name)
        random = numpy.random.Generator(numpy.random.PCG64(numpy.random.SeedSequence([seed, number])))
        for done in range(0, trials, BLOCK_TRIALS):
            yield self.draw(random, chunk_bits, min(BLOCK_TRIALS, trials - done))


def _scattered(count: int) -> Draw:
    def draw(random: "numpy.random.Generator", chunk_bits: int, trials: int) -> Flips:
        import numpy

        chosen = random.integers(0, chunk_bits, (trials, 1))
        for more in range(1, count):
            # Evenly among the positions that are left: each one at or below it that is taken moves it up by one.
            position = random.integers(0, chunk_bits - more, (trials, 1))
            chosen.sort(axis=1)
            for taken in range(more):
                position += position >= chosen[:, taken : taken + 1]
            chosen = numpy.concatenate([chosen, position], axis=1)
        return Flips(chosen.reshape(-1), numpy.arange(trials, dtype=numpy.int64) * count, 1)

    return draw


def _bursts(random: "numpy.random.Generator", shortest: int, longest: int, trials: int) -> "tuple[Any, Any]":
    """Lengths, and for each a row of bits that is true where one is flipped."""
    import numpy

    lengths = random.integers(shortest, longest + 1, trials)
    columns = numpy.arange(longest)
    flipped = random.integers(0, 2, (trials, longest), dtype=numpy.uint8).astype(bool) & (columns < lengths[:, None])
    flipped[:, 0] = True
    flipped[numpy.arange(trials), lengths - 1] = True
    return lengths, flipped


def _one_burst(shortest: int, longest: int) -> Draw:
    def draw(random: "numpy.random.Generator", chunk_bits: int, trials: int) -> Flips:
        import numpy

        lengths, flipped = _bursts(random, shortest, longest, trials)
        first = random.integers(0, chunk_bits - lengths + 1)
        positions = (first[:, None] + numpy.arange(longest))[flipped]
        counts = flipped.sum(axis=1, dtype=numpy.int64)
        return Flips(positions, numpy.cumsum(counts) - counts, 1)

    return draw


def _across_a_border(random: "numpy.random.Generator", chunk_bits: int, trials: int) -> Flips:
    """A short burst whose first bits are the last of one chunk and whose other bits are the first of the next."""
    import numpy

    lengths, flipped = _bursts(random, *SHORT_BURST, trials)
    cut = random.integers(1, lengths)[:, None]
    columns = numpy.arange(flipped.shape[1])
    positions = numpy.where(columns < cut, chunk_bits - cut + columns, columns - cut)[flipped]
    before = (flipped & (columns < cut)).sum(axis=1, dtype=numpy.int64)
    counts = numpy.stack([before, flipped.sum(axis=1, dtype=numpy.int64) - before], axis=1).reshape(-1)
    return Flips(positions, numpy.cumsum(counts) - counts, 2)


ONE, TWO, THREE = (Pattern(f"{count} flip{'s' * (count > 1)}", _scattered(count)) for count in (1, 2, 3))
SHORT = Pattern("burst of 2 to 64 bits", _one_burst(*SHORT_BURST))
LONG = Pattern("burst of 65 to 256 bits", _one_burst(*LONG_BURST))
BORDER = Pattern("burst across a border", _across_a_border)
PATTERNS = (ONE, TWO, THREE, SHORT, LONG, BORDER)
