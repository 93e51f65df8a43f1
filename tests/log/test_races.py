"""Whatever times out and whoever is first: one winner a slot, every operation at most once, none lost that was confirmed."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall.errors import BusyError, EpochClosedError, StoreAmbiguousError, StoreRefusedError, TrustError, UsageError
from seawall.log import append as appending
from seawall.log.append import append
from seawall.log.bodies import Epoch, Genesis, Hold
from seawall.log.entries import entry_key, log_prefix, operation_id, read_entry
from seawall.log.identity import IDENTITY_KEY, identify
from seawall.log.read import LogView, read_log
from seawall.log.verbs import open_run
from seawall.stores.base import Store
from seawall.stores.file import FileStore
from seawall.testing.memory import MemoryStore
from tests.log.actors import KEYS, RUN, TickClock, begun, commit_body, read, trust_list
from tests.log.stage import FAULTS, FaultyStore, Stage

SETTINGS = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def hold_op(number: int) -> str:
    return operation_id("race", str(number))


def put_hold(store: Store, view: LogView, number: int) -> LogView:
    return append(store, view, Hold(f"hold {number}"), KEYS.operator, hold_op(number), TickClock())


def operations_in(store: MemoryStore) -> Counter[str]:
    """Counted over the stored bytes, not by the fold that is under test."""
    return Counter(read_entry(data).entry.op for key, data in store.objects.items() if key.startswith(log_prefix(RUN)))


@dataclass
class Writer:
    """Appends its operations in order, and remembers which were confirmed."""

    store: FaultyStore
    view: LogView
    numbers: list[int]
    confirmed: set[int] = field(default_factory=set)
    unclear: set[int] = field(default_factory=set)

    def act(self) -> None:
        for number in self.numbers:
            try:
                self.view = put_hold(self.store, self.view, number)
            except StoreAmbiguousError:
                self.unclear.add(number)
            else:
                self.confirmed.add(number)


@SETTINGS
@given(
    turns=st.lists(st.integers(0, 2), max_size=60),
    faults=st.lists(st.sampled_from(FAULTS), max_size=24),
    numbers=st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True), min_size=2, max_size=3),
)
def test_writers_race_on_a_store_that_times_out(turns: list[int], faults: list[str], numbers: list[list[int]]) -> None:
    good, _ = begun()
    stage = Stage(turns)
    store = FaultyStore(faults, stage)
    store.objects.update(good.objects)
    start = read(good)
    writers = {f"writer {index}": Writer(store, start, each) for index, each in enumerate(numbers)}
    stage.play({name: writer.act for name, writer in writers.items()})
    store.stage = None
    store.arrive()

    counted = operations_in(store)
    assert max(counted.values()) == 1
    confirmed = set().union(*(writer.confirmed for writer in writers.values()))
    asked = set().union(*(writer.numbers for writer in writers.values()))
    assert {hold_op(number) for number in confirmed} <= set(counted)
    final = read(store)
    assert final.seq == len(counted)
    for writer in writers.values():
        assert writer.view.seq <= final.seq

    # Whoever does not know asks again, and then every operation is there once.
    for number in sorted(asked):
        final = put_hold(store, final, number)
    assert operations_in(store) == Counter(dict.fromkeys(set(counted) | {hold_op(number) for number in asked}, 1))


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "none"])
@pytest.mark.parametrize("times", [1, 2, appending.MAX_TRIES])
def test_each_fault_by_itself(fault: str, times: int) -> None:
    good, _ = begun()
    store = FaultyStore([fault] * times)
    store.objects.update(good.objects)
    view = read(good)
    try:
        view = put_hold(store, view, 1)
    except StoreAmbiguousError:
        assert times == appending.MAX_TRIES
        assert fault != "after"
    store.arrive()
    view = put_hold(store, view, 1)
    assert operations_in(store)[hold_op(1)] == 1
    assert read(store).seq == 3


def test_the_counting_of_operations_notices_a_second_one() -> None:
    # Control of the property above: a writer that goes on to the next slot after a time-out does append twice.
    good, _ = begun()
    store = FaultyStore(["after"])
    store.objects.update(good.objects)
    first = appending._candidate(read(good).state, Hold("hold 1"), KEYS.operator, hold_op(1), TickClock(), None)
    with pytest.raises(StoreAmbiguousError):
        store.put(entry_key(RUN, 3), first.stored)
    store.put(entry_key(RUN, 4), first.stored)
    assert operations_in(store)[hold_op(1)] == 2


def test_a_late_request_of_a_dead_process_lands_at_most_once() -> None:
    good, _ = begun()
    store = FaultyStore(["late"])
    store.objects.update(good.objects)
    view = read(good)
    first = appending._candidate(view.state, Hold("hold 1"), KEYS.operator, hold_op(1), TickClock(), None)
    with pytest.raises(StoreAmbiguousError):
        store.put(entry_key(RUN, 3), first.stored)
    # The process died; its successor does the same operation with other bytes (another time of day).
    view = put_hold(store, view, 1)
    view = put_hold(store, view, 2)
    store.arrive()
    assert operations_in(store)[hold_op(1)] == 1
    assert read(store).seq == 4


def test_a_refusal_after_a_timeout_is_still_unclear() -> None:
    class Refusing(FaultyStore):
        puts = 0

        def put(self, key, data, crc64=None, *, lock_until=None):  # type: ignore[no-untyped-def]  # as the protocol says
            self.puts += 1
            if self.puts == 2:
                raise StoreRefusedError("credentials expired")
            return super().put(key, data, crc64)

    good, _ = begun()
    store = Refusing(["late"])
    store.objects.update(good.objects)
    with pytest.raises(StoreAmbiguousError, match="unknown whether"):
        put_hold(store, read(good), 1)
    store.arrive()
    assert operations_in(store)[hold_op(1)] == 1

    plain = Refusing([])
    plain.puts = 1
    plain.objects.update(good.objects)
    with pytest.raises(StoreRefusedError):
        put_hold(plain, read(good), 1)


def test_losing_every_slot_ends_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Crowded(MemoryStore):
        crowd = 0

        def put(self, key, data, crc64=None, *, lock_until=None):  # type: ignore[no-untyped-def]  # as the protocol says
            if key.startswith(log_prefix(RUN)) and threading.current_thread() is threading.main_thread() and not self.inside:
                self.inside = True
                self.crowd += 1
                append(self, read(self), Hold(f"crowd {self.crowd}"), KEYS.operator, operation_id("crowd", str(self.crowd)), TickClock())
                self.inside = False
            return super().put(key, data, crc64)

        inside = False

    monkeypatch.setattr(appending, "MAX_SLOTS", 3)
    good, _ = begun()
    store = Crowded()
    store.objects.update(good.objects)
    with pytest.raises(BusyError):
        put_hold(store, read(store), 1)
    assert operations_in(store)[hold_op(1)] == 0
    assert store.crowd == 3


def test_one_operation_id_cannot_mean_two_things() -> None:
    store, _ = begun()
    view = put_hold(store, read(store), 1)
    with pytest.raises(TrustError, match="two different requests"):
        append(store, view, Hold("another"), KEYS.operator, hold_op(1), TickClock())


def test_another_meaning_is_noticed_in_the_entry_that_won_the_slot() -> None:
    store, _ = begun()
    old = read(store)
    put_hold(store, old, 1)
    with pytest.raises(TrustError, match="two different requests"):
        append(store, old, Hold("another"), KEYS.operator, hold_op(1), TickClock())
    assert read(store).seq == 3


def test_a_writer_with_an_old_view_is_told_of_the_new_epoch() -> None:
    store, _ = begun()
    old = read(store)
    append(store, old, Epoch(2, (KEYS.second_writer.key_id,), "fenced"), KEYS.coordinator, hold_op(1), TickClock())
    before = dict(store.objects)
    for body in (commit_body(5), commit_body(5, name="other")):
        with pytest.raises(EpochClosedError, match="epoch 1 is not in force"):
            append(store, old, body, KEYS.writer, operation_id(body.sealing), TickClock(), epoch=1)
    with pytest.raises(EpochClosedError, match="written under a closed epoch"):
        append(store, read(store), commit_body(5), KEYS.second_writer, hold_op(2), TickClock(), epoch=2)
    with pytest.raises(EpochClosedError, match="epoch 2 is not the next one"):
        append(store, old, Epoch(2, (), "me too"), KEYS.coordinator, hold_op(3), TickClock())
    assert store.objects == before
    # Control: under the new epoch a commit passes.
    view = append(store, old, Hold("x"), KEYS.operator, hold_op(4), TickClock())
    append(store, view, commit_body(5, written=2), KEYS.second_writer, hold_op(5), TickClock(), epoch=2)
    assert len(read(store).state.commits) == 1


def test_what_would_be_refused_is_not_written() -> None:
    store, _ = begun()
    view = read(store)
    before = dict(store.objects)
    with pytest.raises(TrustError, match="is a writer's"):
        append(store, view, Hold("x"), KEYS.writer, hold_op(1), TickClock())
    with pytest.raises(UsageError, match="names the epoch"):
        append(store, view, commit_body(5), KEYS.writer, hold_op(1), TickClock())
    with pytest.raises(UsageError, match="mirror"):
        put_hold(store, read(store, mirror=True), 1)
    assert store.objects == before


@SETTINGS
@given(
    turns=st.lists(st.integers(0, 2), max_size=40),
    faults=st.lists(st.sampled_from(FAULTS), max_size=12),
)
def test_several_open_one_run(turns: list[int], faults: list[str]) -> None:
    stage = Stage(turns)
    store = FaultyStore(faults, stage)
    ids: list[str] = []
    answers: list[LogView] = []

    def act() -> None:
        try:
            ids.append(identify(store, create=True))
            answers.append(open_run(store, RUN, KEYS.root.public, trust_list(), KEYS.coordinator, [KEYS.writer.key_id], TickClock()))
        except StoreAmbiguousError:
            pass

    stage.play({f"opener {index}": act for index in range(3)})
    store.stage = None
    store.arrive()
    assert len(set(ids)) <= 1
    identify(store, create=True)
    final = open_run(store, RUN, KEYS.root.public, trust_list(), KEYS.coordinator, [KEYS.writer.key_id], TickClock())
    assert (final.seq, final.epoch) == (2, 1)
    assert all(view.digest == final.digest for view in answers)
    kinds = [read_entry(store.objects[entry_key(RUN, seq)]).entry.kind for seq in (1, 2)]
    assert kinds == [Genesis.kind, Epoch.kind]
    assert set(store.objects) == {IDENTITY_KEY, entry_key(RUN, 1), entry_key(RUN, 2)}


def test_threads_race_on_a_real_folder(tmp_path: Path) -> None:
    store = FileStore(f"file://{tmp_path}", create=True)
    identify(store, create=True)
    start = open_run(store, RUN, KEYS.root.public, trust_list(), KEYS.coordinator, [KEYS.writer.key_id], TickClock())
    problems: list[BaseException] = []

    def act(first: int) -> None:
        view = start
        try:
            for number in range(first, first + 12):
                view = put_hold(store, view, number)
        except BaseException as problem:  # noqa: BLE001  # a thread's end: the test looks at it
            problems.append(problem)

    # Neighbours share half of their operations, so that the same request is made at the same time too.
    threads = [threading.Thread(target=act, args=(first,)) for first in (0, 6, 12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    view = read_log(store, RUN, KEYS.root.public)
    assert view.seq == 2 + 24
    assert {hold_op(number) for number in range(24)} <= set(view.state.done)
