"""What loading a pickle would do, judged from its inert nodes.

Three outcomes (failures of both kinds are in the public record: scanners that refuse every rng_state.pth, and loaders that ran what a
scanner had passed): only known names, names that nobody listed (a person should look), or something that runs code or exhausts memory.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from seawall.checkpoint import zips
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.pickles.machine import read_pickle
from seawall.checkpoint.pickles.names import BUILTINS, Standing, judge_name
from seawall.checkpoint.pickles.nodes import Built, Extension, Group, Mapping, Name, Node, Persistent, children
from seawall.checkpoint.pickles.stack import ACTIONS, BrokenPickleError, Pickle
from seawall.checkpoint.reading import InMemory
from seawall.errors import CorruptError, HostileError

MAX_UNFOLDED = 1 << 32
"""Nodes of a tree in which every shared part counts once for each use. Above it, anything that walks the tree never ends."""
MAX_ALLOCATION = 1 << 36
"""Elements or bytes that one call may ask for: above it, loading fails on any machine, or swaps it to death."""
MAX_NESTING = 3
"""Pickles inside of pickles; files of torch have one inside another at most."""
MAX_NESTED_PICKLE = 64 << 20

_SIZED = frozenset({"numpy.ndarray", "numpy._core.multiarray._reconstruct", "numpy.core.multiarray._reconstruct", "torch.Tensor"})
_ALLOCATING = frozenset({"bytearray", "bytes", "list", "tuple", "set", "frozenset"})
_IMPORTS = "unpickling would import "
_CALLING = frozenset(
    {"functools.partial", "torch._tensor._rebuild_from_type", "torch._tensor._rebuild_from_type_v2", "torch.utils._pytree.tree_map"}
)
"""Harmless makers that call the first of their arguments."""
_LOADING = "torch.storage._load_from_bytes"
"""Harmless by itself: it reads the pickle in the bytes that it is given, and those are looked into here."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that loading would do."""

    verdict: Verdict
    text: str


def judge_pickle(pickle: Pickle, depth: int = 0) -> list[Finding]:
    """Everything worth saying about one pickle; empty when all its names are known to be harmless."""
    found = [Finding(Verdict.HOSTILE, f"unpickling is rigged: {text}") for text in pickle.oddities[:8]]
    allowed = _attribute_lookups(pickle)
    unknown: list[str] = []
    for (module, name), node in sorted(pickle.names.items()):
        standing = judge_name(module, name)
        if standing is Standing.DANGEROUS and id(node) in allowed:
            standing = Standing.UNKNOWN
        if standing is Standing.DANGEROUS:
            found.append(Finding(Verdict.HOSTILE, f"{_IMPORTS}{_clean(node.full)}, which can run code or open files"))
        elif standing is Standing.UNKNOWN:
            unknown.append(_clean(node.full))
    if pickle.extensions:
        unknown.append("an extension code")
    if unknown:
        shown = ", ".join(unknown[:6]) + (f" and {len(unknown) - 6} more" if len(unknown) > 6 else "")
        found.append(Finding(Verdict.WARN, f"the pickle names classes that are not on the list of known ones: {shown}"))
    found.extend(_judge_calls(pickle))
    found.extend(_judge_loading(pickle, depth))
    if pickle.shared >= 24 and unfolded(pickle.top) > MAX_UNFOLDED:
        found.append(Finding(Verdict.HOSTILE, "shared parts unfold to more than 2**32 nodes: whatever walks this never ends"))
    if depth < MAX_NESTING:
        found.extend(_judge_nested(pickle, depth))
    return found


def judge_broken(error: CorruptError) -> list[Finding]:
    """What a pickle that cannot be read to its end does before the break: only what is hostile, the rest is moot."""
    if not isinstance(error, BrokenPickleError):
        return []
    return [finding for finding in judge_pickle(error.found) if finding.verdict is Verdict.HOSTILE]


def _clean(text: str) -> str:
    return text.encode("unicode_escape").decode()[:120]


def _attribute_lookups(pickle: Pickle) -> set[int]:
    """Ids of ``getattr`` names that are used only as ``getattr(known class, "plain_name")`` and never called on.

    Enum members are pickled so by Python 3.11.0 to 3.11.3 (and bound methods by all): refusing them would refuse honest files.
    """
    getters: set[int] = {id(node) for node in pickle.names.values() if node.module in BUILTINS and node.name == "getattr"}
    if not getters:
        return set()
    results: set[int] = set()
    for call in pickle.calls:
        if id(call.maker) in getters:
            args = call.args
            plain = (
                isinstance(args, tuple)
                and len(args) == 2
                and isinstance(args[1], str)
                and args[1].isidentifier()
                and not args[1].startswith("_")
            )
            owner = args[0] if plain else None
            if not plain or not isinstance(owner, Name) or judge_name(owner.module, f"{owner.name}.{args[1]}") is Standing.DANGEROUS:
                return set()
            if judge_name(owner.module, owner.name) is Standing.DANGEROUS or not owner.name.rpartition(".")[2].lstrip("_")[:1].isupper():
                return set()
            results.add(id(call))
    for call in pickle.calls:
        inside = call.args if isinstance(call.args, tuple) else ()
        if id(call.maker) in results or any(id(part) in getters for part in inside):
            return set()
    return getters


def _judge_calls(pickle: Pickle) -> Iterator[Finding]:
    for call in pickle.calls:
        maker = call.maker
        if isinstance(maker, Built) and maker.name not in ("functools.partial",):
            yield Finding(Verdict.HOSTILE, f"unpickling would call what {_clean(maker.name) or 'another call'} returns")
        elif isinstance(maker, Persistent | Mapping | Group | list | tuple | str | bytes | int | float | None):
            yield Finding(Verdict.HOSTILE, f"unpickling would call a {type(maker).__name__}")
        elif isinstance(maker, Extension):
            yield Finding(Verdict.WARN, f"unpickling would call whatever extension code {maker.code} stands for")
        elif isinstance(maker, Name):
            yield from _judge_call_of(maker, call)


def _judge_call_of(maker: Name, call: Built) -> Iterator[Finding]:
    args = call.args if isinstance(call.args, tuple) else (call.args,)
    if maker.module in BUILTINS and maker.name in _ALLOCATING:
        size = args[0] if args else 0
        if isinstance(size, Built):
            size = max((abs(part) for part in _tuple(size.args) if _is_int(part)), default=0) if size.name.endswith("range") else 0
        if _is_int(size) and size > MAX_ALLOCATION >> 8:
            yield Finding(Verdict.HOSTILE, f"unpickling would allocate {maker.name} of {_amount(size)}")
    elif maker.module in BUILTINS and maker.name == "type" and len(args) == 3:
        yield Finding(Verdict.HOSTILE, "unpickling would make a new class")
    elif maker.name.endswith("Storage") or maker.full in _SIZED:
        if (biggest := _biggest(args)) > MAX_ALLOCATION:
            yield Finding(Verdict.HOSTILE, f"unpickling would allocate {_amount(biggest)} elements in {_clean(maker.full)}")
    if maker.full in _CALLING:
        for first in (args[:1], *(state[:1] for state in call.states if isinstance(state, tuple))):
            if first and isinstance(first[0], Built) and first[0].name != "functools.partial":
                yield Finding(Verdict.HOSTILE, f"unpickling would have {_clean(maker.full)} call what another call returns")
    if maker.name.startswith("_rebuild_") and (call.pairs or call.members):
        yield Finding(Verdict.HOSTILE, f"unpickling would write items into the result of {_clean(maker.full)}")


def _is_int(value: Node) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _tuple(value: Node) -> tuple[Node, ...]:
    return value if isinstance(value, tuple) else ()


def _amount(number: int) -> str:
    return str(number) if number.bit_length() <= 128 else f"a number of {number.bit_length()} bits"


def _biggest(args: tuple[Node, ...]) -> int:
    biggest = 0
    for part in args:
        if _is_int(part):
            biggest = max(biggest, abs(part))
        elif isinstance(part, tuple) and part and all(_is_int(number) for number in part):
            product = 1
            for number in part[:64]:
                product = min(product * abs(number), 1 << 128)
            biggest = max(biggest, product)
    return biggest


def _judge_nested(pickle: Pickle, depth: int) -> Iterator[Finding]:
    """Byte strings that hold pickles: layers with an ``extra_state`` read them when they are loaded. A pickle may begin with any opcode,
    and noise is damaged after a few."""
    for raw in pickle.texts:
        if raw[:4] == b"PK\x03\x04":
            for stream in _structures_of(raw):
                yield from _judge_stream(stream, depth)
        elif raw[0] == 0x80 or raw[0] in ACTIONS:
            yield from _judge_stream(raw, depth)


def _judge_loading(pickle: Pickle, depth: int) -> Iterator[Finding]:
    """``_load_from_bytes`` runs the pickle that it is given, so that has to be there to be looked into, and read to its break."""
    name = next((node for node in pickle.names.values() if node.full == _LOADING), None)
    if name is None:
        return
    if _is_handed_on(pickle, name):
        yield Finding(Verdict.HOSTILE, f"unpickling would hand {_LOADING} to something else, which can call it")
    for call in pickle.calls:
        if call.maker is not name:
            continue
        raw = call.args[0] if isinstance(call.args, tuple) and len(call.args) == 1 else None
        if not isinstance(raw, bytes):
            yield Finding(Verdict.HOSTILE, "unpickling would run a pickle out of bytes that are made only while it is read")
        elif depth >= MAX_NESTING:
            yield Finding(Verdict.HOSTILE, f"pickles are inside of pickles more than {MAX_NESTING} deep")
        elif raw[:2] != b"PK":
            yield from _judge_stream(raw, depth, to_break=True)


def _is_handed_on(pickle: Pickle, name: Name) -> bool:
    """Whether a global stands anywhere but as what is called."""
    seen: set[int] = set()
    stack: list[Node] = [pickle.top, *pickle.calls]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for child in children(node):
            if child is name and not (isinstance(node, Built) and child is node.maker):
                return True
            if isinstance(child, list | tuple | Mapping | Group | Built | Persistent):
                stack.append(child)
    return False


def _structures_of(raw: bytes) -> Iterator[bytes]:
    """The pickle records of a torch zip that is a byte string. An archive that cannot be read is one that no loader reads."""
    source = InMemory(raw, "an archive inside the pickle")
    with suppress(CorruptError):
        for name, record in zips.read_archive(source).records.items():
            if name.lower().endswith(".pkl"):
                yield zips.contents(source, record, MAX_NESTED_PICKLE)


def _judge_stream(raw: bytes, depth: int, to_break: bool = False) -> Iterator[Finding]:
    at, marked = 0, raw[0] == 0x80 and 2 <= raw[1] <= 5
    for _ in range(16):
        try:
            nested = read_pickle(raw, at, "a pickle inside the pickle")
        except CorruptError as error:
            if to_break:
                yield from judge_broken(error)
            return
        except HostileError as error:
            # A random state in bytes claims lengths, too.
            if to_break or (marked and raw[-1:] == b"."):
                yield Finding(Verdict.HOSTILE, str(error))
            return
        for finding in judge_pickle(nested, depth + 1):
            # And noise appends to what cannot be appended to, but it does not spell the name of a module.
            if finding.verdict is Verdict.HOSTILE and (to_break or marked or finding.text.startswith(_IMPORTS)):
                yield Finding(finding.verdict, f"in a byte string: {finding.text}")
        at = nested.end
        if at >= len(raw):
            return


def unfolded(top: Node) -> int:
    """Size of the tree if nothing were shared; parts that contain themselves count once."""
    weight: dict[int, int] = {}
    stack: list[tuple[Node, bool]] = [(top, False)]
    while stack:
        node, done = stack.pop()
        key = id(node)
        if done:
            weight[key] = 1 + sum(weight.get(id(child), 1) for child in children(node))
            continue
        if key in weight:
            continue
        weight[key] = 1
        inside = children(node)
        if inside:
            stack.append((node, True))
            stack.extend((child, False) for child in inside if isinstance(child, list | tuple | Mapping | Group | Built | Persistent))
    return weight.get(id(top), 1)
