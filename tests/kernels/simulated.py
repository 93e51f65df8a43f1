"""Cases on the simulator: device, memory and thread order change from case to case."""

import random
from collections.abc import Mapping
from pathlib import Path

import numpy

from seawall.kernels.chunk_plan import fold_step_bytes
from seawall.kernels.kernel_device import KernelDevice
from tests.kernels.agreement import Check
from tests.kernels.simulator.build import ORDERS
from tests.kernels.simulator.engine import SimulatedEngine

LANES = (32, 32, 64, 128)
FOLD_STEPS = (1, 2, 3, 9, 13, 16)
"""Of a chunk: few, so that a few kilobytes make several chunks, or enough for the feedback, which begins with the ninth."""


def run_cases(check: Check, cases: range, folder: Path, texts: Mapping[str, str] | None = None) -> None:
    """Raises ``AssertionError`` (or its ``SimulationError``) with the number of the first case that fails."""
    for number in cases:
        draw = random.Random(number)
        order = list(ORDERS)[number % len(ORDERS)]
        engine = SimulatedEngine(folder, order=order, seed=number, blocks=draw.randint(1, 4), texts=texts)
        lanes = draw.choice(LANES)
        chunk_bytes = fold_step_bytes(lanes) * draw.choice(FOLD_STEPS)
        device = KernelDevice(engine, lanes=lanes, chunk_bytes=chunk_bytes, fold=draw.random() < 0.8)

        def place(content: bytes, engine: SimulatedEngine = engine, draw: random.Random = draw) -> numpy.ndarray:
            return engine.guarded(numpy.frombuffer(content, numpy.uint8), draw.choice((0, 0, 8, draw.randrange(64))))

        try:
            check(device, place, draw)
        except AssertionError as error:
            error.add_note(f"case {number}, order {order}, {lanes} lanes")
            raise
