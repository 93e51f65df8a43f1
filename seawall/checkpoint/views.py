"""Tensors out of the inert nodes of a torch pickle: which storage, which dtype, which part of it.

The ``_rebuild_*`` functions are those of torch/_utils.py and torch/_tensor.py as of torch 2.13; argument orders are quoted beside each.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from seawall.checkpoint.dtypes import BITS, STORAGES, canonical
from seawall.checkpoint.pickles.nodes import Built, Group, Mapping, Name, Node, Persistent, attributes, children, pairs_of
from seawall.errors import CorruptError

MAX_VISITS = 3_000_000
"""Nodes walked while names are collected."""
MAX_TENSORS = 1_000_000
MAX_NESTING = 200
"""Containers inside containers."""
MAX_DIMENSIONS = 64
"""torch itself stops at 64."""
MAX_ELEMENTS = 1 << 62
MAX_KEY = 1024
"""Characters of one key in a tensor's name: every name below repeats it."""
MAX_DTYPE = 64
"""Characters of a dtype that is not known here."""
MAX_KEY_DEPTH = 2
"""Tuples inside of tuples in a key. Deeper ones could be shared parts that unfold without end."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A persistent id: ``("storage", class, key, location, elements[, view])``."""

    key: str
    dtype: str
    elements: int

    @property
    def nbytes(self) -> int:
        return self.elements * BITS.get(self.dtype, 8) // 8


@dataclass(frozen=True, slots=True)
class View:
    """A tensor as a pickle describes it. Lengths and strides are in elements; ``storage`` is None for tensors without bytes (meta)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    storage: Storage | None
    offset: int = 0
    strides: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        product = 1
        for length in self.shape:
            product *= length
        return product

    @property
    def width(self) -> int:
        """Bytes of one element."""
        return BITS.get(self.dtype, 8) // 8

    @property
    def contiguous(self) -> bool:
        """Whether the elements stand in the storage in order without gaps."""
        if self.elements == 0:
            return True
        wanted = 1
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length != 1 and stride != wanted:
                return False
            wanted *= length
        return True

    @property
    def reach(self) -> int:
        """Elements of the storage up to and with the last one that the view touches."""
        if self.elements == 0:
            return self.offset if self.offset > 0 else 0
        return self.offset + sum((length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True)) + 1


def views_in(top: Node, where: str) -> tuple[list[View], bool]:
    """Every named tensor below ``top`` in order, and whether the walk stopped early because there are too many."""
    walk = _Walk(where)
    walk.run(top)
    return walk.found, walk.stopped


def _bearing(top: Node) -> set[int]:
    """Identities of the nodes that have a tensor somewhere below. The walk keeps to them, so that a maze without tensors costs nothing."""
    found: set[int] = set()
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(top, False)]
    while stack:
        node, done = stack.pop()
        if done:
            if any(id(child) in found for child in children(node)):
                found.add(id(node))
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Persistent) or (isinstance(node, Built) and node.name.endswith("_rebuild_meta_tensor_no_storage")):
            found.add(id(node))
        else:
            stack.append((node, True))
            stack.extend((child, False) for child in children(node) if _is_branch(child))
    return found


_Above = tuple[int, int, Any] | None
"""Identity and depth of a node, and those that it is inside of."""


def _is_inside_itself(node: Node, above: _Above) -> bool:
    while above is not None:
        if above[0] == id(node):
            return True
        above = above[2]
    return False


class _Walk:
    def __init__(self, where: str) -> None:
        self.where = where
        self.found: list[View] = []
        self.stopped = False
        self.bearing: set[int] = set()
        self.kept: list[Built] = []

    def run(self, top: Node) -> None:
        self.bearing = _bearing(top)
        stack: list[tuple[str, Node, _Above]] = [("", top, None)]
        seen: set[int] = set()
        # Tied weights are met a few times each; a tree that is met far more often than it has nodes was made to be walked for ever.
        for _ in range(min(MAX_VISITS, 1000 + 8 * len(self.bearing))):
            if not stack:
                return
            name, node, above = stack.pop()
            if id(node) in seen and _is_inside_itself(node, above):
                continue
            seen.add(id(node))
            depth = above[1] + 1 if above else 0
            if depth > MAX_NESTING or len(self.found) >= MAX_TENSORS:
                self.stopped = True
                continue
            here = (id(node), depth, above)
            stack.extend((_joined(name, key), child, here) for key, child in reversed(self.inside(name, node)))
        self.stopped = bool(stack)

    def inside(self, name: str, node: Node) -> list[tuple[str, Node]]:
        """Record the tensor that ``node`` is, or give its named parts."""
        if isinstance(node, Mapping):
            return [(key_text(key), value) for key, value in node.pairs if self.has_tensors(value)]
        if isinstance(node, list | tuple):
            return [(str(index), value) for index, value in enumerate(node) if self.has_tensors(value)]
        if isinstance(node, Group):
            return [(str(index), value) for index, value in enumerate(node.members) if self.has_tensors(value)]
        if isinstance(node, Persistent):
            # A bare storage, as in files that hold storages instead of tensors.
            storage = storage_of(node, self.where)
            if storage is not None:
                self.found.append(View(name, storage.dtype, (storage.elements,), storage, 0, (1,)))
            return []
        if isinstance(node, Built):
            return self.built(name, node)
        return []

    def made(self, maker: Node, args: Node) -> Built:
        """A call that a wrapper describes. It is kept, because identities are compared and a new object may get that of a dead one."""
        node = Built(maker, args)
        self.kept.append(node)
        return node

    def has_tensors(self, node: Node) -> bool:
        return id(node) in self.bearing

    def built(self, name: str, node: Built) -> list[tuple[str, Node]]:
        args = node.args if isinstance(node.args, tuple) else ()
        short = node.name.rpartition(".")[2]
        if node.name.startswith(("torch._utils.", "torch._tensor.", "torch.")) and short.startswith("_rebuild_"):
            return self.rebuilt(name, short, args)
        parts = [(key_text(key), value) for key, value in (*node.pairs, *attributes(node)) if self.has_tensors(value)]
        parts.extend((str(index), value) for index, value in enumerate(node.members) if self.has_tensors(value))
        parts.extend(("", value) for value in args if self.has_tensors(value))
        parts.extend(
            ("", value)
            for state in node.states
            for value in (state if isinstance(state, tuple) else (state,))
            if isinstance(value, list | Built)
        )
        return parts

    def rebuilt(self, name: str, short: str, args: tuple[Node, ...]) -> list[tuple[str, Node]]:
        if short in ("_rebuild_tensor_v2", "_rebuild_tensor", "_rebuild_tensor_v3", "_rebuild_qtensor"):
            # (storage, offset, size, stride, ...); v3: (..., requires_grad, hooks, dtype, metadata)
            storage = storage_of(args[0], self.where) if args else None
            if storage is None or len(args) < 4:
                raise CorruptError(f"tensor {name} has no storage", where=self.where)
            dtype = dtype_of(args[6]) if short == "_rebuild_tensor_v3" and len(args) > 6 else storage.dtype
            self.add(View(name, dtype, shape_of(args[2]), storage, _count(args[1]), shape_of(args[3])))
            return []
        if short in ("_rebuild_parameter", "_rebuild_parameter_with_state"):
            return [("", args[0])] if args else []
        if short == "_rebuild_from_type_v2":
            # (function, type, args, state)
            if len(args) < 3:
                return []
            state = args[3] if len(args) > 3 else None
            parts = [(key_text(key), value) for key, value in pairs_of(state) if self.has_tensors(value)]
            return [("", self.made(args[0], args[2])), *parts]
        if short in ("_rebuild_from_type",):
            return [("", self.made(args[0], args[2]))] if len(args) > 2 else []
        if short == "_rebuild_sparse_tensor" and len(args) > 1:
            # (layout, (indices, values, size, ...)) or (layout, (compressed, plain, values, size, ...))
            inner = args[1] if isinstance(args[1], tuple) else ()
            tensors = [part for part in inner if isinstance(part, Built)]
            labels = ("indices", "values") if len(tensors) == 2 else ("compressed_indices", "plain_indices", "values")
            return list(zip(labels, tensors, strict=False))
        if short == "_rebuild_nested_tensor":
            return list(zip(("values", "sizes", "strides", "offsets"), args, strict=False))
        if short in ("_rebuild_meta_tensor_no_storage",) and len(args) > 2:
            self.add(View(name, dtype_of(args[0]), shape_of(args[1]), None, 0, shape_of(args[2])))
            return []
        return [(str(index), value) for index, value in enumerate(args) if self.has_tensors(value)]

    def add(self, view: View) -> None:
        if len(view.shape) > MAX_DIMENSIONS or len(view.shape) != len(view.strides):
            raise CorruptError(
                f"tensor {view.name} has a shape of {len(view.shape)} and strides of {len(view.strides)} numbers", where=self.where
            )
        if any(number < 0 for number in (*view.shape, *view.strides, view.offset)):
            raise CorruptError(f"tensor {view.name} has a negative size, stride or offset", where=self.where)
        if view.elements > MAX_ELEMENTS or max((*view.shape, *view.strides, view.offset)) > MAX_ELEMENTS:
            raise CorruptError(f"tensor {view.name} has more elements than can be counted", where=self.where)
        self.found.append(view)


def _joined(name: str, key: str) -> str:
    if not key:
        return name
    return f"{name}.{key}" if name else key


def _is_branch(node: Node) -> bool:
    return isinstance(node, list | tuple | Mapping | Group | Built | Persistent)


def shortened(text: str, most: int) -> str:
    """A text of at most ``most`` characters: the rest of a longer one gives way to its digest, so that two stay two."""
    if len(text) <= most:
        return text
    return f"{text[: most - 65]}~{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def key_text(key: Node, depth: int = 0) -> str:
    """A dict key as part of a tensor's name. A module's own tables are left out, so that names are those of its state_dict."""
    if isinstance(key, str):
        return "" if key in ("_parameters", "_modules", "_buffers") else shortened(key, MAX_KEY)
    if isinstance(key, int):
        return str(key) if key.bit_length() < 256 else "?"
    if isinstance(key, tuple) and depth < MAX_KEY_DEPTH:
        return "(" + ",".join(key_text(part, depth + 1) for part in key[:8]) + ")"
    return "?"


def _count(node: Node) -> int:
    return node if isinstance(node, int) and not isinstance(node, bool) and node.bit_length() < 128 else -1


def shape_of(node: Node) -> tuple[int, ...]:
    """A tuple of counts, also inside ``torch.Size``; -1 stands for what is no count."""
    if isinstance(node, Built) and node.name == "torch.Size":
        node = node.args[0] if isinstance(node.args, tuple) and node.args else ()
    if isinstance(node, list | tuple):
        return tuple(_count(part) for part in node)
    return (-1,)


def dtype_of(node: Node) -> str:
    """Name of a ``torch.<dtype>`` global, or "unknown"."""
    if isinstance(node, Name) and node.module == "torch":
        name = canonical(node.name)
        return name if name in BITS or (name.isascii() and name.isidentifier() and len(name) <= MAX_DTYPE) else "unknown"
    return "unknown"


def storage_of(node: Node, where: str) -> Storage | None:
    """The storage that a persistent id names; None for persistent ids of other kinds."""
    if not isinstance(node, Persistent) or not isinstance(node.pid, tuple) or len(node.pid) < 5 or node.pid[0] != "storage":
        return None
    kind, key, elements = node.pid[1], node.pid[2], _count(node.pid[4])
    if not isinstance(kind, Name) or not isinstance(key, str) or elements < 0:
        raise CorruptError("a storage is described in no known way", where=where)
    dtype = STORAGES.get(kind.name.rpartition(".")[2], "")
    if not dtype:
        raise CorruptError(f"storages of class {kind.full[:80]} are unknown", where=where)
    return Storage(key, dtype, elements)
