"""Every operation gives what its oracle gives, on the CPU path and by the kernels in the simulator."""

import random
from pathlib import Path

import numpy
import pytest

from seawall.kernels.cpu import CpuDevice
from tests.kernels.agreement import CHECKS, Check
from tests.kernels.simulated import run_cases

CASES = 500
NIGHTLY_CASES = 10_000


def somewhere(content: bytes, draw: random.Random) -> numpy.ndarray:
    """At an address that nothing divides for sure."""
    misalignment = draw.randrange(16)
    memory = numpy.zeros(len(content) + misalignment, numpy.uint8)
    memory[misalignment:] = numpy.frombuffer(content, numpy.uint8)
    return memory[misalignment:]


def run_on_cpu(check: Check, cases: range) -> None:
    for number in cases:
        draw = random.Random(number)
        check(CpuDevice(threads=1 + number % 2), lambda content, draw=draw: somewhere(content, draw), draw)


@pytest.mark.parametrize("check", CHECKS)
def test_the_cpu_agrees(check: str) -> None:
    run_on_cpu(CHECKS[check], range(CASES))


@pytest.mark.parametrize("check", CHECKS)
def test_the_kernels_agree(check: str, compiled: Path) -> None:
    run_cases(CHECKS[check], range(CASES), compiled)


@pytest.mark.nightly
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("check", CHECKS)
def test_the_cpu_agrees_at_length(check: str) -> None:
    run_on_cpu(CHECKS[check], range(CASES, NIGHTLY_CASES))


@pytest.mark.nightly
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("check", CHECKS)
def test_the_kernels_agree_at_length(check: str, compiled: Path) -> None:
    run_cases(CHECKS[check], range(CASES, NIGHTLY_CASES), compiled)
