"""A limit on the bandwidth holds over all workers together: each keeps to its share of it."""

from pathlib import Path

import pytest

from seawall.cli.site import Site
from seawall.operators.site import AirflowSite
from seawall.stores.retry import RetryStore
from seawall.stores.throttle import ThrottleStore
from seawall.testing.fake_clock import FakeClock
from tests.protect.command_line import new_desk

LIMIT = 80_000_000
BLOCK = bytes(250_000)


def worker(config: Path, clock: FakeClock) -> ThrottleStore:
    """What one task writes through."""
    store = AirflowSite(config, clock=clock).store("a")
    assert isinstance(store, RetryStore) and isinstance(store.inner, ThrottleStore)
    return store.inner


@pytest.mark.parametrize("workers", [1, 4, 16])
def test_many_workers_keep_to_one_limit(tmp_path: Path, workers: int) -> None:
    desk = new_desk(tmp_path)
    with desk.config.open("a") as file:
        file.write(f"\n[transfer]\nbandwidth_bits_per_second = {LIMIT}\nworkers = {workers}\n")
    # Each worker is a process with a clock of its own; all of them send without a pause for half a minute.
    sent = 0
    for number in range(workers):
        clock = FakeClock()
        store, began, block = worker(desk.config, clock), clock.monotonic(), 0
        while clock.monotonic() - began < 30:
            store.put(f"w/{number}/{block}", BLOCK)
            sent += len(BLOCK)
            block += 1
    assert 0.9 * LIMIT * 30 <= sent * 8 <= 1.1 * LIMIT * 30


def test_a_command_has_the_whole_of_it(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    with desk.config.open("a") as file:
        file.write(f"\n[transfer]\nbandwidth_bits_per_second = {LIMIT}\nworkers = 4\n")
    clock = FakeClock()
    store = Site(desk.config, clock=clock).store("a")
    for block in range(1200):
        store.put(f"w/{block}", BLOCK)
    assert 0.9 * LIMIT <= 1200 * len(BLOCK) * 8 / clock.monotonic() <= 1.1 * LIMIT
