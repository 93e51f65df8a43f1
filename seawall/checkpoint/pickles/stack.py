"""The stack, memo and budget of the pickle machine, and what one run of it brings."""

import gc
from collections.abc import Callable
from dataclasses import dataclass, field

from seawall.checkpoint.pickles.nodes import Built, Extension, Group, Mapping, Name, Node
from seawall.errors import CorruptError, HostileError

MAX_OPCODES = 60_000_000
"""A ``.metadata`` for ten thousand files of a large model has some tens of millions."""
SMALL_BUDGET = 192 << 20
"""Bytes of nodes that any pickle may build."""
BUDGET_PER_BYTE = 48
"""And this much more for each of its own bytes: the ``.metadata`` of a distributed checkpoint costs 34 by the estimates below."""
HUGE_CLAIM = 1 << 30
"""A length claim above this that the file cannot hold is an attack on the allocator, not a cut file."""

CONTAINER_COST = 160
VALUE_COST = 48


@dataclass(slots=True)
class Pickle:
    """One pickle of a stream."""

    top: Node
    end: int
    """Offset just behind STOP."""
    names: dict[tuple[str, str], Name] = field(default_factory=dict)
    calls: list[Built] = field(default_factory=list)
    extensions: list[Extension] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    """Byte strings large enough to be pickles themselves."""
    oddities: list[str] = field(default_factory=list)
    """Things no honest writer does; each is hostile."""
    shared: int = 0
    """How often a container was fetched from the memo; many mean that the tree may unfold to far more than it is."""


class BrokenPickleError(CorruptError):
    """A pickle that no unpickler reads to its end. What stands before the break runs all the same: models that were broken behind their
    payload passed the scanner of a model hub ("nullifAI", ReversingLabs 2025). So ``found`` keeps it, to be judged."""

    def __init__(self, error: CorruptError, found: Pickle) -> None:
        super().__init__(error.what, where=error.where, why=error.why, do=error.do)
        self.found = found


class Machine:
    """The state of one run: stack, memo, budget, and what was noticed. What each opcode does stands in the table ``ACTIONS``."""

    def __init__(self, data: bytes, at: int, where: str) -> None:
        self.data = data
        self.at = at
        self.where = where
        self.stack: list[Node] = []
        self.marks: list[int] = []
        self.memo: dict[int, Node] = {}
        self.budget = SMALL_BUDGET + BUDGET_PER_BYTE * (len(data) - at)
        self.found = Pickle(None, at)

    # ---- reading operands

    def corrupt(self, text: str) -> CorruptError:
        return CorruptError(f"pickle: {text}", where=self.where, why=f"at byte {self.at}")

    def spend(self, cost: int) -> None:
        self.budget -= cost
        if self.budget < 0:
            raise HostileError("unpickling would exhaust memory", where=self.where, why=f"at byte {self.at} of {len(self.data)}")

    def take(self, length: int) -> bytes:
        end = self.at + length
        if end > len(self.data) or length < 0:
            if length > HUGE_CLAIM:
                raise HostileError(f"pickle: a length of {length} bytes is claimed", where=self.where, why=f"{len(self.data)} are there")
            raise self.corrupt("it is cut")
        part = self.data[self.at : end]
        self.at = end
        return part

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise self.corrupt("a line has no end")
        part = self.data[self.at : end]
        self.at = end + 1
        return part

    def unsigned(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self.corrupt("text is not UTF-8") from None

    # ---- the stack

    def push(self, node: Node, cost: int = VALUE_COST) -> None:
        self.spend(cost)
        self.stack.append(node)

    def pop(self) -> Node:
        if not self.stack or (self.marks and len(self.stack) <= self.marks[-1]):
            raise self.corrupt("the stack is empty")
        return self.stack.pop()

    def top(self) -> Node:
        if not self.stack or (self.marks and len(self.stack) <= self.marks[-1]):
            raise self.corrupt("the stack is empty")
        return self.stack[-1]

    def to_mark(self) -> list[Node]:
        if not self.marks:
            raise self.corrupt("there is no mark")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def put(self, index: int) -> None:
        # The C unpickler allocates a table up to the index: one opcode can ask for 64 GB.
        if index < 0 or index > 2 * len(self.data) + 1024:
            raise HostileError(f"pickle: memo index {index}", where=self.where, why="it makes the reader allocate a table of that size")
        self.spend(VALUE_COST)
        self.memo[index] = self.top()

    def get(self, index: int) -> None:
        if index not in self.memo:
            raise self.corrupt(f"memo {index} was never stored")
        node = self.memo[index]
        if isinstance(node, list | tuple | Mapping | Group | Built):
            self.found.shared += 1
        self.push(node, 8)

    # ---- globals and calls

    def name(self, module: str, name: str) -> Name:
        known = self.found.names.get((module, name))
        if known is None:
            self.spend(CONTAINER_COST)
            known = self.found.names[(module, name)] = Name(module, name)
        return known

    def call(self, maker: Node, args: Node, keywords: Node = None) -> None:
        raw = _encoded(maker, args)
        if raw is not None:
            self.bytes_value(raw)
            return
        self.spend(CONTAINER_COST * 2)
        built = Built(maker, args, keywords)
        self.found.calls.append(built)
        self.stack.append(built)

    def bytes_value(self, raw: bytes) -> None:
        if len(raw) >= 8:
            self.found.texts.append(raw)
        self.push(raw, VALUE_COST + len(raw))

    def build(self) -> None:
        state = self.pop()
        target = self.top()
        if isinstance(target, Built):
            self.spend(8)
            target.states.append(state)
        elif isinstance(target, Name):
            self.found.oddities.append(f"it sets attributes of {target.full} itself")
        else:
            self.found.oddities.append(f"it sets attributes of a {type(target).__name__}")

    def append(self, target: Node, items: list[Node]) -> None:
        self.spend(8 * len(items))
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, Group | Built):
            target.members.extend(items)
        else:
            self.found.oddities.append(f"it appends to a {_described(target)}")

    def set_items(self, target: Node, items: list[Node]) -> None:
        if len(items) % 2:
            raise self.corrupt("a key has no value")
        self.spend(72 * (len(items) // 2))
        pairs = list(zip(items[::2], items[1::2], strict=True))
        if isinstance(target, Mapping | Built):
            target.pairs.extend(pairs)
        else:
            self.found.oddities.append(f"it sets items of a {_described(target)}")

    # ---- running

    def run(self) -> Pickle:
        # Nothing here can be garbage before the end, and the collector would walk all of it again and again.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return self.steps()
        except CorruptError as error:
            raise BrokenPickleError(error, self.found) from None
        finally:
            if collecting:
                gc.enable()

    def steps(self) -> Pickle:
        data = self.data
        table = ACTIONS
        for _ in range(MAX_OPCODES):
            if self.at >= len(data):
                raise self.corrupt("it ends before STOP")
            opcode = data[self.at]
            self.at += 1
            if opcode == 0x2E:  # STOP
                if self.marks:
                    raise self.corrupt("a mark is left over")
                self.found.top = self.pop()
                self.found.end = self.at
                return self.found
            action = table.get(opcode)
            if action is None:
                raise self.corrupt(f"there is no opcode 0x{opcode:02x}")
            action(self)
        raise HostileError(f"a pickle of more than {MAX_OPCODES} opcodes", where=self.where)


def _encoded(maker: Node, args: Node) -> bytes | None:
    """Protocols 0 to 2 have no bytes: they are written as ``_codecs.encode(text, "latin1")``, which is the only call that is
    carried out here."""
    if not isinstance(maker, Name) or maker.full not in ("_codecs.encode", "builtins.bytearray", "__builtin__.bytearray"):
        return None
    if not isinstance(args, tuple) or len(args) != 2 or not isinstance(args[0], str) or args[1] not in ("latin1", "latin-1"):
        return None
    try:
        return args[0].encode("latin-1")
    except UnicodeEncodeError:
        return None


def _described(target: Node) -> str:
    return target.full if isinstance(target, Name) else type(target).__name__


ACTIONS: dict[int, Callable[[Machine], None]] = {}
"""Filled by :mod:`seawall.checkpoint.pickles.machine`."""
