"""The bytes of a buffer, without a copy: bytes, memoryviews, NumPy arrays and torch tensors in host memory."""

from typing import Any

from seawall.kernels.errors import KernelArgumentError

Buffer = Any
"""Anything with the buffer protocol, or a torch tensor (which is not imported here: it is known by its methods)."""

HOST_MEMORY, CUDA_MEMORY = 1, 2
"""DLPack's kDLCPU and kDLCUDA (dlpack.h, DLDeviceType)."""


def byte_view(buffer: Buffer) -> memoryview:
    """A flat view of the bytes. Refuses buffers that are not contiguous: their bytes are not in the order of their elements."""
    if hasattr(buffer, "__dlpack_device__") and hasattr(buffer, "is_contiguous"):
        return memoryview(_bytes_of_tensor(buffer))
    if hasattr(buffer, "__array_interface__"):
        if not buffer.flags.c_contiguous:
            raise KernelArgumentError("the array is not contiguous", do="copy it first (numpy.ascontiguousarray)")
        import numpy

        return memoryview(buffer.reshape(-1).view(numpy.uint8))
    try:
        view = memoryview(buffer)
    except TypeError:
        raise KernelArgumentError(
            f"{type(buffer).__name__} is no buffer", do="pass bytes, a NumPy array or a tensor in host memory"
        ) from None
    if not view.c_contiguous:
        raise KernelArgumentError("the buffer is not contiguous", do="copy it first")
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def writable_view(buffer: Buffer) -> memoryview:
    """The same, of a buffer that may be changed in place."""
    view = byte_view(buffer)
    if view.readonly:
        raise KernelArgumentError("the buffer is read-only", do="pass a bytearray, an array or a tensor that owns its memory")
    return view


def _bytes_of_tensor(tensor: Any) -> Any:
    import numpy

    kind, _ = tensor.__dlpack_device__()
    if kind != HOST_MEMORY:
        raise KernelArgumentError("the tensor is not in host memory", do="use the Device of its GPU, or tensor.cpu()")
    return numpy.from_dlpack(flat_bytes(tensor))


def flat_bytes(tensor: Any) -> Any:
    """A torch tensor as a flat tensor of bytes over the same memory, wherever that is."""
    if not tensor.is_contiguous():
        raise KernelArgumentError("the tensor is not contiguous", do="call .contiguous() first")
    flat = tensor.detach().reshape(-1)
    if flat.numel() == 0:
        return flat.new_empty(0).view(_byte_type(tensor))
    return flat.view(_byte_type(tensor))


def _byte_type(tensor: Any) -> Any:
    """torch.uint8, reached through the tensor's own type because only ``seawall.training`` imports torch."""
    import sys

    return sys.modules[type(tensor).__module__.partition(".")[0]].uint8
