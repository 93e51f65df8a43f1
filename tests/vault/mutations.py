"""Bytes and documents changed at random, in the ways that find holes in parsers. One seed gives one series."""

import json
import random
from collections.abc import Iterator
from typing import Any

ODD_VALUES: list[Any] = [
    None,
    True,
    "",
    "0",
    "-1",
    "00",
    "18446744073709551616",
    "9" * 25,
    "\udc80",
    "\0",
    "../x",
    "a" * 5000,
    [],
    {},
    [None],
    {"": None},
    [[]],
    "é",
    "1e5",
    7,
]
INTEGERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


def mutated(raw: bytes, draw: random.Random) -> bytes:
    """One to four changes: bits, extreme integers, cuts, repeats, insertions, pieces in another place."""
    changed = bytearray(raw)
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.randrange(len(changed) + 1)
        until = min(len(changed), at + draw.choice((1, 4, 8, 36, 200)))
        match draw.randrange(7):
            case 0 if at < len(changed):
                changed[at] ^= 1 << draw.randrange(8)
            case 1:
                width = draw.choice((1, 2, 4, 8))
                changed[at : at + width] = (draw.choice(INTEGERS) & ((1 << 8 * width) - 1)).to_bytes(width, "big")
            case 2:
                del changed[at:]
            case 3:
                del changed[at:until]
            case 4:
                changed[at:at] = changed[at:until]
            case 5:
                changed[at:at] = draw.randbytes(draw.choice((1, 8, 80)))
            case _:
                piece = bytes(changed[at:until])
                to = draw.randrange(len(changed) + 1)
                changed[to : to + len(piece)] = piece
    return bytes(changed)


def mutated_document(raw: bytes, draw: random.Random) -> bytes:
    """A document in which values were exchanged, fields added, left out or renamed; often in canonical form, so that parsing goes on."""
    document = json.loads(raw)
    for _ in range(draw.choice((1, 1, 2, 3))):
        places = list(_places(document))
        holder, key = draw.choice(places)
        match draw.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[draw.choice(["more", "", "\udcff", "format"])] = draw.choice(ODD_VALUES)
            case 2 if isinstance(holder, list):
                holder.append(holder[key])
            case 3:
                other, where = draw.choice(places)
                # Only from one that is still there; never a container into itself.
                if not isinstance(other, dict) or where in other:
                    value = other[where] if isinstance(other, dict) or where < len(other) else None
                    holder[key] = json.loads(json.dumps(value))
            case _:
                holder[key] = draw.choice(ODD_VALUES)
        if not list(_places(document)):
            break
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
