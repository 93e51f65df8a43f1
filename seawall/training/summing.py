"""CRC-64/NVME of every tensor that is saved, taken where the tensor lives, while it is being written.

What an error between memory and disk must not escape is the sum's coverage, so this is what it covers:

* a tensor in host memory, saved synchronously: from the moment that DCP asks for it. It is summed and written from the same memory.
* a tensor in host memory, saved asynchronously: the staged copy, from the moment that DCP asks for it, in the background. What happens
  during the staging copy or while the copy waits for its turn is not seen.
* a tensor in GPU memory: in that memory, before the first copy to the host, synchronously or not, where :mod:`seawall.kernels` can run on
  that GPU; else as in host memory.
"""

import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch  # noqa: TID253 -- this package is imported by training code, which has torch loaded
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner  # noqa: TID253 -- as above
from torch.distributed.checkpoint.planner import WriteItem, WriteItemType  # noqa: TID253 -- as above
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions  # noqa: TID253 -- as above
from torch.utils._python_dispatch import is_traceable_wrapper_subclass  # noqa: TID253 -- as above
from torch.utils._pytree import tree_map_only  # noqa: TID253 -- as above

from seawall.checkpoint.sums_file import TensorSum
from seawall.kernels.device import Device, cpu, device_of

_log = logging.getLogger(__name__)

Place = tuple[str, tuple[int, ...]]
"""A tensor's name in the flattened state, and where in it a piece lies."""


class SummingPlanner(DefaultSavePlanner):
    """DCP's own save planner, which also sums each tensor that this rank writes.

    Sums of tensors in host memory are taken in a thread beside the writer, which needs longer for them. A tensor that is not contiguous is
    made so: its elements then lie in one run of the file, which every later reader can sum again.
    """

    def __init__(self, taken: Mapping[Place, TensorSum] | None = None) -> None:
        """``taken``: sums of tensors that were elsewhere before they were staged; looked at when the writing begins."""
        super().__init__()
        self._taken = {} if taken is None else taken
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="seawall-sum")
        self._sums: list[TensorSum | Future[TensorSum]] = []

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        if write_item.type == WriteItemType.BYTE_IO or not summable(object):
            return super().transform_object(write_item, object)
        stored = as_stored(object)
        place = place_of(write_item)
        known = self._taken.get(place) or sum_on_gpu(stored, place)
        if known is not None:
            self._sums.append(known)
            return stored
        stored = stored.cpu()
        self._sums.append(self._beside.submit(_sum, stored, place, _CPU))
        return stored

    def sums(self) -> list[TensorSum]:
        """Of everything that was written, in that order. Call it after the write."""
        return [one if isinstance(one, TensorSum) else one.result() for one in self._sums]

    def close(self) -> None:
        """Let the thread go. Nothing is summed after this."""
        self._beside.shutdown(cancel_futures=True)


class SummingStager(DefaultStager):
    """DCP's own stager, which sums what is in GPU memory before it is copied to the host.

    Tensors that are marked as conjugated or negated are made so first: DCP copies their memory, not the mark, and would save other numbers.
    """

    def __init__(self, options: StagingOptions) -> None:
        super().__init__(options)
        self.taken: dict[Place, TensorSum] = {}

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Any:
        state_dict = tree_map_only(torch.Tensor, _without_marks, state_dict)
        if gpus_here():
            planner = DefaultSavePlanner()
            planner.set_up_planner(state_dict)
            for item in planner.create_local_plan().items:
                tensor = None if item.type == WriteItemType.BYTE_IO else planner.lookup_object(item.index)
                if tensor is not None and summable(tensor):
                    found = sum_on_gpu(as_stored(tensor), place_of(item))
                    if found is not None:
                        self.taken[place_of(item)] = found
        return super().stage(state_dict, **kwargs)


_CPU = cpu()


def gpus_here() -> bool:
    """Whether any tensor can be in GPU memory: looking through a large state takes time, for which training waits."""
    return torch.cuda.is_available()


def place_of(item: WriteItem) -> Place:
    """Where a piece that DCP writes belongs."""
    return item.index.fqn, tuple(item.index.offset or ())


def summable(tensor: Any) -> bool:
    """Whether a tensor's elements are bytes in memory of its own: not those of sparse, quantised or wrapping tensors."""
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.is_quantized:
        return False
    return tensor.numel() == 0 or (not is_traceable_wrapper_subclass(tensor) and tensor.untyped_storage().nbytes() > 0)


def as_stored(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as its bytes are to lie in the file: contiguous, and with conjugation and sign applied. Itself where it is so already."""
    return _without_marks(tensor.detach()).contiguous()


def _without_marks(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg() if tensor.is_conj() or tensor.is_neg() else tensor


def sum_on_gpu(stored: torch.Tensor, place: Place) -> TensorSum | None:
    """The sum of a tensor in GPU memory, taken there; None where it is not, or where nothing can run there."""
    if stored.device.type != "cuda" or stored.device in _UNUSABLE:
        return None
    try:
        return _sum(stored, place, device_of(stored))
    except Exception as error:  # noqa: BLE001 -- whatever a GPU's libraries raise, it is no reason to save nothing
        _UNUSABLE.add(stored.device)
        _log.warning("tensors in the memory of %s are summed after their copy to the host: %s", stored.device, error)
        return None


_UNUSABLE: set[torch.device] = set()
"""GPUs that sums were tried on in vain, each said once."""


def _sum(stored: torch.Tensor, place: Place, device: Device) -> TensorSum:
    nbytes = stored.numel() * stored.element_size()
    crc = device.crc64_ranges(stored, [0], [nbytes])[0] if nbytes else 0
    return TensorSum(*place, nbytes, crc, stored.device.type)
