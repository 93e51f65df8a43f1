"""CRCs under error, without their data.

A CRC is linear over GF(2): what an error does to it (its *syndrome*) depends on the flipped bits and not on the data, and is the XOR of
what each bit does alone. An error is missed when its syndrome is zero. So a table of one syndrome a bit judges millions of errors a second;
that this is what the real checksum does is tried on a sample (:meth:`LinearCheck.disagreements`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seawall.drills.flip_patterns import Flips

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Crc:
    """A reflected CRC and what is known about its polynomial."""

    name: str
    width: int
    """Bits."""
    reflected: int
    """The polynomial without its highest term, lowest term in the highest bit."""
    order: int
    """Smallest e with x^e = 1 modulo the polynomial: two flips at a distance of a multiple of it are missed, no others."""
    even: bool
    """Whether x + 1 divides it: then no odd number of flips is missed."""
    compute: Callable[[bytearray], int]
    """The checksum by code that knows nothing of this table."""


def _crc16(data: bytearray) -> int:
    """CRC-16/KERMIT with its bits in reverse: binascii has the polynomial x^16 + x^12 + x^5 + 1, with the highest bit first."""
    import binascii

    return binascii.crc_hqx(data.translate(_REVERSED), 0)


_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _crc32c(data: bytearray) -> int:
    from awscrt.checksums import crc32c  # type: ignore[import-untyped]  # awscrt has no stubs

    return int(crc32c(data))


def _crc64(data: bytearray) -> int:
    from seawall.kernels.crc64 import crc64

    return crc64(data)


# Orders and factors were computed by factoring; tests/drills/test_linear_check.py computes them again.
CRC16 = Crc("CRC-16", 16, 0x8408, (1 << 15) - 1, True, _crc16)
CRC32C = Crc("CRC-32C", 32, 0x82F63B78, (1 << 31) - 1, True, _crc32c)
CRC64 = Crc("CRC-64/NVME", 64, 0x9A6C9329AC4BC9B5, (1 << 64) - 1, False, _crc64)


@dataclass
class LinearCheck:
    """A CRC over the first ``covered_bytes`` of chunks of ``chunk_bytes``."""

    crc: Crc
    chunk_bytes: int
    covered_bytes: int
    table: "NDArray[Any]" = field(init=False, repr=False)
    """Syndrome of each bit of a chunk: 8 × its bytes × the CRC's."""

    def __post_init__(self) -> None:
        import numpy

        covered = _syndromes(self.crc, self.covered_bytes * 8)
        rest = (self.chunk_bytes - self.covered_bytes) * 8
        self.table = numpy.concatenate([covered, numpy.zeros(rest, covered.dtype)]) if rest else covered

    def missed(self, flips: Flips) -> int:
        """How many of the trials no chunk's check notices."""
        import numpy

        syndromes = numpy.bitwise_xor.reduceat(self.table[flips.positions], flips.starts)
        return int(numpy.count_nonzero((syndromes.reshape(-1, flips.parts) == 0).all(axis=1)))

    def missed_of_all_single_flips(self) -> int:
        """The same for one flip at each of the chunk's bits in turn."""
        import numpy

        return int(numpy.count_nonzero(self.table == 0))

    def disagreements(self, flips: Flips, sample: int, data: bytearray) -> int:
        """In how many of the first ``sample`` trials the checksum of really flipped ``data`` moves otherwise than the table says it does
        or does not. ``data`` is one chunk, and afterwards as before."""
        import numpy

        syndromes = numpy.bitwise_xor.reduceat(self.table[flips.positions], flips.starts).tolist()
        covered = self.covered_bytes
        before = self.crc.compute(data[:covered])
        wrong = 0
        for trial in range(min(sample, flips.trials)):
            for part, positions in enumerate(flips.of_trial(trial)):
                flip(data, positions)
                moved = self.crc.compute(data[:covered]) ^ before
                flip(data, positions)
                wrong += self._as_table(moved) != syndromes[trial * flips.parts + part]
        return wrong

    def _as_table(self, moved: int) -> int:
        return int(f"{moved:016b}"[::-1], 2) if self.crc is CRC16 else moved


def flip(data: bytearray | memoryview, positions: list[int]) -> None:
    """Flip bits in place; the same call again undoes it."""
    for position in positions:
        data[position >> 3] ^= 1 << (position & 7)


def _syndromes(crc: Crc, bits: int) -> "NDArray[Any]":
    """For each of ``bits`` bits, first to last, what its flip does to the checksum.

    The last bit goes through one step of the shift register, each one before it through one more, so the table grows from its end by
    doubling: the steps are linear, and those of many bits are taken at once, a byte of the register at a time.
    """
    import numpy

    kind = {16: numpy.uint16, 32: numpy.uint32, 64: numpy.uint64}[crc.width]
    register, known = 1, []
    for _ in range(crc.width):
        register = register >> 1 ^ (crc.reflected if register & 1 else 0)
        known.append(register)
    from_end: numpy.ndarray[Any, Any] = numpy.array(known, kind)
    while len(from_end) < bits:
        more = min(len(from_end), bits - len(from_end))
        from_end = numpy.concatenate([from_end, _stepped(from_end[:more], from_end, kind)])
    return numpy.ascontiguousarray(from_end[:bits][::-1])


def _stepped(registers: "NDArray[Any]", from_end: "NDArray[Any]", kind: Any) -> "NDArray[Any]":
    """``registers`` after as many steps as ``from_end`` is long. Bit b of a register comes to the lowest place after b steps, and is what
    the last bit's register was before its first; so after all steps it is the entry b before the end."""
    import numpy

    width = kind(0).itemsize * 8
    columns = [from_end[len(from_end) - 1 - bit] for bit in range(width)]
    found = numpy.zeros(len(registers), kind)
    for byte in range(width // 8):
        table = numpy.zeros(256, kind)
        for value in range(256):
            for bit in range(8):
                if value >> bit & 1:
                    table[value] ^= columns[byte * 8 + bit]
        found ^= table[(registers >> kind(byte * 8)).astype(numpy.uint8)]
    return found
