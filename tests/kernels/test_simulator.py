"""The simulator finds what it claims to find: small kernels with one fault each, in every order of the threads."""

from pathlib import Path

import numpy
import pytest

from seawall.kernels.programs import signatures_of
from tests.kernels.simulator.build import ORDERS, SimulationError
from tests.kernels.simulator.engine import SimulatedEngine

THREADS = 64


def kernel(body: str) -> str:
    return f'typedef unsigned u32;\nextern "C" __global__ void fault(u32* out) {{ const u32 t = threadIdx.x; {body} }}\n'


def run(body: str, folder: Path, order: str) -> list[int]:
    text = kernel(body)
    assert "fault" in signatures_of(text)
    engine = SimulatedEngine(folder, order=order, seed=11, texts={"text": text})
    out = engine.zeros(THREADS, "uint32")
    engine.launch("text", "fault", 1, THREADS, {"out": out}, {"out": THREADS})
    return [int(value) for value in out]


SHARED = "__shared__ u32 s[64]; s[t] = t;"


@pytest.mark.parametrize("order", ORDERS)
def test_a_sound_kernel_runs(order: str, compiled: Path) -> None:
    assert run(f"{SHARED} __syncthreads(); out[t] = s[63 - t];", compiled, order) == list(range(63, -1, -1))
    assert run("u32 v = t; v += __shfl_xor_sync(0xffffffffu, v, 1); out[t] = v;", compiled, order) == [t + (t ^ 1) for t in range(THREADS)]


@pytest.mark.parametrize("order", ORDERS)
def test_a_missing_barrier_gives_a_wrong_result(order: str, compiled: Path) -> None:
    assert run(f"{SHARED} out[t] = s[63 - t];", compiled, order) != list(range(63, -1, -1))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("if (t < 16) __syncthreads(); else { out[t] = 1; __syncthreads(); }", "different barriers"),
        ("if (t >= 48) return; __syncthreads(); out[t] = 1;", "left out"),
        ("u32 v = t; if (t < 16) v = __shfl_xor_sync(0xffffu, v, 16); out[t] = v;", "outside its mask"),
        ("u32 v = t; if (t < 16) v = __shfl_xor_sync(0xffff0000u, v, 1); out[t] = v;", "mask"),
        ("if (t < 31) out[t] = __shfl_xor_sync(0xffffffffu, t, 1);", "names a lane that has ended"),
        ("out[t] = 1u << (t + 1);", "shift by the width"),
        ("out[t] = *(const u32*)((const char*)out + 2 * (t & 1));", "misaligned access"),
        ("u32 few[4] = {1, 2, 3, 4}; out[t] = few[t & 7];", "index out of bounds"),
        ("out[t + 1] = 1;", "outside an array"),
        ("int least = (int)(t + 0x7ffffff0u); out[t] = (u32)(least + (int)t);", "signed overflow"),
    ],
)
def test_a_fault_is_named(body: str, says: str, order: str, compiled: Path) -> None:
    with pytest.raises(AssertionError, match=says):
        run(body, compiled, order)


def test_a_text_that_does_not_compile_says_why(compiled: Path) -> None:
    with pytest.raises(SimulationError, match="nonsense"):
        run("nonsense;", compiled, "forwards")


def test_shared_memory_does_not_survive_a_block(compiled: Path) -> None:
    text = kernel("__shared__ u32 s[1]; out[t] = s[0]; __syncthreads(); s[0] = 7;")
    engine = SimulatedEngine(compiled, order="forwards", texts={"text": text})
    out = engine.zeros(THREADS, "uint32")
    for _ in range(2):
        engine.launch("text", "fault", 2, THREADS, {"out": out}, {"out": THREADS})
        assert numpy.unique(out).tolist() == [0xA5A5A5A5]
