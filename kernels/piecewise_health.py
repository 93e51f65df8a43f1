"""The health of a tensor that lies in pieces, where the border of two shards may cut a number in two.

A sharder that cuts by bytes leaves the first byte of a float16 at the end of one file and the second at the beginning of the next.
Counting each file by itself would judge two numbers that never existed. Here the bytes of a cut number wait until all are there.
"""

from seawall.kernels.byte_views import Buffer
from seawall.kernels.device import Device, cpu
from seawall.kernels.errors import KernelArgumentError, SplitElementError
from seawall.kernels.health import Health, health
from seawall.kernels.number_formats import format_of


class PiecewiseHealth:
    """Feed it the pieces of one tensor, in any order, each once. Whole numbers are counted where they lie; of a cut one at most
    ``width − 1`` bytes are kept here."""

    def __init__(self, dtype: str, *, histogram: bool = False, device: Device | None = None) -> None:
        self._dtype = dtype
        self._width = format_of(dtype).width
        self._histogram = histogram
        self._device = device or cpu()
        self._total = Health()
        self._fragments: dict[int, dict[int, int]] = {}

    def observe(self, at: int, piece: Buffer) -> None:
        """The piece that begins at byte ``at`` of the tensor's bytes. In GPU memory with a GPU's device."""
        view = self._device.view(piece)
        if at < 0:
            raise KernelArgumentError(f"a piece cannot begin at byte {at}")
        head = min(-at % self._width, len(view))
        whole = (len(view) - head) // self._width * self._width
        tail = head + whole
        if head:
            self._keep(at, self._device.to_host(view[:head]))
        if whole:
            self._total += self._device.health(view[head:tail], self._dtype, histogram=self._histogram)
        if tail < len(view):
            self._keep(at + tail, self._device.to_host(view[tail:]))

    def _keep(self, at: int, some: bytes) -> None:
        """A few bytes of one number; count it when it is complete."""
        for place, byte in enumerate(some, at):
            element, rank = divmod(place, self._width)
            known = self._fragments.setdefault(element, {})
            if rank in known:
                raise KernelArgumentError(f"byte {place} of the tensor came twice")
            known[rank] = byte
            if len(known) == self._width:
                del self._fragments[element]
                number = bytes(known[rank] for rank in range(self._width))
                self._total += health(number, self._dtype, histogram=self._histogram)

    def result(self) -> Health:
        """After the last piece. Raises ``SplitElementError`` when the rest of a cut number never came."""
        if self._fragments:
            element, known = next(iter(self._fragments.items()))
            raise SplitElementError(
                f"of number {element} only {len(known)} of {self._width} bytes came",
                why="the pieces are cut inside a number, and its neighbour is missing",
                do="give all shards of the tensor",
            )
        return self._total
