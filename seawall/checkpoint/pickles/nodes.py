"""What a pickle would build, as inert values.

``None``, ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``list`` and ``tuple`` stand for themselves; everything else is a node
of this file.
No node is ever called, imported, compared or hashed by content.
"""

from dataclasses import dataclass, field
from typing import Any

Node = Any
"""One of the plain values above or a node below; the machine cannot know more than that about a pickle."""


@dataclass(eq=False, slots=True)
class Name:
    """A global: what ``GLOBAL``, ``STACK_GLOBAL`` or ``INST`` would import."""

    module: str
    name: str

    @property
    def full(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False, slots=True)
class Mapping:
    """A dict. Keys may be nodes, so it stays a list of pairs in the order written."""

    pairs: list[tuple[Node, Node]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Group:
    """A set or frozenset."""

    members: list[Node] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Built:
    """What a call would return: ``REDUCE``, ``NEWOBJ``, ``NEWOBJ_EX``, ``INST``, ``OBJ``, and what was put into it afterwards."""

    maker: Node
    args: Node
    keywords: Node = None
    states: list[Node] = field(default_factory=list)
    members: list[Node] = field(default_factory=list)
    pairs: list[tuple[Node, Node]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Full name of the maker, or empty when it is itself the result of a call."""
        return self.maker.full if isinstance(self.maker, Name) else ""


@dataclass(eq=False, slots=True)
class Persistent:
    """A persistent id: in torch files a reference to a storage."""

    pid: Node


@dataclass(eq=False, slots=True)
class Extension:
    """An ``EXT`` opcode: a global known only to the registry of the process that reads."""

    code: int


def pairs_of(node: Node) -> list[tuple[Node, Node]]:
    """Pairs of a dict or of an object that behaves like one (``OrderedDict``, ``defaultdict``); empty for others."""
    if isinstance(node, Mapping | Built):
        return node.pairs
    return []


def lookup(node: Node, key: str) -> Node:
    """The last value under a text key, or None."""
    for name, value in reversed(pairs_of(node)):
        if isinstance(name, str) and name == key:
            return value
    return None


def attributes(node: Node) -> list[tuple[Node, Node]]:
    """Attributes that ``BUILD`` would set on an object: the pairs of its states, slots included."""
    found: list[tuple[Node, Node]] = []
    if isinstance(node, Built):
        for state in node.states:
            for part in state if isinstance(state, tuple) else (state,):
                found.extend(pairs_of(part))
    return found


def attribute(node: Node, key: str) -> Node:
    """One attribute of an object, or None."""
    for name, value in reversed(attributes(node)):
        if isinstance(name, str) and name == key:
            return value
    return None


def children(node: Node) -> list[Node]:
    """The nodes directly inside ``node``."""
    if isinstance(node, list | tuple):
        return list(node)
    if isinstance(node, Mapping):
        return [part for pair in node.pairs for part in pair]
    if isinstance(node, Group):
        return node.members
    if isinstance(node, Built):
        inside = [node.maker, node.args, node.keywords, *node.states, *node.members]
        inside.extend(part for pair in node.pairs for part in pair)
        return inside
    if isinstance(node, Persistent):
        return [node.pid]
    return []
