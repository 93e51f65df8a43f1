"""``python -m seawall.kernels.check``: everything about the kernels that only a GPU can say, in under four minutes.

The results of every kernel against the CPU, on random lengths and addresses; torch's tensors without a copy; the same again, small,
under compute-sanitizer; rates beside a copy in device memory; a profile of what NVML answers. Without a GPU it says so and exits 0.
Exits 1 when a result was wrong.
"""

import argparse
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seawall.errors import SeawallError
from seawall.kernels.check_parity import parity_cases
from seawall.kernels.check_rates import Rate, rates, transfer_rates
from seawall.kernels.cuda import CudaEngine, number_of_gpus
from seawall.kernels.kernel_device import KernelDevice

PARITY_SECONDS = 40
PARITY_BYTES = 4 << 20
SMALL_CASES = 12
"""Under compute-sanitizer, where everything takes a hundred times as long."""
RATE_BYTES = 2 << 30
TRANSFER_BYTES = 1 << 30
SANITIZER_SECONDS = 60
TOOLS = ("memcheck", "racecheck")


def place_on(engine: CudaEngine) -> Any:
    """A ``Place`` of check_parity.py."""
    import numpy

    def place(content: bytes, misalignment: int) -> Any:
        memory = engine.empty(len(content) + misalignment, "uint8")
        part = memory[misalignment:]
        part[...] = engine.to_device(numpy.frombuffer(content, numpy.uint8))
        return part

    return place


def parity(device: KernelDevice, place: Any, most_bytes: int, seconds: float, most_cases: int | None = None) -> Iterator[str]:
    """Report lines; one that begins with WRONG is a failure."""
    begin, cases, wrong = time.monotonic(), 0, 0
    for differing in parity_cases(device, place, most_bytes, seed=1):
        yield from (f"WRONG: {line}" for line in differing)
        cases += 1
        wrong += bool(differing)
        if time.monotonic() - begin > seconds or cases == most_cases or wrong >= 10:
            break
    yield f"parity: {cases} cases of every operation against the CPU, {wrong} wrong, {time.monotonic() - begin:.0f} s"


def torch_tensors(device: KernelDevice, index: int) -> Iterator[str]:
    """That a tensor is seen where it lies, and behind what its own stream still has to do."""
    try:
        import torch
    except ImportError:
        yield "torch: SKIPPED, not installed"
        return
    if not torch.cuda.is_available():
        yield "torch: SKIPPED, this build sees no GPU"
        return
    from seawall.kernels.cpu import CpuDevice

    where = f"cuda:{index}"
    tensor = torch.zeros(1 << 26, dtype=torch.bfloat16, device=where)
    same = device.engine.address(device.view(tensor)) == tensor.data_ptr()
    yield f"torch: seen without a copy: {same}" if same else "WRONG: torch: the view of a tensor is a copy"
    stream = torch.cuda.Stream(where)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        for step in range(20):
            tensor.add_(step)
        on_gpu = device.crc64_ranges(tensor, [0], [2 * tensor.numel()])
    on_cpu = CpuDevice().crc64_ranges(tensor.cpu(), [0], [2 * tensor.numel()])
    yield "torch: in order with its stream" if on_gpu == on_cpu else "WRONG: torch: the sum was taken before the stream was done"


def sanitizer() -> Iterator[str]:
    """compute-sanitizer over a few small cases."""
    program = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if program is None:
        yield "compute-sanitizer: SKIPPED, not found"
        return
    for tool in TOOLS:
        command = [program, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "seawall.kernels.check", "--small"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SANITIZER_SECONDS)
        except subprocess.TimeoutExpired:
            yield f"compute-sanitizer {tool}: NOT FINISHED within {SANITIZER_SECONDS} s"
            continue
        verdict = "clean" if done.returncode == 0 else f"WRONG: exit {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"
        yield f"compute-sanitizer {tool}: {verdict}"


def rate_lines(found: Iterator[Rate], of_copy: bool) -> Iterator[str]:
    copy = 0.0
    for rate in found:
        copy = copy or rate.gigabytes_per_second
        share = f"{rate.gigabytes_per_second / copy:8.2f} of the copy" if of_copy else ""
        yield f"{rate.name:34}{rate.gigabytes_per_second:10.1f} GB/s{share}"


def versions(engine: CudaEngine) -> Iterator[str]:
    import cupy

    runtime = cupy.cuda.runtime
    compiler = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    yield f"{engine.name}, {engine.blocks} blocks; driver {runtime.driverGetVersion()}, runtime {runtime.runtimeGetVersion()}"
    yield f"NVRTC {compiler}, CuPy {cupy.__version__}, Python {platform.python_version()}"


def profile() -> Iterator[str]:
    from seawall.kernels.nvml_profile import profile_lines

    try:
        import pynvml
    except ImportError:
        yield "# nvidia-ml-py is not installed"
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        yield f"# init={error.value}"
        return
    yield from profile_lines(pynvml)


def engine_of(index: int) -> CudaEngine:
    """With this GPU made CuPy's current one, for the copies that the check itself makes."""
    engine = CudaEngine(index)
    import cupy

    cupy.cuda.Device(index).use()
    return engine


def everything(index: int, out: Path) -> Iterator[str]:
    engine = engine_of(index)
    device, tables = KernelDevice(engine), KernelDevice(engine, fold=False)
    yield from versions(engine)
    out.joinpath("nvml-profile.txt").write_text("".join(f"{line}\n" for line in profile()))
    yield from parity(device, place_on(engine), PARITY_BYTES, PARITY_SECONDS / 2)
    yield from parity(tables, place_on(engine), PARITY_BYTES, PARITY_SECONDS / 2)
    yield from torch_tensors(device, index)
    yield from sanitizer()
    yield from rate_lines(rates(device, RATE_BYTES), of_copy=True)
    yield from rate_lines(transfer_rates(device, TRANSFER_BYTES), of_copy=False)


def small(index: int) -> Iterator[str]:
    """What runs under compute-sanitizer: chunks of a few kilobytes, so that the fold and the loops over chunks take part."""
    engine = engine_of(index)
    device = KernelDevice(engine, lanes=32, chunk_bytes=16 << 10)
    yield from parity(device, place_on(engine), 80_000, SANITIZER_SECONDS, SMALL_CASES)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--gpu", type=int, default=0, help="its number")
    options.add_argument("--out", type=Path, default=Path("kernel-check"), help="folder for the report and the NVML profile")
    options.add_argument("--small", action="store_true", help="a few small cases only, for compute-sanitizer")
    chosen = options.parse_args()
    if number_of_gpus() == 0:
        print("kernel check: no GPU here (CuPy sees none, or is not installed): nothing was checked.")
        return 0
    begin, lines = time.monotonic(), []
    try:
        if not chosen.small:
            chosen.out.mkdir(parents=True, exist_ok=True)
        for line in small(chosen.gpu) if chosen.small else everything(chosen.gpu, chosen.out):
            print(line, flush=True)
            lines.append(line)
    except SeawallError as error:
        print(f"kernel check: {error}", file=sys.stderr)
        return error.exit_code
    wrong = sum("WRONG" in line for line in lines)
    lines.append(f"kernel check: {'FAILED' if wrong else 'passed'}, {time.monotonic() - begin:.0f} s")
    print(lines[-1])
    if not chosen.small:
        chosen.out.joinpath("report.txt").write_text("".join(f"{line}\n" for line in lines))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
