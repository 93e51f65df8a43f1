"""Randomness that is the same in every run, for the generator of the vectors alone; the library has no such switch."""

import hashlib
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def fixed_random(seed: str) -> Iterator[None]:
    """Within it the operating system's randomness is a stream that ``seed`` fixes."""
    at = 0

    def urandom(nbytes: int) -> bytes:
        nonlocal at
        at += 1
        return hashlib.shake_256(f"{seed} {at}".encode()).digest(nbytes)

    # random.SystemRandom, and so secrets, took its own reference when it was imported.
    places: list[tuple[Any, str]] = [(os, "urandom"), (random, "_urandom")]
    before: list[Callable[[int], bytes]] = [getattr(module, name) for module, name in places]
    for module, name in places:
        setattr(module, name, urandom)
    try:
        yield
    finally:
        for (module, name), original in zip(places, before, strict=True):
            setattr(module, name, original)
