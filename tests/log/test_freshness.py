"""Mirrors and the floor: a store that was put back, or a second history, is an incident; a mirror that is behind is not."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from seawall.errors import FreshnessError, StoreAmbiguousError, StoreUnavailableError
from seawall.log.append import append
from seawall.log.bodies import Hold
from seawall.log.entries import entry_key, log_prefix, operation_id
from seawall.log.floor import Floor, Freshness, check_floor, check_freshness, load_floor, raise_floor
from seawall.log.identity import identify
from seawall.log.mirror import mirror_end, mirror_log
from seawall.log.opening import open_log
from seawall.log.read import LogView
from seawall.testing.memory import MemoryStore
from tests.log.actors import KEYS, RUN, Hand, TickClock, hexed, longer, read

ROOT = KEYS.root.public


def mirror_of(store: MemoryStore, entries: int) -> MemoryStore:
    mirror = MemoryStore("b")
    identify(mirror, create=True)
    for seq in range(1, entries + 1):
        mirror.objects[entry_key(RUN, seq)] = store.objects[entry_key(RUN, seq)]
    return mirror


@pytest.mark.parametrize("hint", [1, 2, 3, 31, 32, 33, 40, 64, 100])
@pytest.mark.parametrize("there", [0, 1, 2, 31, 32, 33, 40])
def test_the_end_of_a_mirror_is_found_from_any_hint(there: int, hint: int) -> None:
    store, _ = longer(40)
    mirror = mirror_of(store, there)
    mirror.requests.clear()
    assert mirror_end(mirror, RUN, hint).seq == there
    away = abs(hint - there)
    assert sum(mirror.requests.values()) <= 2 + 2 * (away.bit_length() + 1)
    if away == 0:
        assert sum(mirror.requests.values()) == 2


@pytest.mark.parametrize("there", [0, 1, 19, 20])
def test_a_mirror_is_brought_up(there: int) -> None:
    store, _ = longer(20)
    view = read(store)
    mirror = mirror_of(store, there)
    done = mirror_log(store, view, mirror)
    assert (done.before, done.now, done.copied) == (there, 20, 20 - there)
    entries = {key: data for key, data in store.objects.items() if key.startswith(log_prefix(RUN))}
    assert {key: data for key, data in mirror.objects.items() if key.startswith(log_prefix(RUN))} == entries
    mirror.requests.clear()
    assert mirror_log(store, view, mirror).copied == 0
    assert sum(mirror.requests.values()) == 2
    assert mirror.requests["put"] == 0


def test_a_mirror_ahead_of_an_old_view_is_no_incident() -> None:
    store, hand = longer(10)
    old = read(store)
    hand.write(Hold("new"), KEYS.operator)
    mirror = mirror_of(store, 11)
    assert mirror_log(store, old, mirror).now == 11
    assert check_freshness(store, old, None, {"b": mirror}).freshness is Freshness.PROVED


def test_a_mirror_ahead_of_the_store_is_an_incident() -> None:
    store, _ = longer(10)
    mirror = mirror_of(store, 10)
    del store.objects[entry_key(RUN, 10)]
    view = read(store)
    with pytest.raises(FreshnessError, match="goes further than the coordination store's"):
        mirror_log(store, view, mirror)
    with pytest.raises(FreshnessError, match="goes further than the coordination store's"):
        check_freshness(store, view, None, {"b": mirror})


@pytest.mark.parametrize("at", [4, 10])
def test_another_history_in_a_mirror_is_an_incident(at: int) -> None:
    store, _ = longer(10)
    forked, hand = longer(at - 1)
    forked.objects = {key: data for key, data in store.objects.items() if key < entry_key(RUN, at)}
    hand = Hand(forked, at - 1, read(store_until(store, at - 1)).digest, 1)
    hand.write(Hold("forked"), KEYS.operator)
    view = read(store)
    with pytest.raises(FreshnessError, match="two histories"):
        mirror_log(store, view, forked)
    with pytest.raises(FreshnessError, match="two histories"):
        check_freshness(store, view, None, {"b": forked})


def store_until(store: MemoryStore, seq: int) -> MemoryStore:
    cut = MemoryStore("c")
    cut.objects = {key: data for key, data in store.objects.items() if not key.startswith(log_prefix(RUN)) or key <= entry_key(RUN, seq)}
    return cut


def test_another_entry_that_came_first_is_an_incident() -> None:
    class Raced(MemoryStore):
        """Somebody else puts another entry there between our look and our put."""

        def put(self, key, data, crc64=None, *, lock_until=None):  # type: ignore[no-untyped-def]  # as the protocol says
            self.objects.setdefault(key, b"another")
            return super().put(key, data, crc64)

    store, _ = longer(5)
    with pytest.raises(FreshnessError, match="two histories"):
        mirror_log(store, read(store), Raced())


def test_a_mirror_that_times_out_is_asked_again() -> None:
    class Slow(MemoryStore):
        puts = 0

        def put(self, key, data, crc64=None, *, lock_until=None):  # type: ignore[no-untyped-def]  # as the protocol says
            self.puts += 1
            if self.puts % 2:
                raise StoreUnavailableError("slow down")
            stored = super().put(key, data, crc64)
            if self.puts % 4 == 0:
                raise StoreAmbiguousError("the connection died")
            return stored

    store, _ = longer(9)
    mirror = Slow()
    assert mirror_log(store, read(store), mirror).copied == 9
    assert mirror_end(mirror, RUN, 9).seq == 9


def test_nothing_is_mirrored_that_was_not_verified() -> None:
    store, _ = longer(9)
    view = read(store)
    mirror = mirror_of(store, 3)
    before = dict(mirror.objects)
    other, _ = longer(9, "other")
    good = store.objects[entry_key(RUN, 7)]
    store.objects[entry_key(RUN, 7)] = other.objects[entry_key(RUN, 7)]
    with pytest.raises(FreshnessError, match="changed while it was mirrored"):
        mirror_log(store, view, mirror)
    store.objects[entry_key(RUN, 7)] = good
    last = store.objects[entry_key(RUN, 9)]
    hand = Hand(store, 8, read(store_until(store, 8)).digest, 1)
    hand.write(Hold("another end"), KEYS.operator)
    with pytest.raises(FreshnessError, match="changed while it was mirrored"):
        mirror_log(store, view, mirror)
    assert mirror.objects == before
    store.objects[entry_key(RUN, 9)] = last
    assert mirror_log(store, view, mirror).copied == 6


def test_one_store_alone_proves_no_freshness(tmp_path: Path) -> None:
    store, _ = longer(9)
    _, report = open_log(store, RUN, ROOT)
    assert report.freshness is Freshness.UNPROVED
    assert report.compared == ()
    # A first look remembers, and proves nothing either.
    _, report = open_log(store, RUN, ROOT, tmp_path)
    assert report.freshness is Freshness.UNPROVED
    _, report = open_log(store, RUN, ROOT, tmp_path)
    assert (report.freshness, report.compared) == (Freshness.PROVED, ("local",))


def test_the_report_names_what_was_compared() -> None:
    class Gone(MemoryStore):
        def get(self, key, start=0, length=None, version=None):  # type: ignore[no-untyped-def]  # as the protocol says
            raise StoreUnavailableError("no route to host")

    store, _ = longer(9)
    mirrors = {"same": mirror_of(store, 9), "behind": mirror_of(store, 4), "empty": mirror_of(store, 0), "gone": Gone()}
    _, report = open_log(store, RUN, ROOT, mirrors=mirrors)
    assert report.freshness is Freshness.PROVED
    assert report.compared == ("same", "behind")
    assert report.behind == ("behind", "empty")
    assert report.unreachable == ("gone",)
    _, report = open_log(store, RUN, ROOT, mirrors={"gone": Gone(), "empty": mirror_of(store, 0)})
    assert report.freshness is Freshness.UNPROVED


def test_reading_a_mirror_says_so(tmp_path: Path) -> None:
    store, _ = longer(9)
    open_log(store, RUN, ROOT, tmp_path)
    view, report = open_log(mirror_of(store, 9), RUN, ROOT, tmp_path, mirror=True)
    assert (view.seq, report.freshness) == (9, Freshness.UNPROVED)
    assert "coordination store may have gone on" in report.why
    view, report = open_log(mirror_of(store, 7), RUN, ROOT, tmp_path, mirror=True)
    assert (view.seq, report.freshness) == (7, Freshness.UNPROVED)
    assert "this host has seen entry 9" in report.why
    floor = load_floor(tmp_path, RUN, ROOT)
    assert floor is not None
    assert floor.seq == 9
    forked, _ = longer(10, "other")
    with pytest.raises(FreshnessError, match="two histories"):
        open_log(forked, RUN, ROOT, tmp_path, mirror=True)


def test_the_floor_never_goes_down(tmp_path: Path) -> None:
    store, _ = longer(9)
    high, low = read(store), read(store_until(store, 5))
    assert raise_floor(tmp_path, high) == raise_floor(tmp_path, low) == Floor(1, 9, high.digest)
    assert load_floor(tmp_path, RUN, ROOT) == Floor(1, 9, high.digest)
    assert load_floor(tmp_path, RUN, KEYS.other_root.public) is None
    for floor in (Floor(1, 10, hexed("x", 32)), Floor(2, 9, high.digest)):
        with pytest.raises(FreshnessError, match="older than what this host has seen"):
            check_floor(store, high, floor)
    for floor in (Floor(1, 9, hexed("x", 32)), Floor(1, 4, hexed("x", 32))):
        with pytest.raises(FreshnessError, match="two histories"):
            check_floor(store, high, floor)
    check_floor(store, high, Floor(1, 5, low.digest))


def test_a_floor_that_rises_while_the_log_is_read_is_no_alarm(tmp_path: Path) -> None:
    class Busy(MemoryStore):
        """Another process appends and remembers it, just after this one found the end."""

        hand: Hand | None = None

        def list(self, prefix, after=""):  # type: ignore[no-untyped-def]  # as the protocol says
            found = list(super().list(prefix, after))
            if self.hand is not None:
                hand, self.hand = self.hand, None
                hand.write(Hold("meanwhile"), KEYS.operator)
                open_log(self, RUN, ROOT, tmp_path)
            return iter(found)

    good, hand = longer(9)
    store = Busy()
    store.objects = good.objects
    open_log(store, RUN, ROOT, tmp_path)
    store.hand = hand
    view, _ = open_log(store, RUN, ROOT, tmp_path)
    assert view.seq == 9
    floor = load_floor(tmp_path, RUN, ROOT)
    assert floor is not None
    assert floor.seq == 10
    # The older snapshot was kept last; it only costs reading one entry again.
    assert open_log(store, RUN, ROOT, tmp_path)[0].seq == 10


class Histories(RuleBasedStateMachine):
    """Two hosts with local state, a mirror, and a coordination store that may be put back to an older state.

    Whatever happens, a host never accepts less than it has seen, and never something that is not in the one true log.
    """

    @initialize()
    def begin(self) -> None:
        import tempfile

        self.store, self.hand = longer(3)
        self.true = dict(self.store.objects)
        self.mirror = MemoryStore("b")
        identify(self.mirror, create=True)
        self.folder = tempfile.TemporaryDirectory()
        self.seen = {"one": 0, "two": 0}
        self.mirrored = 0
        self.number = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def present(self) -> int:
        return sum(key.startswith(log_prefix(RUN)) for key in self.store.objects)

    def open(self, host: str, with_mirror: bool) -> LogView | None:
        floor = max(self.seen[host], self.mirrored if with_mirror else 0)
        mirrors = {"b": self.mirror} if with_mirror else {}
        if self.present() < floor:
            with pytest.raises(FreshnessError):
                open_log(self.store, RUN, ROOT, Path(self.folder.name, host), mirrors)
            return None
        view, report = open_log(self.store, RUN, ROOT, Path(self.folder.name, host), mirrors)
        assert view.seq == self.present()
        assert (report.freshness is Freshness.PROVED) == bool(self.seen[host] or (with_mirror and self.mirrored))
        self.seen[host] = view.seq
        return view

    @rule(host=st.sampled_from(["one", "two"]), with_mirror=st.booleans())
    def look(self, host: str, with_mirror: bool) -> None:
        self.open(host, with_mirror)

    @rule(host=st.sampled_from(["one", "two"]))
    def add(self, host: str) -> None:
        # Only on the true log: what a host does on a log that was put back unnoticed is a second history, tested above.
        if self.present() < len(self.true) - 1:
            return
        view = self.open(host, True)
        if view is not None:
            self.number += 1
            append(self.store, view, Hold(f"hold {self.number}"), KEYS.operator, operation_id(str(self.number)), TickClock())
            self.true = dict(self.store.objects)

    @rule(host=st.sampled_from(["one", "two"]))
    def copy_to_mirror(self, host: str) -> None:
        view = self.open(host, True)
        if view is not None:
            self.mirrored = max(self.mirrored, mirror_log(self.store, view, self.mirror).now)

    @rule(lost=st.integers(1, 3))
    def put_back(self, lost: int) -> None:
        last = self.present()
        for seq in range(max(last - lost + 1, 2), last + 1):
            del self.store.objects[entry_key(RUN, seq)]

    @rule()
    def repair(self) -> None:
        self.store.objects.update(self.true)

    @rule(host=st.sampled_from(["one", "two"]), kind=st.sampled_from(["logs", "floors"]))
    def damage_one_local_file(self, host: str, kind: str) -> None:
        # The snapshot and the floor each remember alone; only the loss of both forgets.
        for path in Path(self.folder.name, host, kind).glob("*.json"):
            path.write_bytes(b"damaged")
            if self.open(host, False) is None:
                self.repair()
                self.open(host, False)

    @invariant()
    def the_mirror_is_part_of_the_true_log(self) -> None:
        if hasattr(self, "mirror"):
            entries = {key: data for key, data in self.mirror.objects.items() if key.startswith(log_prefix(RUN))}
            assert entries.items() <= self.true.items()


Histories.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestHistories = Histories.TestCase
