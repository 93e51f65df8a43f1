"""Weights in numbered shards with an index (``*.safetensors.index.json``, ``*.bin.index.json``), as the transformers library writes them.

The index maps each tensor to a shard. It is checked both ways: every shard and tensor it names is there, and every numbered file is named
(a server that drops a missing shard serves uninitialised weights: sglang pull 32279).
"""

import re
from collections.abc import Iterable

from seawall.checkpoint.content import Content
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.look import Look
from seawall.checkpoint.paths import inside, joined

INDEX = re.compile(r"(?P<stem>.+?)\.(?P<format>safetensors|bin|pt)\.index(?:\.(?P<variant>[\w-]+))?\.json")
NUMBERED = re.compile(r"(?P<stem>.+?)-(?P<number>\d{1,6})-of-(?P<total>\d{1,6})\.(?P<format>safetensors|bin|pt)")


def indexes(names: Iterable[str]) -> list[str]:
    """Index files among the names of one folder."""
    return sorted(name for name in names if INDEX.fullmatch(name))


def numbered(names: Iterable[str]) -> list[str]:
    """Numbered shards among them."""
    return sorted(name for name in names if NUMBERED.fullmatch(name))


def is_sharded(names: list[str]) -> bool:
    return bool(indexes(names) or numbered(names))


def is_superseded(names: list[str]) -> bool:
    """Whether only a stale index is left beside a single file of the same stem."""
    stems = [match for name in indexes(names) if (match := INDEX.fullmatch(name))]
    return not numbered(names) and any(f"{match['stem']}.{match['format']}" in names for match in stems)


def inspect_sharded(look: Look, below: str = "") -> None:
    """Judge all indexes of a folder and the numbered shards that none of them names."""
    names = look.folder.names(below)
    listed: set[str] = set()
    for index in indexes(names):
        match = INDEX.fullmatch(index)
        single = f"{match['stem']}.{match['format']}" if match else ""
        if single in names and _is_stale(look, below, index):
            # save_pretrained of one file over a sharded save leaves the index behind; loaders take the single file.
            look.found.add(
                Verdict.WARN,
                f"the index names shards that are gone; {single} stands beside it, and loaders take that",
                joined(below, index),
            )
            look.take(look.read(joined(below, single)))
            continue
        listed |= _judge_index(look, below, index)
    _judge_unlisted(look, below, names, listed)


def _weight_map(look: Look, path: str) -> dict[str, str] | None:
    found = look.json(path)
    if found is None:
        return None
    mapping = found.get("weight_map")
    if not isinstance(mapping, dict) or not all(isinstance(shard, str) for shard in mapping.values()):
        look.found.add(Verdict.CORRUPT, "the index has no weight_map from tensors to files", path)
        return None
    return mapping


def _is_stale(look: Look, below: str, index: str) -> bool:
    mapping = _weight_map(look, joined(below, index))
    return (
        mapping is not None
        and all(inside(shard) for shard in mapping.values())
        and not any(look.folder.has(joined(below, shard)) for shard in set(mapping.values()))
    )


def _judge_index(look: Look, below: str, index: str) -> set[str]:
    path = joined(below, index)
    mapping = _weight_map(look, path)
    if mapping is None:
        return set(numbered(look.folder.names(below)))
    shards: dict[str, list[str]] = {}
    for tensor, shard in mapping.items():
        shards.setdefault(shard, []).append(tensor)
    if not shards:
        look.found.add(Verdict.WARN, "the index names no tensors", path)
    for shard, tensors in sorted(shards.items()):
        if not inside(shard):
            look.found.add(Verdict.HOSTILE, f"the index names a file outside of the folder: {shard}", path, tensors[0])
            continue
        where = joined(below, shard)
        entry = look.folder.entries.get(where)
        if entry is None or entry.kind == "dangling":
            look.found.add(
                Verdict.INCOMPLETE, f"the shard {shard} is not there, the index puts {len(tensors)} tensors in it", where, tensors[0]
            )
            continue
        content = look.read(where)
        look.take(content)
        if content is not None:
            _compare(look, where, content, tensors, mapping)
    return set(shards)


def _compare(look: Look, where: str, content: Content, tensors: list[str], mapping: dict[str, str]) -> None:
    if not content.ours:
        look.found.add(Verdict.CORRUPT, f"the shard is a {content.kind}", where)
        return
    have = {tensor.name for tensor in content.tensors}
    missing = [tensor for tensor in tensors if tensor not in have]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        look.found.add(Verdict.CORRUPT, f"the index says that {missing[0]}{more} is in this shard, and it is not", where, missing[0])
    extra = sorted(have - set(mapping))
    if extra:
        look.found.add(Verdict.WARN, f"the shard holds tensors that the index does not name, such as {extra[0]}", where, extra[0])


def _judge_unlisted(look: Look, below: str, names: list[str], listed: set[str]) -> None:
    """Numbered files that no index names: leftovers beside an index, an unfinished save without one."""
    unlisted = [name for name in numbered(names) if name not in listed]
    if not unlisted:
        return
    formats = {match["format"] for name in indexes(names) if (match := INDEX.fullmatch(name))}
    for name in unlisted:
        match = NUMBERED.fullmatch(name)
        if match and match["format"] in formats:
            look.found.add(Verdict.WARN, "a numbered shard that the index does not name: left over from another save", joined(below, name))
    orphans = [name for name in unlisted if (match := NUMBERED.fullmatch(name)) and match["format"] not in formats]
    if orphans and not formats:
        _judge_without_index(look, below, orphans)
    elif orphans:
        look.found.add(Verdict.WARN, "shards of another format stand beside the indexed ones", joined(below, orphans[0]))


def _judge_without_index(look: Look, below: str, names: list[str]) -> None:
    groups: dict[tuple[str, str, int], set[int]] = {}
    for name in names:
        match = NUMBERED.fullmatch(name)
        if match:
            groups.setdefault((match["stem"], match["format"], int(match["total"])), set()).add(int(match["number"]))
        look.take(look.read(joined(below, name)))
    for (stem, ending, total), numbers in sorted(groups.items()):
        width = len(NUMBERED.fullmatch(names[0])["number"]) if names else 5  # type: ignore[index]  # the pattern matched when names were chosen
        absent = [number for number in range(1, min(total, 100_000) + 1) if number not in numbers]
        if 0 in numbers and absent[-1:] == [total]:
            absent.pop()
        for number in absent[:20]:
            name = f"{stem}-{number:0{width}d}-of-{total:0{width}d}.{ending}"
            look.found.add(Verdict.INCOMPLETE, f"the shard {name} is not there", joined(below, name))
        look.found.add(
            Verdict.INCOMPLETE,
            f"the index {stem}.{ending}.index.json, which is written last, is not there",
            joined(below, f"{stem}.{ending}.index.json"),
        )
