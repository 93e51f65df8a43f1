"""A ``Device`` (device.py) by kernels: plans the launches, checks buffers, puts results together. The same code runs on a GPU and,
in tests, on the simulator; only the engine differs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seawall.kernels import chunk_plan, flips, polynomials
from seawall.kernels.byte_views import Buffer
from seawall.kernels.crc64_ranges import Cuts, Range, crcs_of_ranges, cut
from seawall.kernels.engine import Array, Engine
from seawall.kernels.errors import KernelArgumentError
from seawall.kernels.health import Health, numbers_in
from seawall.kernels.number_formats import NumberFormat, format_of
from seawall.kernels.planes import elements_in, pair_of

if TYPE_CHECKING:
    import numpy

LANES = 256
"""Threads of a block. Of a CRC's block a power of two: the fold's identity needs it (fold_text.py)."""

_ELEMENTS_PER_THREAD = 16
_MOST_ELEMENTS_PER_BLOCK = 1 << 31
"""A block of health.cu counts in 32 bits."""

_NEGATIVE_ZERO_IS_NAN, _NO_ZERO = 1, 2
"""Bits of ``quirks`` in health.cu."""


@dataclass(frozen=True, slots=True)
class PendingSums:
    """Checksums that the device is working on."""

    engine: Engine
    cuts: Cuts
    remainders: Array

    def result(self) -> list[int]:
        """Wait on the current stream, and give the CRC of every range."""
        remainders = self.engine.to_host(self.remainders).tolist()
        pieces = zip(remainders, self.cuts.pieces, strict=True)
        return crcs_of_ranges(self.cuts, [polynomials.crc_of_remainder(remainder, length) for remainder, (_, length) in pieces])


class KernelDevice:
    """One engine's kernels as a ``Device``. ``lanes`` and ``chunk_bytes`` are for tests; ``fold`` off leaves the tables only."""

    def __init__(self, engine: Engine, *, lanes: int = LANES, chunk_bytes: int = 0, fold: bool = True) -> None:
        if lanes not in (32, 64, 128, 256):
            raise KernelArgumentError(f"blocks of {lanes} threads", do="a power of two from 32 to 256")
        self.engine = engine
        self._lanes = lanes
        self._chunk_bytes = chunk_bytes
        self._fold = fold

    @property
    def name(self) -> str:
        return self.engine.name

    def view(self, buffer: Buffer) -> Array:
        return self.engine.view(buffer)

    def to_host(self, view: Array) -> bytes:
        return bytes(self.engine.to_host(view).tobytes())

    def crc64_ranges(self, buffer: Buffer, offsets: Sequence[int], lengths: Sequence[int]) -> list[int]:
        with self.engine.on_stream_of(buffer):
            return self.start_crc64_ranges(buffer, offsets, lengths).result()

    def start_crc64_ranges(self, buffer: Buffer, offsets: Sequence[int], lengths: Sequence[int]) -> PendingSums:
        """Queue the work on the current stream and return. The buffer stays as it is until the result was taken."""
        view = self.engine.view(buffer)
        cuts = cut(view.size, offsets, lengths)
        return PendingSums(self.engine, cuts, self._remainders(view, cuts.pieces))

    def crc64_of(self, buffers: Sequence[Buffer]) -> list[int]:
        with self.engine.on_stream_of(buffers[0] if buffers else None):
            views = [self.engine.view(buffer) for buffer in buffers]
            filled = [view for view in views if view.size]
            if not filled:
                return [0] * len(views)
            # One launch for all, wherever they lie: their places are counted from the lowest address.
            lowest = min(filled, key=self.engine.address)
            begin = self.engine.address(lowest)
            pieces = [(self.engine.address(view) - begin, view.size) for view in filled]
            remainders = self.engine.to_host(self._remainders(lowest, pieces, beyond=True)).tolist()
        found = iter([polynomials.crc_of_remainder(one, length) for one, (_, length) in zip(remainders, pieces, strict=True)])
        return [next(found) if view.size else 0 for view in views]

    def _remainders(self, view: Array, pieces: Sequence[Range], *, beyond: bool = False) -> Array:
        """Queue the sums of all pieces; raw remainders, one a piece. ``beyond``: the pieces lie in several arrays, of which ``view`` is
        only the first, so there is nothing to hold their ends against."""
        import numpy

        engine, lanes = self.engine, self._lanes
        total = sum(length for _, length in pieces)
        sums = engine.zeros(len(pieces), "uint64")
        if not total:
            return sums
        chunk_bytes = self._chunk_bytes or chunk_plan.chunk_bytes_for(total, engine.blocks, lanes)
        plan = chunk_plan.plan_chunks(pieces, engine.address(view), chunk_bytes, lanes, fold=self._fold)
        direct, folded = plan.direct, plan.folded
        remainders = engine.empty(len(direct) + len(folded), "uint64")

        def to_device(words: Sequence[int]) -> Array:
            return engine.to_device(numpy.array(words, numpy.uint64))

        self._sum_chunks(view, 0 if beyond else direct.end, to_device(direct.offset), to_device(direct.length), remainders[: len(direct)])
        if len(folded):
            shortened_words = chunk_plan.SHORTENED_ROWS * lanes
            shortened = engine.empty(len(folded) * shortened_words, "uint32")
            engine.launch(
                "crc64_fold", "crc64_fold", self._grid_of_chunks(len(folded)), lanes,
                {"buffer": view, "offset": to_device(folded.offset), "length": to_device(folded.length), "shortened": shortened,
                 "chunks": numpy.uint64(len(folded))},
                {"buffer": 0 if beyond else folded.end, "offset": len(folded), "length": len(folded),
                 "shortened": len(folded) * shortened_words},
            )  # fmt: skip
            each = chunk_plan.FOLD_WORD_BYTES * shortened_words
            offsets = to_device([each * i for i in range(len(folded))])
            lengths = to_device([each] * len(folded))
            self._sum_chunks(shortened.view(numpy.uint8), each * len(folded), offsets, lengths, remainders[len(direct) :])
        chunks = len(remainders)
        engine.launch(
            "crc64", "crc64_combine", -(-chunks // self._lanes), self._lanes,
            {"remainder": remainders, "after": to_device(direct.after + folded.after), "piece": to_device(direct.piece + folded.piece),
             "sum": sums, "chunks": numpy.uint64(chunks),
             "square": engine.to_device(numpy.array(polynomials.squares(), numpy.uint64))},
            {"remainder": chunks, "after": chunks, "piece": chunks, "sum": len(pieces), "square": 64},
        )  # fmt: skip
        return sums

    def _sum_chunks(self, view: Array, end: int, offset: Array, length: Array, remainder: Array) -> None:
        """Queue the tables' kernel for chunks that end before byte ``end`` of the view."""
        import numpy

        if not len(remainder):
            return
        self.engine.launch(
            "crc64", "crc64_chunks", self._grid_of_chunks(len(remainder)), self._lanes,
            {"buffer": view, "offset": offset, "length": length, "remainder": remainder, "chunks": numpy.uint64(len(remainder)),
             "row_factor": self.engine.to_device(polynomials.row_factor(self._lanes)),
             "lane_factor": self.engine.to_device(polynomials.lane_factor(self._lanes))},
            {"buffer": end, "offset": len(remainder), "length": len(remainder), "remainder": len(remainder), "row_factor": 256,
             "lane_factor": self._lanes},
        )  # fmt: skip

    def _grid_of_chunks(self, chunks: int) -> int:
        return min(chunks, self.engine.blocks)

    def _grid_of_elements(self, elements: int) -> int:
        wanted = min(-(-elements // (self._lanes * _ELEMENTS_PER_THREAD)), self.engine.blocks)
        return max(wanted, -(-elements // _MOST_ELEMENTS_PER_BLOCK), 1)

    def health(self, buffer: Buffer, dtype: str, *, histogram: bool = False) -> Health:
        form = format_of(dtype)
        with self.engine.on_stream_of(buffer):
            view = self.engine.view(buffer)
            elements = numbers_in(view.size, form)
            return self._count(view, elements, form, form.bins if histogram else 0) if elements else Health()

    def _count(self, view: Array, elements: int, form: NumberFormat, bins: int) -> Health:
        import numpy

        counts, exponents = self.engine.zeros(6, "uint64"), self.engine.zeros(max(bins, 1), "uint64")
        quirks = _NEGATIVE_ZERO_IS_NAN * form.negative_zero_is_nan + _NO_ZERO * (not form.has_zero)
        self.engine.launch(
            "health", f"health_{form.width}", self._grid_of_elements(elements), self._lanes,
            {"buffer": view, "elements": numpy.uint64(elements), "mantissa_bits": numpy.uint32(form.mantissa_bits),
             "quirks": numpy.uint32(quirks), "sign": numpy.uint64(form.sign), "largest": numpy.uint64(form.largest),
             "infinity": numpy.uint64(form.infinity), "counts": counts, "exponents": exponents, "bins": numpy.uint32(bins)},
            {"buffer": elements * form.width, "counts": 6, "exponents": bins},
        )  # fmt: skip
        nan, positive, negative, saturated, subnormal, zero = self.engine.to_host(counts).tolist()
        of_exponents = tuple(self.engine.to_host(exponents).tolist()) if bins else ()
        return Health(elements, nan, positive, negative, saturated, subnormal, zero, of_exponents)

    def split_planes(self, buffer: Buffer, width: int) -> Array:
        return self._rearrange(buffer, width, "split_planes", "source", "planes")

    def join_planes(self, planes: Buffer, width: int) -> Array:
        return self._rearrange(planes, width, "join_planes", "planes", "target")

    def _rearrange(self, buffer: Buffer, width: int, kernel: str, source: str, target: str) -> Array:
        import numpy

        with self.engine.on_stream_of(buffer):
            view = self.engine.view(buffer)
            elements = elements_in(view.size, width)
            if width == 1:
                return view.copy()
            result = self.engine.empty(view.size, "uint8")
            if elements:
                self.engine.launch(
                    "planes", f"{kernel}_{width}", self._grid_of_elements(elements), self._lanes,
                    {source: view, target: result, "elements": numpy.uint64(elements)}, {source: view.size, target: view.size},
                )  # fmt: skip
            return result

    def delta(self, new: Buffer, base: Buffer, width: int) -> Array:
        return self._with_base(new, base, width, "delta_encode", "after", "code")

    def apply_delta(self, delta: Buffer, base: Buffer, width: int) -> Array:
        return self._with_base(delta, base, width, "delta_decode", "code", "after")

    def _with_base(self, buffer: Buffer, base: Buffer, width: int, kernel: str, source: str, target: str) -> Array:
        import numpy

        with self.engine.on_stream_of(buffer):
            view, of_base = self.engine.view(buffer), self.engine.view(base)
            elements = pair_of(view.size, of_base.size, width)
            result = self.engine.empty(view.size, "uint8")
            if elements:
                self.engine.launch(
                    "delta", f"{kernel}_{width}", self._grid_of_elements(elements), self._lanes,
                    {source: view, "base": of_base, target: result, "elements": numpy.uint64(elements)},
                    {source: view.size, "base": view.size, target: view.size},
                )  # fmt: skip
            return result

    def flip(self, buffer: Buffer, positions: "Sequence[int] | numpy.ndarray[Any, Any]") -> None:
        import numpy

        with self.engine.on_stream_of(buffer):
            view = self.engine.view(buffer)
            place, mask = flips.masks_of(view.size, positions)
            places = len(place)
            if places:
                self.engine.launch(
                    "flips", "flip_bytes", -(-places // self._lanes), self._lanes,
                    {"buffer": view, "place": self.engine.to_device(place), "mask": self.engine.to_device(mask),
                     "places": numpy.uint64(places)},
                    {"buffer": int(place[-1]) + 1, "place": places, "mask": places},
                )  # fmt: skip
