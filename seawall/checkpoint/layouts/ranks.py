"""Plain per-rank files: ``rank_00000.pt`` and its many spellings. Nothing but the files themselves says how many there should be."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from seawall.checkpoint.content import Content
from seawall.checkpoint.facts import RANK_KEYS, RUN_KEYS, WORLD_KEYS, number, step_of, text
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.look import Look
from seawall.checkpoint.paths import joined

NAME = re.compile(
    r"(?P<before>(?:.*?[-_.])??)(?P<world>world_size_\d+_)?(?P<word>rank|shard|consolidated)(?P<gap>[-_.]?)(?P<rank>\d{1,7})(?P<after>(?:[-_.][\w.-]*)?)\.(?P<ending>pt|pth|bin|ckpt|safetensors)",
    re.I,
)
"""``rank_00000.pt``, ``rank0.pt``, ``model_rank_3.pth``, ``model_world_size_8_rank_0.pt`` (verl), ``consolidated.00.pth`` (Llama)."""


@dataclass(slots=True)
class _Rank:
    name: str
    rank: int
    world_in_name: int | None
    content: Content | None = None
    step: int | None = None
    world: int | None = None
    run: str | None = None


def rank_names(names: Iterable[str]) -> list[str]:
    """Rank files among names of one folder; the random states that a Trainer keeps for each rank are none."""
    return [
        name for name in names if NAME.fullmatch(name) and not name.startswith(("rng_state", "random_state", "mp_rank", "zero_pp", "__"))
    ]


def inspect_ranks(look: Look, below: str = "") -> None:
    """Judge every family of rank files in the folder (a trainer may write model, optimizer and extra state apart)."""
    families: dict[tuple[str, str, str], list[_Rank]] = {}
    for name in rank_names([*look.folder.names(below), *_broken_links(look, below)]):
        match = NAME.fullmatch(name)
        if match is None:
            continue
        world = int(re.sub(r"\D", "", match["world"])) if match["world"] else None
        key = (match["before"] + (match["world"] or ""), match["word"] + match["gap"], match["after"] + "." + match["ending"])
        families.setdefault(key, []).append(_Rank(name, int(match["rank"]), world))
    for family in families.values():
        _judge_family(look, below, sorted(family, key=lambda one: one.rank))
    largest = max((len(family) for family in families.values()), default=0)
    if any(len(family) != largest for family in families.values()):
        names = [family[0].name for family in families.values() if len(family) != largest]
        look.found.add(
            Verdict.WARN, f"families of rank files differ in number: {names[0]} and its kin have fewer than others", joined(below, names[0])
        )


def _broken_links(look: Look, below: str) -> list[str]:
    return [
        name.rpartition("/")[2]
        for name, entry in look.folder.entries.items()
        if name.rpartition("/")[0] == below and entry.kind in ("outside", "loop", "special")
    ]


def _judge_family(look: Look, below: str, family: list[_Rank]) -> None:
    for one in family:
        path = joined(below, one.name)
        one.content = look.read(path) if look.folder.has(path) else None
        if one.content is not None and one.content.ours:
            top = one.content.top
            one.step, one.world, one.run = step_of(one.content), number(top, *WORLD_KEYS), text(top, *RUN_KEYS)
            said = number(top, *RANK_KEYS)
            if said is not None and said != one.rank and family[0].rank == 0:
                look.found.add(Verdict.CORRUPT, f"the file says that it is rank {said}", path)
    known = [one for one in family if one.content is not None]
    worlds = Counter(world for one in known if (world := one.world or one.world_in_name))
    world = _world_of(family, worlds)
    members = family
    if world is not None:
        members = [one for one in family if one.rank < world]
        _judge_leftovers(look, below, [one for one in family if one.rank >= world], members)
    _report_missing(look, below, family, world)
    _judge_agreement(look, below, members, world)
    for one in members:
        look.take(one.content, one.name)
    if world is not None:
        look.found.world_size = world
    elif look.found.world_size is None:
        look.found.world_size = len(family)


def _world_of(family: list[_Rank], worlds: Counter[int]) -> int | None:
    """What the files say. When they differ, a smaller number counts if all its ranks are there and agree: the others are leftovers."""
    if not worlds:
        return None
    for world in sorted(worlds):
        inner = [one for one in family if one.rank < world]
        if len(inner) == world and all((one.world or one.world_in_name) == world for one in inner):
            return world
    return max(worlds, key=lambda world: (worlds[world], world))


def _report_missing(look: Look, below: str, family: list[_Rank], world: int | None) -> None:
    have = {one.rank for one in family}
    first = 0 if world is not None or 0 in have else min(have)
    wanted = world if world is not None else max(have) + 1
    if world is not None and 0 not in have and max(have) == world:
        first, wanted = 1, world + 1  # counted from one
    example = family[0]
    match = NAME.fullmatch(example.name)
    absent = [rank for rank in range(first, min(wanted, 1_000_000)) if rank not in have]
    for rank in absent[:50]:
        name = example.name
        if match is not None:
            start, end = match.span("rank")
            name = example.name[:start] + str(rank).zfill(end - start) + example.name[end:]
        said = f"the world size is {world}" if world is not None else f"rank {max(have)} is there"
        look.found.add(Verdict.INCOMPLETE, f"the file of rank {rank} is not there: {said}", joined(below, name))
    if len(absent) > 50:
        look.found.add(Verdict.INCOMPLETE, f"the files of {len(absent) - 50} more ranks are not there", below)


def _judge_leftovers(look: Look, below: str, extra: list[_Rank], members: list[_Rank]) -> None:
    counted_from_one = bool(members) and members[0].rank == 1
    for one in extra:
        if not (counted_from_one and one.rank == len(members) + 1):
            look.found.add(
                Verdict.WARN, "a rank beyond the world size: left over from an earlier save with more ranks", joined(below, one.name)
            )


def _judge_agreement(look: Look, below: str, members: list[_Rank], world: int | None) -> None:
    """All parts of one save carry the same step, world size and run."""
    claims: tuple[tuple[str, dict[str, object]], ...] = (
        ("step", {one.name: one.step for one in members if one.step is not None}),
        ("world size", {one.name: one.world for one in members if one.world is not None}),
        ("run", {one.name: one.run for one in members if one.run is not None}),
    )
    for what, values in claims:
        counts = Counter(values.values())
        if len(counts) > 1:
            usual, often = counts.most_common(1)[0]
            tie = [value for value, times in counts.items() if times == often]
            for name, value in values.items():
                if value != usual or len(tie) > 1:
                    look.found.add(
                        Verdict.CORRUPT,
                        f"it is of {what} {value}, others of {what} {_others(counts, value)}: a mix of saves",
                        joined(below, name),
                    )
        elif what == "step" and counts and look.found.step is None:
            look.found.step = next(value for value in counts if isinstance(value, int))
    steps = [one.step for one in members if one.step is not None]
    if look.found.step is None and steps:
        look.found.step = Counter(steps).most_common(1)[0][0]


def _others(counts: "Counter[object]", value: object) -> str:
    return ", ".join(str(other) for other in counts if other != value)
