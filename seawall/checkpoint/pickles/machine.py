"""A pickle machine that runs nothing.

It follows the opcodes of protocols 0 to 5 (PEP 3154, PEP 574, CPython's pickletools) and builds the nodes of
:mod:`seawall.checkpoint.pickles.nodes`. Everything it allocates is paid for from a budget, so a few bytes cannot ask for gigabytes.
Raises ``CorruptError`` for what no unpickler would accept and ``HostileError`` for what exists to exhaust the reader.
"""

import codecs
import struct
from collections.abc import Callable

from seawall.checkpoint.pickles.nodes import Extension, Group, Mapping, Node, Persistent
from seawall.checkpoint.pickles.stack import ACTIONS, CONTAINER_COST, HUGE_CLAIM, VALUE_COST, Machine, Pickle
from seawall.errors import HostileError

MAX_TEXT_NUMBER = 4_000
"""Digits; CPython itself refuses to parse more than 4300."""


def read_pickle(data: bytes, at: int = 0, where: str = "") -> Pickle:
    """The pickle that begins at ``at``."""
    return Machine(data, at, where).run()


def _op(code: bytes) -> Callable[[Callable[[Machine], None]], Callable[[Machine], None]]:
    def register(action: Callable[[Machine], None]) -> Callable[[Machine], None]:
        ACTIONS[code[0]] = action
        return action

    return register


def _constant(code: bytes, value: Node) -> None:
    ACTIONS[code[0]] = lambda m: m.push(value, 8)


_constant(b"N", None)
_constant(b"\x88", True)
_constant(b"\x89", False)
ACTIONS[ord("]")] = lambda m: m.push([], CONTAINER_COST)
ACTIONS[ord("}")] = lambda m: m.push(Mapping(), CONTAINER_COST)
ACTIONS[ord(")")] = lambda m: m.push((), 8)
ACTIONS[0x8F] = lambda m: m.push(Group(), CONTAINER_COST)
ACTIONS[ord("K")] = lambda m: m.push(m.unsigned(1), 8)
ACTIONS[ord("M")] = lambda m: m.push(m.unsigned(2))
ACTIONS[ord("J")] = lambda m: m.push(int.from_bytes(m.take(4), "little", signed=True))
ACTIONS[ord("G")] = lambda m: m.push(struct.unpack(">d", m.take(8))[0])
ACTIONS[ord("U")] = lambda m: _old_string(m, m.take(m.unsigned(1)))
ACTIONS[ord("T")] = lambda m: _old_string(m, m.take(int.from_bytes(m.take(4), "little", signed=True)))
ACTIONS[ord("C")] = lambda m: m.bytes_value(m.take(m.unsigned(1)))
ACTIONS[ord("B")] = lambda m: m.bytes_value(m.take(m.unsigned(4)))
ACTIONS[0x8E] = lambda m: m.bytes_value(m.take(m.unsigned(8)))
ACTIONS[0x96] = lambda m: m.bytes_value(m.take(m.unsigned(8)))
ACTIONS[0x8C] = lambda m: _push_text(m, m.take(m.unsigned(1)))
ACTIONS[ord("X")] = lambda m: _push_text(m, m.take(m.unsigned(4)))
ACTIONS[0x8D] = lambda m: _push_text(m, m.take(m.unsigned(8)))
ACTIONS[ord("q")] = lambda m: m.put(m.unsigned(1))
ACTIONS[ord("r")] = lambda m: m.put(m.unsigned(4))
ACTIONS[ord("p")] = lambda m: m.put(_decimal(m, m.line()))
ACTIONS[0x94] = lambda m: m.put(len(m.memo))
ACTIONS[ord("h")] = lambda m: m.get(m.unsigned(1))
ACTIONS[ord("j")] = lambda m: m.get(m.unsigned(4))
ACTIONS[ord("g")] = lambda m: m.get(_decimal(m, m.line()))
ACTIONS[ord("c")] = lambda m: m.push(m.name(m.text(m.line()), m.text(m.line())), 8)
ACTIONS[ord("Q")] = lambda m: m.push(Persistent(m.pop()), CONTAINER_COST)
ACTIONS[ord("P")] = lambda m: m.push(Persistent(m.text(m.line())), CONTAINER_COST)
ACTIONS[ord("b")] = lambda m: m.build()


def _push_text(m: Machine, raw: bytes) -> None:
    m.push(m.text(raw), VALUE_COST + len(raw))


def _old_string(m: Machine, raw: bytes) -> None:
    """Protocol 0-2 ``str`` of Python 2: text where it is ASCII, as CPython decodes it, bytes otherwise."""
    try:
        m.push(raw.decode("ascii"), VALUE_COST + len(raw))
    except UnicodeDecodeError:
        m.bytes_value(raw)


def _decimal(m: Machine, raw: bytes) -> int:
    if len(raw) > MAX_TEXT_NUMBER:
        raise HostileError(f"pickle: a decimal number of {len(raw)} digits", where=m.where)
    try:
        return int(raw)
    except ValueError:
        raise m.corrupt("a decimal number was expected") from None


@_op(b"(")
def _mark(m: Machine) -> None:
    m.spend(16)
    m.marks.append(len(m.stack))


@_op(b"0")
def _pop(m: Machine) -> None:
    if m.marks and len(m.stack) == m.marks[-1]:
        m.marks.pop()
    else:
        m.pop()


@_op(b"1")
def _pop_mark(m: Machine) -> None:
    m.to_mark()


@_op(b"2")
def _dup(m: Machine) -> None:
    m.push(m.top(), 8)


@_op(b"\x80")
def _proto(m: Machine) -> None:
    version = m.unsigned(1)
    if version > 5:
        raise m.corrupt(f"protocol {version} is unknown")


@_op(b"\x95")
def _frame(m: Machine) -> None:
    length = m.unsigned(8)
    if length > len(m.data) - m.at:
        if length > HUGE_CLAIM:
            raise HostileError(f"pickle: a frame of {length} bytes is claimed", where=m.where)
        raise m.corrupt("a frame is cut")


@_op(b"I")
def _int(m: Machine) -> None:
    raw = m.line()
    if raw == b"00":
        m.push(False)
    elif raw == b"01":
        m.push(True)
    else:
        m.push(_decimal(m, raw))


@_op(b"L")
def _long(m: Machine) -> None:
    m.push(_decimal(m, m.line().removesuffix(b"L")))


@_op(b"\x8a")
def _long1(m: Machine) -> None:
    m.push(int.from_bytes(m.take(m.unsigned(1)), "little", signed=True))


@_op(b"\x8b")
def _long4(m: Machine) -> None:
    length = int.from_bytes(m.take(4), "little", signed=True)
    m.push(int.from_bytes(m.take(length), "little", signed=True), VALUE_COST + length)


@_op(b"F")
def _float(m: Machine) -> None:
    raw = m.line()
    try:
        m.push(float(raw))
    except ValueError:
        raise m.corrupt("a decimal number was expected") from None


@_op(b"S")
def _string(m: Machine) -> None:
    raw = m.line()
    if len(raw) < 2 or raw[0] != raw[-1] or raw[:1] not in (b"'", b'"'):
        raise m.corrupt("a string has no quotes")
    try:
        _old_string(m, codecs.escape_decode(raw[1:-1])[0])
    except ValueError:
        raise m.corrupt("a string has a broken escape") from None


@_op(b"V")
def _unicode(m: Machine) -> None:
    raw = m.line()
    try:
        m.push(raw.decode("raw-unicode-escape"), VALUE_COST + len(raw))
    except UnicodeDecodeError:
        raise m.corrupt("a string has a broken escape") from None


@_op(b"\x85")
def _tuple1(m: Machine) -> None:
    m.push((m.pop(),), 56)


@_op(b"\x86")
def _tuple2(m: Machine) -> None:
    second, first = m.pop(), m.pop()
    m.push((first, second), 64)


@_op(b"\x87")
def _tuple3(m: Machine) -> None:
    third, second, first = m.pop(), m.pop(), m.pop()
    m.push((first, second, third), 72)


@_op(b"t")
def _tuple(m: Machine) -> None:
    m.push(tuple(m.to_mark()), 56)


@_op(b"l")
def _list(m: Machine) -> None:
    m.push(m.to_mark(), CONTAINER_COST)


@_op(b"d")
def _dict(m: Machine) -> None:
    items = m.to_mark()
    m.push(Mapping(), CONTAINER_COST)
    m.set_items(m.stack[-1], items)


@_op(b"\x91")
def _frozenset(m: Machine) -> None:
    m.push(Group(m.to_mark()), CONTAINER_COST)


@_op(b"a")
def _append(m: Machine) -> None:
    item = m.pop()
    m.append(m.top(), [item])


@_op(b"e")
def _appends(m: Machine) -> None:
    items = m.to_mark()
    m.append(m.top(), items)


@_op(b"\x90")
def _add_items(m: Machine) -> None:
    items = m.to_mark()
    m.append(m.top(), items)


@_op(b"s")
def _set_item(m: Machine) -> None:
    value, key = m.pop(), m.pop()
    m.set_items(m.top(), [key, value])


@_op(b"u")
def _set_items(m: Machine) -> None:
    items = m.to_mark()
    m.set_items(m.top(), items)


@_op(b"\x93")
def _stack_global(m: Machine) -> None:
    name, module = m.pop(), m.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        m.found.oddities.append("it imports a name that is made only while it is read")
        name, module = "?", "?"
    m.push(m.name(module, name), 8)


@_op(b"R")
def _reduce(m: Machine) -> None:
    args = m.pop()
    m.call(m.pop(), args)


@_op(b"\x81")
def _newobj(m: Machine) -> None:
    args = m.pop()
    m.call(m.pop(), args)


@_op(b"\x92")
def _newobj_ex(m: Machine) -> None:
    keywords, args = m.pop(), m.pop()
    m.call(m.pop(), args, keywords)


@_op(b"i")
def _inst(m: Machine) -> None:
    module, name = m.text(m.line()), m.text(m.line())
    args = tuple(m.to_mark())
    m.call(m.name(module, name), args)


@_op(b"o")
def _obj(m: Machine) -> None:
    items = m.to_mark()
    if not items:
        raise m.corrupt("OBJ without a class")
    m.call(items[0], tuple(items[1:]))


def _extension(width: int) -> Callable[[Machine], None]:
    def action(m: Machine) -> None:
        node = Extension(m.unsigned(width))
        m.found.extensions.append(node)
        m.push(node, CONTAINER_COST)

    return action


ACTIONS[0x82] = _extension(1)
ACTIONS[0x83] = _extension(2)
ACTIONS[0x84] = _extension(4)


@_op(b"\x97")
def _next_buffer(m: Machine) -> None:
    raise m.corrupt("it needs buffers that are kept outside of it")


@_op(b"\x98")
def _readonly_buffer(m: Machine) -> None:
    m.top()
