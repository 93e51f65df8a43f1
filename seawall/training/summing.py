"""CRC-64/NVME of every tensor that is saved, taken where the tensor lives, while it is being written.

What an error between memory and disk must not escape is the sum's coverage, so this is what it covers:

* a tensor in host memory, saved synchronously: from the moment that DCP asks for it. It is summed and written from the same memory.
* a tensor in host memory, saved asynchronously: the staged copy, from the moment that DCP asks for it, in the background. What happens
  during the staging copy or while the copy waits for its turn is not seen.
* a tensor in GPU memory: in that memory, before the first copy to the host, synchronously or not, where :mod:`seawall.kernels` can run on
  that GPU; else as in host memory.
"""

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch  # noqa: TID253 -- this package is imported by training code, which has torch loaded
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner  # noqa: TID253 -- as above
from torch.distributed.checkpoint.planner import WriteItem, WriteItemType  # noqa: TID253 -- as above
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions  # noqa: TID253 -- as above
from torch.utils._python_dispatch import is_traceable_wrapper_subclass  # noqa: TID253 -- as above
from torch.utils._pytree import tree_map_only  # noqa: TID253 -- as above

from seawall.checkpoint.sums_file import TensorSum
from seawall.kernels.device import cpu, device_of

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
        taken = [self._taken[place]] if place in self._taken else sums_on_gpu({place: stored})
        if taken:
            self._sums += taken
            return stored
        stored = stored.cpu()
        self._sums.append(self._beside.submit(_sum, stored, place))
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
            for tensors in _batches(state_dict):
                self.taken |= {(one.name, one.offsets): one for one in sums_on_gpu(tensors)}
        return super().stage(state_dict, **kwargs)


def _batches(state_dict: dict[str, Any]) -> Iterator[dict[Place, torch.Tensor]]:
    """The tensors that this rank may write, as they are to be stored: all of one device that are so already, to be summed in one launch,
    and each of the others alone, because that one is a copy."""
    planner = DefaultSavePlanner()
    planner.set_up_planner(state_dict)
    together: dict[torch.device, dict[Place, torch.Tensor]] = {}
    for item in planner.create_local_plan().items:
        tensor = None if item.type == WriteItemType.BYTE_IO else planner.lookup_object(item.index)
        if tensor is None or not summable(tensor):
            continue
        stored = as_stored(tensor)
        if stored.data_ptr() == tensor.data_ptr():
            together.setdefault(stored.device, {})[place_of(item)] = stored
        else:
            yield {place_of(item): stored}
    yield from together.values()


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


def sums_on_gpu(tensors: Mapping[Place, torch.Tensor]) -> list[TensorSum]:
    """The sums of tensors (:func:`as_stored`, at least one, all on one device), taken in GPU memory. None of them where that is not
    where they are, or where nothing can run there."""
    device = next(iter(tensors.values())).device
    if device.type != "cuda" or device in _UNUSABLE:
        return []
    try:
        crcs = device_of(next(iter(tensors.values()))).crc64_of(list(tensors.values()))
    except Exception as error:  # noqa: BLE001 -- whatever a GPU's libraries raise, it is no reason to save nothing
        _UNUSABLE.add(device)
        _log.warning("tensors in the memory of %s are summed after their copy to the host: %s", device, error)
        return []
    return [_as_sum(place, tensor, crc) for (place, tensor), crc in zip(tensors.items(), crcs, strict=True)]


_UNUSABLE: set[torch.device] = set()
"""GPUs that sums were tried on in vain, each said once."""


def _sum(stored: torch.Tensor, place: Place) -> TensorSum:
    """Of a tensor in host memory."""
    return _as_sum(place, stored, _CPU.crc64_of([stored])[0])


def _as_sum(place: Place, stored: torch.Tensor, crc: int) -> TensorSum:
    return TensorSum(*place, stored.numel() * stored.element_size(), crc, stored.device.type)
