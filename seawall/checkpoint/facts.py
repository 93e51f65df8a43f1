"""Small facts that training stores inside its objects: step, rank, world size."""

import re

from seawall.checkpoint.content import Content
from seawall.checkpoint.pickles.nodes import Built, Node, attribute, lookup

STEP_KEYS = ("step", "global_step", "global_steps", "iteration", "iter", "it", "steps")
WORLD_KEYS = ("world_size", "num_ranks", "nranks")
RANK_KEYS = ("rank", "global_rank")
RUN_KEYS = ("run_id", "run", "run_name")


def number(node: Node, *keys: str) -> int | None:
    """The first of ``keys`` that holds a whole number, in a dict or as attribute of an object."""
    for key in keys:
        for value in (lookup(node, key), attribute(node, key)):
            if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 63:
                return value
    return None


def text(node: Node, *keys: str) -> str | None:
    """The first of ``keys`` that holds text."""
    for key in keys:
        value = lookup(node, key)
        if isinstance(value, str):
            return value
    return None


def step_of(content: Content | None) -> int | None:
    """The step that a torch file says it is of."""
    return number(content.top, *STEP_KEYS) if content is not None else None


_STEP_IN_NAME = re.compile(
    r"(?:^|[^a-z])(?:checkpoint|ckpt|global_step|globalstep|step|iter|iteration|it)[-_= ]?0*(\d{1,18})(?![\d.])", re.I
)


def step_in_name(name: str) -> int | None:
    """The step in a folder's or file's name: ``checkpoint-500``, ``global_step100``, ``iter_0000200``, ``step 100``, ``1000``."""
    found = _STEP_IN_NAME.search(name)
    if found:
        return int(found.group(1))
    return int(name) if name.isdigit() and len(name) < 19 else None


def is_object_named(node: Node, ending: str) -> bool:
    """Whether a node is an object of a class whose full name ends so."""
    return isinstance(node, Built) and node.name.endswith(ending)
