"""Copies between host and GPU with the checksum taken beside them: a ring of pinned slots, one stream that copies and one that sums.

The GPU copies pinned memory by itself while its kernels run. So slot n is copied while slot n − 1 is summed and the host fills slot
n + 1; a ring of fixed size bounds memory, and a slot is touched again only behind the mark that says it is free.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seawall.kernels.byte_views import Buffer
from seawall.kernels.crc64_ranges import combine_all
from seawall.kernels.engine import Array, Event
from seawall.kernels.errors import KernelArgumentError
from seawall.kernels.kernel_device import KernelDevice, PendingSums

SLOTS = 3
"""One with the host, one on the bus, one free in time when either is late."""
SLOT_BYTES = 32 << 20


@dataclass(slots=True)
class _Slot:
    pinned: Any
    busy: Event | None = None
    """The mark behind the last use that the device makes of the slot."""


class PinnedRing:
    """For one device and one thread at a time; the slots are kept from call to call."""

    def __init__(self, device: KernelDevice, *, slots: int = SLOTS, slot_bytes: int = SLOT_BYTES) -> None:
        if slots < 2 or slot_bytes < 1:
            raise KernelArgumentError(f"a ring of {slots} slots of {slot_bytes} bytes", do="two slots or more")
        self._device = device
        self._engine = device.engine
        self._slot_bytes = slot_bytes
        self._slots = [_Slot(self._engine.pinned(slot_bytes)) for _ in range(slots)]
        self._copying = self._engine.new_stream()
        self._summing = self._engine.new_stream()

    def upload(self, target: Buffer, read_into: Callable[[memoryview], int]) -> int:
        """Fill ``target`` on the device from ``read_into``, which fills a part of the view from its beginning and returns how many bytes;
        gives the CRC-64 of all as it arrived in device memory. Raises ``KernelArgumentError`` when the source ends early."""
        with self._engine.on_stream_of(target):
            view = self._engine.view(target)
            before = self._engine.record()
        self._after(before)
        try:
            return self._upload(view, read_into)
        finally:
            self._drain()

    def _upload(self, view: Array, read_into: Callable[[memoryview], int]) -> int:
        pending: list[PendingSums] = []
        lengths: list[int] = []
        at = 0
        while at < view.size:
            slot = self._free_slot(len(lengths))
            wanted = min(self._slot_bytes, view.size - at)
            filled = read_into(memoryview(slot.pinned)[:wanted])
            if not 0 < filled <= wanted:
                raise KernelArgumentError(f"the source gave {filled} bytes where {wanted} were wanted, at {at} of {view.size}")
            with self._engine.on(self._copying):
                self._engine.copy_in(view[at : at + filled], slot.pinned[:filled])
                slot.busy = self._engine.record()
            with self._engine.on(self._summing):
                self._engine.wait(slot.busy)
                pending.append(self._device.start_crc64_ranges(view[at : at + filled], [0], [filled]))
            lengths.append(filled)
            at += filled
        with self._engine.on(self._summing):
            return combine_all([crc for sums in pending for crc in sums.result()], lengths)

    def download(self, source: Buffer, write: Callable[[memoryview], object]) -> int:
        """Hand ``source``, on the device, to ``write`` in order, slot by slot; gives the CRC-64 of it as it lies in device memory, before
        the copy. ``write`` may keep nothing of the view that it gets."""
        with self._engine.on_stream_of(source):
            view = self._engine.view(source)
            before = self._engine.record()
        self._after(before)
        try:
            return self._download(view, write)
        finally:
            self._drain()

    def _download(self, view: Array, write: Callable[[memoryview], object]) -> int:
        with self._engine.on(self._summing):
            pending = self._device.start_crc64_ranges(view, [0], [view.size])
        starts = range(0, view.size, self._slot_bytes)
        for number in range(len(starts) + len(self._slots) - 1):
            # One slot less than the ring has is on the bus while the host writes the oldest.
            if number < len(starts):
                self._start_copy_out(number, view[starts[number] : starts[number] + self._slot_bytes])
            oldest = number - len(self._slots) + 1
            if oldest >= 0:
                slot = self._free_slot(oldest)
                write(memoryview(slot.pinned)[: min(self._slot_bytes, view.size - starts[oldest])].toreadonly())
        with self._engine.on(self._summing):
            return pending.result()[0]

    def _start_copy_out(self, number: int, part: Array) -> None:
        slot = self._slots[number % len(self._slots)]
        with self._engine.on(self._copying):
            self._engine.copy_out(slot.pinned[: part.size], part)
            slot.busy = self._engine.record()

    def _free_slot(self, number: int) -> _Slot:
        """The slot of this turn, when the device is done with it."""
        slot = self._slots[number % len(self._slots)]
        if slot.busy is not None:
            self._engine.synchronize(slot.busy)
            slot.busy = None
        return slot

    def _after(self, event: Event) -> None:
        for stream in (self._copying, self._summing):
            with self._engine.on(stream):
                self._engine.wait(event)

    def _drain(self) -> None:
        """Nothing of a call runs on behind its end, also of one that failed: the caller may free the memory."""
        for stream in (self._copying, self._summing):
            with self._engine.on(stream):
                self._engine.synchronize(self._engine.record())
