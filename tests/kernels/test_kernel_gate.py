"""The compile gate: reads the compiler's words rightly, and refuses kernels that are bad on purpose."""

import subprocess
import sys
from pathlib import Path

import pytest

from seawall.kernels.programs import PROGRAMS, program_text, signatures_of
from tools.kernel_gate import (
    LIMITS,
    Measured,
    compiler_is_there,
    complaints,
    disassembler,
    longest_inner_loops,
    measure,
    read_compiler_log,
)

ROOT = Path(__file__).parents[2]

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'flip_bytes' for 'sm_90'
ptxas info    : Function properties for flip_bytes
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
ptxas info    : Compiling entry function 'crc64_fold' for 'sm_90'
ptxas info    : Function properties for crc64_fold
    40 bytes stack frame, 24 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 128 registers, used 0 barriers, 40 bytes cumulative stack size
"""

LISTING = """\
	.section	.text.flip_bytes,"ax",@progbits
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;
.L_x_1:
        /*0020*/                   LDG.E R3, desc[UR4][R2.64] ;
        /*0030*/              @P0 BRA `(.L_x_1) ;
        /*0040*/              @!P1 BRA `(.L_x_0) ;
        /*0050*/                   EXIT ;
.L_x_2:
        /*0060*/                   BRA `(.L_x_2);
	.section	.text.straight,"ax",@progbits
        /*0000*/                   EXIT ;
"""

SPILLS = """
extern "C" __global__ void __launch_bounds__(1024) flip_bytes(unsigned* out) {
    unsigned kept[200];
    for (unsigned i = 0; i < 200; i++) kept[i] = out[i * 7];
    for (unsigned i = 0; i < 200; i++) out[kept[i] % 200] = kept[out[i] % 200];
}
"""


def test_the_compilers_log_is_read() -> None:
    assert read_compiler_log(LOG) == {"flip_bytes": Measured(registers=12), "crc64_fold": Measured(128, stack_bytes=40, spill_bytes=40)}


def test_the_longest_loop_without_a_loop_inside_counts() -> None:
    assert longest_inner_loops(LISTING) == {"flip_bytes": 2, "straight": 0}


@pytest.mark.parametrize(
    ("kernel", "measured", "says"),
    [
        ("flip_bytes", Measured(12, stack_bytes=8), "keeps 8 bytes on the stack"),
        ("flip_bytes", Measured(12, spill_bytes=4), "spills 4 bytes"),
        ("flip_bytes", Measured(17), "17 registers, 16 are allowed"),
        ("crc64_fold", Measured(128, loop_instructions=173), "173 instructions a loop, 172 are allowed"),
        ("unheard_of", Measured(), "has no limits"),
    ],
)
def test_what_is_over_a_limit_is_named(kernel: str, measured: Measured, says: str) -> None:
    (complaint,) = complaints(kernel, 90, measured)
    assert says in complaint


def test_what_is_within_the_limits_passes() -> None:
    assert complaints("crc64_fold", 90, Measured(128, loop_instructions=172)) == []
    kernels = [kernel for program in PROGRAMS for kernel in signatures_of(program_text(program))]
    assert sorted(kernels) == sorted(LIMITS)


@pytest.fixture
def _compiler() -> None:
    if not compiler_is_there() or disassembler() is None:
        pytest.skip("the extra gpu-ci is not installed (make kernels): nothing is compiled for a GPU")


@pytest.mark.usefixtures("_compiler")
def test_a_kernel_that_spills_is_refused() -> None:
    (measured,) = measure(SPILLS, 90).values()
    assert measured.stack_bytes >= 800
    assert "on the stack" in complaints("flip_bytes", 90, measured)[0]


@pytest.mark.usefixtures("_compiler")
def test_a_text_that_does_not_compile_says_where() -> None:
    with pytest.raises(ValueError, match=r"kernel.cu\(1\): error"):
        measure('extern "C" __global__ void f(nonsense* out) {}', 90)


@pytest.mark.usefixtures("_compiler")
def test_a_text_with_a_planted_array_is_refused() -> None:
    """A histogram in local memory and not in shared: right results, at a fraction of the speed."""
    text = program_text("health").replace("__shared__ u32 histograms[", "u32 histograms[")
    assert text != program_text("health")
    assert any("on the stack" in complaint for kernel, one in measure(text, 90).items() for complaint in complaints(kernel, 90, one))


def test_without_the_compiler_it_says_what_it_skipped() -> None:
    program = "import sys; sys.modules['cuda'] = None; sys.path.insert(0, '.');from tools.kernel_gate import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("kernel gate: SKIPPED.") and "nothing was compiled" in done.stdout
