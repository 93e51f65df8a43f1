"""``.metadata`` of torch.distributed.checkpoint, out of inert nodes (torch/distributed/checkpoint/metadata.py, filesystem.py as of
torch 2.13)."""

from dataclasses import dataclass, field

from seawall.checkpoint.boxes import volume
from seawall.checkpoint.pickles.nodes import Built, Node, attribute, pairs_of
from seawall.checkpoint.views import MAX_ELEMENTS, dtype_of, shape_of
from seawall.errors import CorruptError

Offsets = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A box of a tensor: where it begins and how long it is in each dimension."""

    offsets: Offsets
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """``_StorageInfo``: where the bytes of a chunk or an object are."""

    file: str
    offset: int
    length: int
    transformed: bool
    """The stream was compressed or otherwise changed (``transform_descriptors``)."""


@dataclass(slots=True)
class DcpTensor:
    dtype: str
    shape: tuple[int, ...]
    chunks: list[Chunk]


@dataclass(slots=True)
class DcpMetadata:
    """What a save promises."""

    tensors: dict[str, DcpTensor] = field(default_factory=dict)
    objects: list[str] = field(default_factory=list)
    places: dict[tuple[str, Offsets | None], Place] = field(default_factory=dict)


def read_metadata(top: Node, where: str) -> DcpMetadata:
    """Raises ``CorruptError`` when the object is no ``Metadata``."""
    if not isinstance(top, Built) or not top.name.endswith("checkpoint.metadata.Metadata"):
        raise CorruptError("it does not hold a Metadata object", where=where)
    found = DcpMetadata()
    for name, entry in pairs_of(attribute(top, "state_dict_metadata")):
        if not isinstance(name, str) or not isinstance(entry, Built):
            raise CorruptError("an entry has no name or no description", where=where)
        if entry.name.endswith(".BytesStorageMetadata"):
            found.objects.append(name)
        elif entry.name.endswith(".TensorStorageMetadata"):
            found.tensors[name] = _tensor(name, entry, where)
        else:
            raise CorruptError(f"entry {name} is described as {entry.name[:80]}, which is not known", where=where)
    for index, info in pairs_of(attribute(top, "storage_data")):
        key, place = _place(index, info, where)
        found.places[key] = place
    return found


def _tensor(name: str, entry: Built, where: str) -> DcpTensor:
    shape = shape_of(attribute(entry, "size"))
    properties = attribute(entry, "properties")
    dtype = dtype_of(attribute(properties, "dtype")) if isinstance(properties, Built) else "unknown"
    if isinstance(properties, Built) and dtype == "unknown":
        # TensorProperties pickles itself as a tuple: (dtype, layout, requires_grad, memory format, pin_memory).
        state = properties.states[0] if properties.states else properties.args
        if isinstance(state, tuple) and state:
            dtype = dtype_of(state[0])
    chunks: list[Chunk] = []
    listed = attribute(entry, "chunks")
    for chunk in listed if isinstance(listed, list) else []:
        box = Chunk(shape_of(attribute(chunk, "offsets")), shape_of(attribute(chunk, "sizes")))
        if len(box.offsets) != len(shape) or len(box.shape) != len(shape) or min((*box.offsets, *box.shape), default=0) < 0:
            raise CorruptError(f"a chunk of tensor {name} has another number of dimensions than the tensor", where=where)
        chunks.append(box)
    if min(shape, default=0) < 0 or any(number > MAX_ELEMENTS for box in chunks for number in (*box.offsets, *box.shape)):
        raise CorruptError(f"tensor {name} has no valid shape", where=where)
    if max(shape, default=0) > MAX_ELEMENTS or volume(shape) > MAX_ELEMENTS:
        raise CorruptError(f"tensor {name} has more elements than can be counted", where=where)
    return DcpTensor(dtype, shape, chunks)


def _place(index: Node, info: Node, where: str) -> tuple[tuple[str, Offsets | None], Place]:
    name = attribute(index, "fqn")
    offset = attribute(index, "offset")
    file, start, length = attribute(info, "relative_path"), attribute(info, "offset"), attribute(info, "length")
    if not isinstance(name, str) or not isinstance(file, str) or not _is_count(start) or not _is_count(length):
        raise CorruptError("an entry of storage_data is damaged", where=where)
    transforms = attribute(info, "transform_descriptors")
    key = (name, None if offset is None else shape_of(offset))
    return key, Place(file, start, length, bool(transforms))


def _is_count(value: Node) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
