"""Faults planted in the .cu texts, one at a time. The cases that the texts pass must fail with every one of them."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from seawall.kernels.programs import program_text
from tests.kernels.agreement import CHECKS
from tests.kernels.simulated import run_cases

CASES = range(150)
"""A fault must show within these; the sound texts pass the same (the last test here, and test_agreement.py)."""


@dataclass(frozen=True)
class Fault:
    program: str
    old: str
    new: str
    says: str
    """Pattern of the failure: of the simulator, of the guards, or nothing where the oracle differs."""
    check: str = ""


MISALIGNED, SHIFT, GUARD = "misaligned access", "shift by the width", "outside an array"

FAULTS = {
    "missing barrier behind the table": Fault("crc64", "    __syncthreads();  // the table is whole\n", "", ""),
    "missing barrier before the sum": Fault("crc64", "        __syncthreads();  // every warp has left its sum\n", "", ""),
    "missing barrier before the next chunk": Fault(
        "crc64", "        __syncthreads();  // and it was taken, before the next chunk's\n", "", ""
    ),
    "missing barrier behind the zeros": Fault("health", "    __syncthreads();  // all counters are zero\n", "", ""),
    "missing barrier before the counts": Fault("health", "    __syncthreads();  // every lane has added what it found\n", "", ""),
    "barrier that some threads leave out": Fault(
        "crc64", "__syncthreads();  // every warp", "if (lane != 1u) __syncthreads();  // every warp", "barrier|deadlock"
    ),
    "shift by the width of a word": Fault("crc64", "        if (shift == 0u) return *(const u64*)place;\n", "", SHIFT),
    "shift by the width of an element": Fault("delta", "8u * sizeof(Word) - 1u", "8u * sizeof(Word)", ""),
    "misaligned load of a word": Fault("crc64", "if (shift == 0u) return", "return", MISALIGNED),
    "misaligned load of numbers": Fault("health", "((u64)buffer & 7ull) == 0ull", "elements", MISALIGNED),
    "misaligned load of planes": Fault("planes", "(((u64)elements_at | (u64)planes_at | elements) & 3ull) == 0ull", "true", MISALIGNED),
    "misaligned store of planes": Fault("planes", " | elements) & 3ull", ") & 3ull", MISALIGNED),
    "misaligned load of a difference": Fault("delta", "((u64)left | (u64)base | (u64)result)", "((u64)base)", MISALIGNED),
    "wrong polynomial in the product": Fault("crc64", "0x9A6C9329AC4BC9B5ull", "0x9A6C9329AC4BC9B4ull", ""),
    "wrong polynomial in the fold": Fault("crc64_fold", "const u32 f1 = state[62] ^ f0;", "const u32 f1 = state[62];", ""),
    "length one word too short": Fault("crc64", "(nbytes + 7ull) / 8ull", "nbytes / 8ull", ""),
    "fold one step too short": Fault("crc64_fold", "step < steps; step++", "step + 1ull < steps; step++", ""),
    "one number too few": Fault("health", "i < elements; i += step) {", "i + 1ull < elements; i += step) {", ""),
    "one element too many": Fault("delta", "i < elements; i += step", "i <= elements; i += step", GUARD),
    "one plane byte too few": Fault("planes", "planes[plane * elements + i] = source", "planes[plane * elements] = source", ""),
    "one flip too few": Fault("flips", "if (i < places)", "if (i + 1ull < places)", ""),
    "lanes of a warp that do not take part": Fault("crc64", "0xffffffffu, state", "0x7fffffffu, state", "mask|shuffle"),
    "exponent in the wrong place": Fault("health", "histogram + (u32)(magnitude >> format.mantissa_bits)", "histogram + 1u", ""),
    "counter of another block's": Fault("health", "atomicAdd(counts + lane, (u64)of_block[lane])", "counts[lane] = of_block[lane]", ""),
    "sum without its weight": Fault("crc64", "value = multiply(value, square[k]);", "value = value;", ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str, compiled: Path) -> None:
    fault = FAULTS[name]
    text = program_text(fault.program)
    assert text.count(fault.old) == 1, "the text changed: plant the fault anew"
    with pytest.raises(AssertionError) as caught:
        run_cases(CHECKS[fault.check or fault.program], CASES, compiled, {fault.program: text.replace(fault.old, fault.new)})
    assert re.search(fault.says, str(caught.value)), str(caught.value)


@pytest.mark.parametrize("program", sorted({fault.program for fault in FAULTS.values()}))
def test_a_change_that_is_no_fault_passes(program: str, compiled: Path) -> None:
    """The control: a text that is compiled anew like the planted ones, and is sound."""
    run_cases(CHECKS[program], CASES, compiled, {program: program_text(program) + "\n// the same\n"})
