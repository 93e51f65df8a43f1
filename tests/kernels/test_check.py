"""The parts of ``python -m seawall.kernels.check``, as far as they run without a GPU: on the simulator."""

import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from seawall.kernels.check import parity, rate_lines
from seawall.kernels.check_parity import parity_cases
from seawall.kernels.check_rates import REPEATS, Rate, rates, transfer_rates
from seawall.kernels.cpu import CpuDevice
from seawall.kernels.device import number_of_gpus
from seawall.kernels.kernel_device import KernelDevice
from seawall.kernels.nvml_profile import FIELDS, profile_lines
from tests.kernels.simulator.engine import SimulatedEngine

ROOT = Path(__file__).parents[2]


def test_without_a_gpu_it_says_so_and_passes(tmp_path: Path) -> None:
    if number_of_gpus():
        pytest.skip("there is a GPU here: run the check itself")
    command = [sys.executable, "-m", "seawall.kernels.check", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "kernel check: no GPU here (CuPy sees none, or is not installed): nothing was checked.\n"
    assert not (tmp_path / "out").exists()


def test_parity_holds_in_the_simulator(compiled: Path) -> None:
    engine = SimulatedEngine(compiled)
    device = KernelDevice(engine, lanes=32, chunk_bytes=16 << 10)

    def place(content: bytes, misalignment: int) -> numpy.ndarray:
        return engine.guarded(numpy.frombuffer(content, numpy.uint8), misalignment)

    assert [line for line in parity(device, place, 40_000, 60, most_cases=15) if "WRONG" in line] == []


class WrongInOne(CpuDevice):
    """A device that flips a bit too few."""

    def flip(self, buffer: Any, positions: Any) -> None:
        super().flip(buffer, positions[1:])


def test_parity_names_what_differs() -> None:
    def place(content: bytes, misalignment: int) -> bytearray:
        return bytearray(content)

    cases = parity_cases(WrongInOne(), place, 1000, seed=1)
    named = [line for _ in range(5) for line in next(cases)]
    assert named and all(": flip, " in line for line in named)
    lines = list(parity(WrongInOne(), place, 1000, 60, most_cases=3))
    assert lines[-1].startswith("parity: 3 cases of every operation against the CPU, ") and "WRONG: case" in lines[0]
    assert next(parity_cases(CpuDevice(), place, 1000, seed=1)) == []


def test_every_operation_has_a_rate(compiled: Path) -> None:
    device = KernelDevice(SimulatedEngine(compiled))
    found = list(rates(device, 8000, repeats=1))
    names = [rate.name for rate in found]
    assert names[0] == "copy" and len(names) == len(set(names)) == 30
    assert all(rate.seconds > 0 and rate.nbytes == 8000 for rate in [*found, *transfer_rates(device, 8000, repeats=1)])
    lines = list(rate_lines(iter([Rate("copy", 2.0, 4 * 10**9), Rate("half", 4.0, 4 * 10**9)]), of_copy=True))
    assert [line.split() for line in lines] == [
        ["copy", "2.0", "GB/s", "1.00", "of", "the", "copy"],
        ["half", "1.0", "GB/s", "0.50", "of", "the", "copy"],
    ]
    assert REPEATS % 2, "a median that was measured"


class NvmlError(Exception):
    def __init__(self, value: int) -> None:
        self.value = value


class SomeNvml:
    """Answers a few calls as a chip might, and all others with 3, not supported: pynvml and its library are on GPU hosts only."""

    NVMLError = NvmlError
    nvmlMemory_v2 = 2

    def __init__(self) -> None:
        self.lost = 1

    def __getattr__(self, call: str) -> Any:
        if not call.startswith("nvml"):
            raise AttributeError(call)

        def refuse(*arguments: Any) -> None:
            raise NvmlError(3)

        return refuse

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.1"

    def nvmlSystemGetNVMLVersion(self) -> str:
        return "13.580.1"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return 3

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        if number == self.lost:
            raise NvmlError(15)
        return number

    def nvmlDeviceGetName(self, gpu: int) -> str:
        return f"GPU {gpu}"

    def nvmlDeviceGetRemappedRows(self, gpu: int) -> list[int]:
        return [1, 2, 0, 0]

    def nvmlDeviceGetRetiredPages(self, gpu: int, cause: int) -> list[int]:
        return [0x1000] * cause

    def nvmlDeviceGetMemoryInfo(self, gpu: int, version: int) -> Any:
        return SimpleNamespace(total=100, reserved=1, used=20, free=79)

    def nvmlDeviceGetFieldValues(self, gpu: int, fields: list[int]) -> list[Any]:
        if gpu == 2:
            raise NvmlError(999)
        value = SimpleNamespace(ullVal=7)
        return [SimpleNamespace(fieldId=field, nvmlReturn=0 if field == 230 else 3, value=value) for field in fields]


def test_the_profile_keeps_answers_and_return_codes() -> None:
    lines = list(profile_lines(SomeNvml()))
    said = dict(line.split("=", 1) for line in lines)
    assert len(said) == len(lines), "a key for each line"
    assert (said["driver"], said["count"], said["gpu.0.name"], said["gpu.2.name"]) == ("580.1", "3", "GPU 0", "GPU 2")
    assert (said["gpu.0.rows.corr"], said["gpu.0.rows.unc"]) == ("1", "2")
    assert (said["gpu.0.mem.total"], said["gpu.0.mem.used"]) == ("100", "20")
    assert (said["gpu.0.retired.0"], said["gpu.0.retired.1"], said["gpu.0.power.min"]) == ("0", "1", "!3")
    assert (said["gpu.0.field.230"], said["gpu.0.field.82"], said["gpu.2.field.82"]) == ("7", "!3", "!999")
    assert {key: value for key, value in said.items() if key.startswith("gpu.1.")} == {"gpu.1.handle": "!15"}
    assert sum(".0.field." in key for key in said) == len(FIELDS)


def test_draws_of_a_case_are_its_own() -> None:
    """A failure names seed and case; the same case must come again."""
    sizes: list[list[int]] = []
    for _ in range(2):
        seen: list[int] = []

        def place(content: bytes, misalignment: int, seen: list[int] = seen) -> bytearray:
            seen.append(len(content))
            return bytearray(content)

        cases = parity_cases(CpuDevice(), place, random.Random(1).randrange(1000, 2000), seed=4)
        next(cases), next(cases)
        sizes.append(seen)
    assert sizes[0] == sizes[1]
