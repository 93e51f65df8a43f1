"""Compiles a .cu text with g++ and cuda_on_fibers.h into a library whose kernels can be called."""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy

SHIM = Path(__file__).with_name("cuda_on_fibers.h")
CHECKS = "alignment,shift,bounds,signed-integer-overflow,integer-divide-by-zero"
FLAGS = ("-std=c++17", "-O1", "-fPIC", f"-fsanitize={CHECKS}", "-Wall", "-Werror", "-Wno-unknown-pragmas")

ORDERS = {"forwards": 0, "backwards": 1, "seeded": 2}


class SimulationError(AssertionError):
    """A kernel did what a GPU would punish, or what no order of threads may do."""


def compiler() -> str | None:
    return shutil.which("g++")


class Library:
    """The kernels of one text."""

    def __init__(self, text: str, folder: Path) -> None:
        self._library = ctypes.CDLL(str(_built(text, folder)))

    def configure(self, order: str, seed: int) -> None:
        self._library.fibers_configure(ORDERS[order], ctypes.c_uint(seed))

    def launch(self, kernel: str, grid: int, block: int, arguments: tuple[numpy.ndarray | numpy.generic, ...]) -> None:
        kept, pointers = [], (ctypes.c_void_p * len(arguments))()
        for place, argument in enumerate(arguments):
            if isinstance(argument, numpy.ndarray):
                value = ctypes.c_void_p(argument.ctypes.data)
            else:
                value = (ctypes.c_char * argument.nbytes).from_buffer_copy(argument.tobytes())
            kept.append(value)
            pointers[place] = ctypes.addressof(value)
        said = ctypes.create_string_buffer(256)
        function = self._library[f"{kernel}_launch"]
        if function(ctypes.c_uint(grid), ctypes.c_uint(block), pointers, said, ctypes.c_size_t(len(said))):
            raise SimulationError(f"{kernel}: {said.value.decode()}")


@cache
def library(text: str, folder: Path) -> Library:
    return Library(text, folder)


def _built(text: str, folder: Path) -> Path:
    kernels = re.findall(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(', text)
    source = f'#include "{SHIM.name}"\n#line 1 "kernel.cu"\n{text}\n' + "".join(f"EXPORT_KERNEL({name})\n" for name in kernels)
    digest = hashlib.sha256(repr((source, SHIM.read_text(), FLAGS)).encode()).hexdigest()[:24]
    target = folder / f"{digest}.so"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            code, object_file, made = Path(work, "kernel.cpp"), Path(work, "kernel.o"), Path(work, "kernel.so")
            code.write_text(source)
            _run(str(compiler()), *FLAGS, "-c", str(code), "-I", str(SHIM.parent), "-o", str(object_file))
            # Linked without -fsanitize: libubsan stays out, and a check without a handler of ours is an error here.
            _run(str(compiler()), "-shared", "-Wl,-z,defs", str(object_file), "-o", str(made))
            os.replace(made, target)
    return target


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SimulationError(f"{' '.join(command[:2])} …: {done.stderr[-2000:]}")
