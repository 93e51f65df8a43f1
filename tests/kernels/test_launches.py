"""A launch that does not fit its kernel is refused before it reaches the device, where CuPy would let it through."""

from pathlib import Path
from typing import Any

import numpy
import pytest

from seawall.kernels import programs
from seawall.kernels.cpu import CpuDevice
from seawall.kernels.device import gpu, number_of_gpus
from seawall.kernels.errors import KernelArgumentError, NoGpuError, SplitElementError
from seawall.kernels.kernel_device import KernelDevice
from seawall.kernels.programs import PROGRAMS, checked_arguments, program_text, signatures_of
from tests.kernels.simulator.engine import SimulatedEngine

TEXT = 'extern "C" __global__ void __launch_bounds__(128, 2)\n sum(const u8* given, u64* taken, u64 count, u32 flags) {}'
SIGNATURE = signatures_of(TEXT)["sum"]


def arguments(**changed: Any) -> dict[str, Any]:
    return {
        "given": numpy.zeros(10, numpy.uint8), "taken": numpy.zeros(2, numpy.uint64), "count": numpy.uint64(2), "flags": numpy.uint32(0),
    } | changed  # fmt: skip


ITEMS = {"given": 10, "taken": 2}


def test_what_fits_passes_in_order() -> None:
    given = arguments()
    reversed_ = dict(reversed(given.items()))
    passed = checked_arguments(SIGNATURE, 1, 128, reversed_, ITEMS)
    assert all(a is b for a, b in zip(passed, given.values(), strict=True)) and len(passed) == 4
    assert [(one.name, one.dtype, one.is_array, one.is_written) for one in SIGNATURE.parameters] == [
        ("given", "uint8", True, False), ("taken", "uint64", True, True), ("count", "uint64", False, False),
        ("flags", "uint32", False, False),
    ]  # fmt: skip


def read_only() -> numpy.ndarray:
    array = numpy.zeros(2, numpy.uint64)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"taken": numpy.zeros(2, numpy.int64)}, "taken: wants uint64, got int64"),
        ({"given": numpy.zeros(20, numpy.uint8)[::2]}, "given: the array is not contiguous"),
        ({"given": numpy.zeros(9, numpy.uint8)}, "touches 10 items, and the array has 9"),
        ({"given": None}, "given: wants uint8, got NoneType"),
        ({"taken": numpy.uint64(3)}, "taken: wants an array, got a scalar"),
        ({"taken": read_only()}, "taken: the array is read-only"),
        ({"count": 2}, "count: wants uint64, got int"),
        ({"count": numpy.uint32(2)}, "count: wants uint64, got uint32"),
        ({"count": numpy.zeros(1, numpy.uint64)}, "count: wants a NumPy scalar, got an array"),
        ({"more": numpy.uint64(2)}, "sum takes given, taken, count, flags, and was given"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(KernelArgumentError, match=says):
        checked_arguments(SIGNATURE, 1, 128, arguments(**changed), ITEMS)


def test_an_argument_that_is_missing_or_of_unknown_size_is_refused() -> None:
    given = arguments()
    del given["flags"]
    with pytest.raises(KernelArgumentError, match="sum takes"):
        checked_arguments(SIGNATURE, 1, 128, given, ITEMS)
    with pytest.raises(KernelArgumentError, match="nobody said"):
        checked_arguments(SIGNATURE, 1, 128, arguments(), {"given": 10})


@pytest.mark.parametrize(("grid", "block"), [(0, 128), (1 << 31, 128), (1, 0), (1, 129), (1, 160), (1, 48)])
def test_a_launch_of_an_impossible_shape_is_refused(grid: int, block: int) -> None:
    with pytest.raises(KernelArgumentError, match=r"a (grid|block) of"):
        checked_arguments(SIGNATURE, grid, block, arguments(), ITEMS)


def test_every_kernel_of_every_text_is_known() -> None:
    for program in PROGRAMS:
        text = program_text(program)
        assert len(signatures_of(text)) == text.count("__global__ void") > 0
        assert "\n#include" not in text
    assert sorted(path.stem for path in Path(programs.__file__).parent.joinpath("cu").iterdir()) == sorted(PROGRAMS)


def test_a_type_that_is_not_known_is_refused() -> None:
    with pytest.raises(KernelArgumentError, match="float\\* values"):
        signatures_of('extern "C" __global__ void f(float* values) {}')


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda device: device.crc64_ranges(numpy.zeros(4, numpy.uint8), [2], [3]), KernelArgumentError),
        (lambda device: device.health(numpy.zeros(3, numpy.uint8), "float16"), SplitElementError),
        (lambda device: device.health(numpy.zeros(4, numpy.uint8), "int32"), KernelArgumentError),
        (lambda device: device.split_planes(numpy.zeros(6, numpy.uint8), 4), SplitElementError),
        (lambda device: device.join_planes(numpy.zeros(6, numpy.uint8), 3), KernelArgumentError),
        (lambda device: device.delta(numpy.zeros(4, numpy.uint8), numpy.zeros(8, numpy.uint8), 4), KernelArgumentError),
        (lambda device: device.flip(numpy.zeros(4, numpy.uint8), [32]), KernelArgumentError),
        (lambda device: device.view(numpy.zeros((4, 4)).T), KernelArgumentError),
    ],
)
def test_devices_refuse_what_makes_no_sense(call: Any, error: type[Exception], compiled: Path) -> None:
    with pytest.raises(error):
        call(KernelDevice(SimulatedEngine(compiled)))
    with pytest.raises(error):
        call(CpuDevice())


def test_a_gpu_that_is_not_there_is_an_error_that_says_so() -> None:
    with pytest.raises(NoGpuError, match=r"there is no GPU .*Next: use the CPU"):
        gpu(number_of_gpus())
