"""The .cu texts, and what their kernels take: CuPy checks neither types nor counts, and a wrong argument reads garbage on the GPU."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from seawall.kernels.errors import KernelArgumentError

PROGRAMS = ("crc64", "crc64_fold", "delta", "flips", "health", "planes")
"""Files of cu/, without their ending."""

WARP = 32
"""Threads. The kernels exchange words within whole warps, so a block is a multiple."""

_TYPES = {"u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64"}
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\(([^)]*)\)\s+)?(\w+)\(([^)]*)\)')
_PARAMETER = re.compile(r"(const\s+)?(u\d+)(\*)?\s+(\w+)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a kernel."""

    name: str
    dtype: str
    is_array: bool
    is_written: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """What a kernel takes."""

    kernel: str
    parameters: tuple[Parameter, ...]
    most_threads: int
    """Of a block, as the kernel was compiled for."""


@cache
def program_text(program: str) -> str:
    """The text of one program, the same for everyone who compiles it."""
    return Path(__file__).parent.joinpath("cu", f"{program}.cu").read_text()


def signatures_of(text: str) -> dict[str, Signature]:
    """Every kernel of a text by name. Raises ``KernelArgumentError`` for a parameter of a type that is not known here."""
    found = {}
    for bounds, kernel, parameters in _KERNEL.findall(text):
        read = []
        for parameter in parameters.split(","):
            match = _PARAMETER.fullmatch(" ".join(parameter.split()))
            if match is None or match[2] not in _TYPES:
                raise KernelArgumentError(f"the parameter {parameter.strip()!r} of {kernel} is of no known type")
            read.append(Parameter(match[4], _TYPES[match[2]], bool(match[3]), bool(match[3]) and not match[1]))
        found[kernel] = Signature(kernel, tuple(read), int(bounds.split(",")[0]) if bounds else 1024)
    return found


def checked_arguments(
    signature: Signature, grid: int, block: int, arguments: Mapping[str, Any], items: Mapping[str, int]
) -> tuple[Any, ...]:
    """The arguments in the kernel's order, or ``KernelArgumentError``.

    Scalars are NumPy scalars of exactly the kernel's type. ``items`` says how many items the kernel touches in each array at most.
    """
    kernel = signature.kernel
    names = [parameter.name for parameter in signature.parameters]
    if set(arguments) != set(names):
        raise KernelArgumentError(f"{kernel} takes {', '.join(names)}, and was given {', '.join(arguments)}")
    if not 0 < block <= signature.most_threads or block % WARP:
        raise KernelArgumentError(f"{kernel}: a block of {block} threads", do=f"whole warps of {WARP}, at most {signature.most_threads}")
    if not 0 < grid < 1 << 31:
        raise KernelArgumentError(f"{kernel}: a grid of {grid} blocks", why="CUDA takes 1 to 2^31 - 1")
    for parameter in signature.parameters:
        problem = _problem(parameter, arguments[parameter.name], items)
        if problem:
            raise KernelArgumentError(f"{kernel}, {parameter.name}: {problem}")
    return tuple(arguments[name] for name in names)


def _problem(parameter: Parameter, argument: Any, items: Mapping[str, int]) -> str:
    dtype = str(getattr(argument, "dtype", type(argument).__name__))
    if dtype != parameter.dtype:
        return f"wants {parameter.dtype}, got {dtype}"
    # A NumPy scalar has no dimensions either, but no flags of memory that somebody else could write.
    if not parameter.is_array:
        return "" if isinstance(argument, _scalar_type()) else "wants a NumPy scalar, got an array"
    if isinstance(argument, _scalar_type()):
        return "wants an array, got a scalar"
    if not argument.flags.c_contiguous:
        return "the array is not contiguous"
    if parameter.is_written and not getattr(argument.flags, "writeable", True):
        return "the array is read-only"
    if parameter.name not in items:
        return "nobody said how many items the kernel touches"
    if argument.size < items[parameter.name]:
        return f"the kernel touches {items[parameter.name]} items, and the array has {argument.size}"
    return ""


def _scalar_type() -> Any:
    import numpy

    return numpy.generic
