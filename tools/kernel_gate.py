"""Compiles every kernel for four GPU generations without a GPU, and refuses what would run badly there: ``make kernels``.

A kernel passes when it spills no register, keeps nothing on the stack, stays below its ceiling of registers (above it fewer blocks
fit on a multiprocessor), and its longest inner loop stays within its budget of machine instructions. The texts are compiled by the
same NVRTC release and options that CuPy uses on a GPU host. Where the compiler's wheels are missing it says so and passes: they are
the extra gpu-ci, 100 MB, and only Linux has them.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from seawall.kernels.cuda import COMPILER_OPTIONS
from seawall.kernels.programs import PROGRAMS, program_text

ARCHITECTURES = (80, 90, 100, 120)
"""A100; H100 and H200; B200; RTX PRO Blackwell."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a kernel may need on any architecture."""

    registers: int
    loop_instructions: int


# Measured with NVRTC 13.0.88 and rounded up a little. Ceilings: 65,536 registers for 8 blocks of 256 threads are 32 each, for 6 blocks
# 40, for 5 blocks 48, for 2 blocks 128. A loop of crc64_fold takes 32 bytes a thread, one of crc64_chunks 8; newer architectures
# unroll some loops by four.
LIMITS = {
    "crc64_chunks": Limit(40, 180),
    "crc64_combine": Limit(32, 60),
    "crc64_fold": Limit(128, 172),
    "flip_bytes": Limit(16, 0),
    **{f"health_{width}": Limit(40, 80) for width in (1, 2, 4, 8)},
    **{f"{kernel}_planes_{width}": Limit(48, loop) for kernel in ("split", "join") for width, loop in ((2, 125), (4, 115), (8, 100))},
    **{
        f"delta_{kernel}_{width}": Limit(48, loop)
        for kernel in ("encode", "decode")
        for width, loop in ((1, 110), (2, 195), (4, 105), (8, 85))
    },
}


@dataclass(slots=True)
class Measured:
    """One kernel on one architecture."""

    registers: int = 0
    stack_bytes: int = 0
    spill_bytes: int = 0
    loop_instructions: int = 0


def read_compiler_log(log: str) -> dict[str, Measured]:
    """What ``--ptxas-options=-v`` says of every kernel."""
    kernels: dict[str, Measured] = {}
    current = Measured()
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            current = kernels.setdefault(match[1], Measured())
        if match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            current.stack_bytes, current.spill_bytes = int(match[1]), int(match[2]) + int(match[3])
        if match := re.search(r"Used (\d+) registers", line):
            current.registers = int(match[1])
    return kernels


@dataclass(slots=True)
class _Listing:
    places: dict[str, int] = field(default_factory=dict)
    """Of labels."""
    jumps: list[tuple[int, str]] = field(default_factory=list)
    length: int = 0


def longest_inner_loops(listing: str) -> dict[str, int]:
    """Instructions of the longest loop without a loop inside, for every kernel of an nvdisasm listing; 0 without loops."""
    kernels: dict[str, _Listing] = {}
    current = _Listing()
    for line in listing.splitlines():
        if match := re.match(r"\s*\.section\s+\.text\.(\w+)", line):
            current = kernels.setdefault(match[1], _Listing())
        elif match := re.match(r"\s*(\.L_x_\d+):", line):
            current.places[match[1]] = current.length
        elif match := re.search(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+\s+)?([A-Z][A-Z0-9_.]*)([^;]*);", line):
            if match[1].startswith("BRA") and (target := re.search(r"\.L_x_\d+", match[2])):
                current.jumps.append((current.length, target[0]))
            current.length += 1
    longest = {}
    for kernel, found in kernels.items():
        # A jump to itself is padding behind the end.
        loops = [(found.places[label], end) for end, label in found.jumps if found.places.get(label, end) < end]
        inner = [(begin, end) for begin, end in loops if not any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in loops)]
        longest[kernel] = max((end - begin + 1 for begin, end in inner), default=0)
    return longest


def complaints(kernel: str, architecture: int, measured: Measured) -> list[str]:
    """What is wrong with it, empty when all is well."""
    if kernel not in LIMITS:
        return [f"{kernel} has no limits in tools/kernel_gate.py"]
    limit, where = LIMITS[kernel], f"{kernel} for sm_{architecture}"
    found = []
    if measured.spill_bytes or measured.stack_bytes:
        found.append(f"{where} spills {measured.spill_bytes} bytes and keeps {measured.stack_bytes} bytes on the stack")
    if measured.registers > limit.registers:
        found.append(f"{where} uses {measured.registers} registers, {limit.registers} are allowed")
    if measured.loop_instructions > limit.loop_instructions:
        found.append(f"{where} takes {measured.loop_instructions} instructions a loop, {limit.loop_instructions} are allowed")
    return found


def compile_text(text: str, architecture: int) -> tuple[bytes, str]:
    """Machine code and the compiler's log. Raises ``ValueError`` with the log when it does not compile."""
    from cuda.bindings import nvrtc

    options = [*COMPILER_OPTIONS, f"--gpu-architecture=sm_{architecture}", "--ptxas-options=-v", "--device-as-default-execution-space"]
    encoded = [option.encode() for option in options]
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, None, None)
    (result,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
    nvrtc.nvrtcGetProgramLog(program, log)
    if int(result) != 0:
        raise ValueError(f"sm_{architecture}: {log.decode()}")
    code = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
    nvrtc.nvrtcGetCUBIN(program, code)
    nvrtc.nvrtcDestroyProgram(program)
    return code, log.decode()


def disassembler() -> Path | None:
    """NVIDIA's, from its wheel."""
    return next(Path(sysconfig.get_path("purelib")).glob("nvidia/*/bin/nvdisasm"), None)


def measure(text: str, architecture: int) -> dict[str, Measured]:
    """Compile, and read what came out. Without the disassembler loops are not counted."""
    code, log = compile_text(text, architecture)
    kernels = read_compiler_log(log)
    if program := disassembler():
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(code)
            file.flush()
            listing = subprocess.run([program, file.name], capture_output=True, text=True, check=True).stdout
        for kernel, instructions in longest_inner_loops(listing).items():
            kernels[kernel].loop_instructions = instructions
    return kernels


def compiler_is_there() -> bool:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError):
        # cuda-bindings raises RuntimeError, or a subclass of ImportError, when it finds no libnvrtc.
        return False
    return True


def main() -> int:
    if not compiler_is_there():
        print("kernel gate: SKIPPED. cuda-bindings and nvidia-cuda-nvrtc (the extra gpu-ci) are not installed: nothing was compiled.")
        return 0
    if disassembler() is None:
        print("kernel gate: nvidia-cuda-nvdisasm is not installed: instructions are NOT COUNTED.")
    begin = time.monotonic()
    table: dict[str, list[Measured]] = {}
    found: list[str] = []
    jobs = [(program_text(program), architecture) for program in PROGRAMS for architecture in ARCHITECTURES]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, architecture), kernels in zip(jobs, pool.map(measure, *zip(*jobs, strict=True)), strict=True):
            for kernel, measured in kernels.items():
                table.setdefault(kernel, []).append(measured)
                found += complaints(kernel, architecture, measured)
    print(f"{'registers / instructions of a loop':36}" + "".join(f"{f'sm_{one}':>11}" for one in ARCHITECTURES) + f"{'allowed':>12}")
    for kernel, of_each in table.items():
        cells = "".join(f"{f'{one.registers} / {one.loop_instructions}':>11}" for one in of_each)
        limit = LIMITS.get(kernel, Limit(0, 0))
        print(f"  {kernel:34}{cells}{f'{limit.registers} / {limit.loop_instructions}':>12}")
    for complaint in found + [f"{kernel} is in no text any more" for kernel in LIMITS if kernel not in table]:
        print(f"kernel gate: {complaint}", file=sys.stderr)
    stale = LIMITS.keys() - table.keys()
    verdict = "FAILED" if found or stale else "passed"
    print(f"kernel gate: {verdict}: {len(table)} kernels, {len(ARCHITECTURES)} architectures, {time.monotonic() - begin:.1f} s")
    return 1 if found or stale else 0


if __name__ == "__main__":
    sys.exit(main())
