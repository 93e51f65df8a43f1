"""What reading costs, and that nothing kept locally makes a log look newer, longer or other than the store has it."""

import json
from pathlib import Path

import pytest

from seawall.errors import BusyError, CorruptError, FreshnessError, NoSuchCopyError, NoSuchObjectError, TrustError, UsageError
from seawall.log import local
from seawall.log.bodies import Epoch, Genesis, Hold, Lift, Move, ProofHead, ProofHeads, Tombstone, TrustChange, Unread, WriteOff
from seawall.log.entries import entry_key, operation_id
from seawall.log.floor import load_floor
from seawall.log.identity import IDENTITY_KEY, identify
from seawall.log.opening import open_log
from seawall.log.read import LogView, read_log
from seawall.log.snapshot import load_snapshot, save_snapshot
from seawall.log.state import RunState
from seawall.testing.memory import MemoryStore
from seawall.vault.trust import read_list, sign_list
from tests.log.actors import KEYS, RUN, Hand, TickClock, begun, commit_body, hexed, longer, read, trust_list
from tests.log.faults import SECOND_OPERATOR, lease, statement

ROOT = KEYS.root.public


def everything() -> MemoryStore:
    """A log with every kind of record in its fold."""
    store, hand = begun()
    hand.write(commit_body(2), KEYS.writer)
    hand.write(commit_body(3, quarantine="opaque"), KEYS.writer)
    hand.write(Hold("stop"), KEYS.operator)
    hand.write(Lift(operation_id("test", "4"), "seen"), KEYS.operator)
    hand.write(Lift(operation_id("test", "5"), "go"), KEYS.operator)
    hand.write(Hold("stop again"), KEYS.verifier)
    hand.write(commit_body(2, name="second attempt", quarantine="odd"), KEYS.writer)
    hand.write(lease(), KEYS.operator)
    hand.write(Tombstone(commit_body(2).sealing, hexed("store", 16), hexed("plan", 32), 10), KEYS.operator)
    hand.write(ProofHeads((ProofHead(KEYS.verifier.key_id, 3, hexed("proof", 32)),)), KEYS.verifier)
    hand.write(Unread("later", {"a": [True, None, "\udc80é"]}), KEYS.operator, ignorable=True)
    second = read_list(trust_list(), ROOT).with_revocation(KEYS.writer.key_id, "stolen")
    hand.write(TrustChange(sign_list(second, KEYS.root)), KEYS.coordinator)
    hand.write(Epoch(2, (KEYS.second_writer.key_id,), "fence"), KEYS.coordinator)
    hand.write(commit_body(9, written=1), KEYS.second_writer)
    hand.write(commit_body(9, written=2, name="in time"), KEYS.second_writer)
    third = second.with_key(SECOND_OPERATOR.public, "operator", TickClock())
    hand.write(TrustChange(sign_list(third, KEYS.root)), KEYS.coordinator)
    hand.write(WriteOff(commit_body(2).sealing, statement(KEYS.operator, SECOND_OPERATOR)), KEYS.operator)
    return store


def cost(store: MemoryStore) -> int:
    return sum(store.requests.values())


@pytest.mark.parametrize("entries", [2, 3, 40, 300])
def test_an_unchanged_log_costs_three_requests_however_long(entries: int) -> None:
    store, _ = longer(entries)
    view = read(store)
    store.requests.clear()
    again = read(store, view)
    assert again == view
    assert cost(store) == 3
    store.requests.clear()
    read(store)
    # Cold: every entry, the identity, less than two windows beyond the end, one listing.
    assert store.requests["list"] == 1
    assert store.requests["get"] <= entries + 1 + 32


def test_one_new_entry_costs_a_few_requests() -> None:
    store, hand = longer(300)
    view = read(store)
    hand.write(Hold("new"), KEYS.operator)
    store.requests.clear()
    assert read(store, view).seq == 301
    assert cost(store) <= 5


def test_a_process_begins_where_the_last_one_ended(tmp_path: Path) -> None:
    store, hand = longer(300)
    first, _ = open_log(store, RUN, ROOT, tmp_path)
    store.requests.clear()
    again, _ = open_log(store, RUN, ROOT, tmp_path)
    assert again == first
    assert cost(store) == 4
    hand.write(Hold("new"), KEYS.operator)
    longer_now, _ = open_log(store, RUN, ROOT, tmp_path)
    assert longer_now.state == read(store).state
    floor = load_floor(tmp_path, RUN, ROOT)
    assert floor is not None
    assert (floor.seq, floor.epoch, floor.digest) == (301, 1, longer_now.digest)


def test_a_snapshot_is_the_fold(tmp_path: Path) -> None:
    store = everything()
    view = read(store)
    state = view.state
    for name in (
        "revoked_at",
        "epochs",
        "commits",
        "steps",
        "orphans",
        "marks",
        "quarantined",
        "held",
        "tombstones",
        "leases",
        "written_off",
        "heads",
        "kept",
        "done",
    ):
        assert getattr(state, name), f"the log of this test has no {name}"
    assert save_snapshot(tmp_path, view)
    assert load_snapshot(tmp_path, RUN, ROOT, view.store_id) == view
    # The log goes on from a snapshot as from the fold.
    hand = Hand(store, view.seq, view.digest, 2)
    hand.write(Lift(operation_id("test", "8"), "go"), KEYS.operator)
    assert read(store, load_snapshot(tmp_path, RUN, ROOT, view.store_id)).state == read(store).state


def test_snapshots_are_private_and_whole(tmp_path: Path) -> None:
    view = read(everything())
    save_snapshot(tmp_path, view)
    (path,) = (tmp_path / "logs").glob("*.json")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    good = path.read_bytes()
    for damaged in (b"", good[:70], good[:-1], good + b" ", good.replace(b"stop again", b"stop agaim"), b"x" + good[1:], good[:65] + b"[]"):
        path.write_bytes(damaged)
        assert load_snapshot(tmp_path, RUN, ROOT, view.store_id) is None
    path.write_bytes(good)
    assert load_snapshot(tmp_path, RUN, ROOT, view.store_id) == view
    assert load_snapshot(tmp_path, RUN, ROOT, hexed("other store", 16)) is None
    assert load_snapshot(tmp_path, RUN, KEYS.other_root.public, view.store_id) is None
    assert load_snapshot(tmp_path, "other", ROOT, view.store_id) is None


@pytest.mark.parametrize("change", [{"version": "0 old"}, {"seq": None, "done": None}, {"commits": [{}]}, {"trust": "zz"}, {"trust": ""}])
def test_a_snapshot_of_another_build_is_passed_over(tmp_path: Path, change: dict[str, object]) -> None:
    view = read(everything())
    save_snapshot(tmp_path, view)
    (path,) = (tmp_path / "logs").glob("*.json")
    content = local.read_local(path)
    assert content is not None
    local.write_local(path, {**content, **change})
    assert load_snapshot(tmp_path, RUN, ROOT, view.store_id) is None


def test_a_state_folder_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    store, _ = longer(5)
    file = tmp_path / "a file"
    file.write_text("in the way")
    view, _ = open_log(store, RUN, ROOT, file / "state")
    assert view.seq == 5
    assert not save_snapshot(file / "state", view)


@pytest.mark.parametrize("lost", [1, 3])
def test_a_log_put_back_is_noticed_through_the_snapshot(tmp_path: Path, lost: int) -> None:
    store, _ = longer(9)
    view, _ = open_log(store, RUN, ROOT, tmp_path)
    for seq in range(9 - lost + 1, 10):
        del store.objects[entry_key(RUN, seq)]
    assert read(store).seq == 9 - lost
    with pytest.raises(FreshnessError, match="shorter than it was"):
        open_log(store, RUN, ROOT, tmp_path)
    with pytest.raises(FreshnessError, match="shorter than it was"):
        read(store, view)


def test_a_log_written_anew_is_noticed_through_the_snapshot(tmp_path: Path) -> None:
    store, _ = longer(9)
    open_log(store, RUN, ROOT, tmp_path)
    identity = store.objects[IDENTITY_KEY]
    other, hand = begun()
    other.objects[IDENTITY_KEY] = identity
    hand = Hand(other)
    hand.write(Genesis(identify(other), trust_list()), KEYS.coordinator)
    hand.write(Epoch(1, (KEYS.writer.key_id,), "begun"), KEYS.coordinator)
    while hand.seq < 12:
        hand.write(Hold("forked"), KEYS.operator)
    assert read(other).seq == 12
    with pytest.raises(FreshnessError, match="two histories"):
        open_log(other, RUN, ROOT, tmp_path)


def test_a_damaged_snapshot_and_a_whole_floor_still_notice(tmp_path: Path) -> None:
    store, _ = longer(9)
    open_log(store, RUN, ROOT, tmp_path)
    (path,) = (tmp_path / "logs").glob("*.json")
    path.write_bytes(b"damaged")
    del store.objects[entry_key(RUN, 9)]
    with pytest.raises(FreshnessError, match="older than what this host has seen"):
        open_log(store, RUN, ROOT, tmp_path)


def test_an_edited_snapshot_cannot_be_ahead_of_the_store(tmp_path: Path) -> None:
    # Whoever can write the snapshot can also write its checksum; the store's own bytes still bound it.
    store, _ = longer(9)
    open_log(store, RUN, ROOT, tmp_path)
    (path,) = (tmp_path / "logs").glob("*.json")
    content = local.read_local(path)
    assert content is not None
    local.write_local(path, {**content, "seq": 10})
    with pytest.raises(FreshnessError, match="shorter than it was"):
        open_log(store, RUN, ROOT, tmp_path)
    local.write_local(path, {**content, "digest": hexed("other", 32)})
    with pytest.raises(FreshnessError, match="two histories"):
        open_log(store, RUN, ROOT, tmp_path)


def test_a_view_of_another_run_or_root_saves_nothing() -> None:
    store, _ = longer(9)
    view = read(store)
    other = LogView(RunState("other", ROOT, seq=99, digest=hexed("x", 32)), view.store_id)
    assert read(store, other) == view
    with pytest.raises(TrustError):
        read_log(store, RUN, KEYS.other_root.public, view)


def test_a_store_that_the_log_does_not_name_is_refused() -> None:
    store, _ = longer(5)
    mirror = MemoryStore("b")
    mirror.objects.update(store.objects)
    del mirror.objects[IDENTITY_KEY]
    with pytest.raises(NoSuchObjectError, match="no seawall store yet"):
        read(mirror)
    identify(mirror, create=True)
    with pytest.raises(TrustError, match="no authority"):
        read(mirror)
    view = read(mirror, mirror=True)
    assert not view.authoritative
    assert view.state == read(store).state


def test_after_a_move_the_old_store_is_refused_and_the_new_one_goes_on() -> None:
    store, hand = longer(5)
    new = MemoryStore("d")
    hand.write(Move(identify(new, create=True), "disk is full"), KEYS.coordinator)
    with pytest.raises(TrustError, match="entry 6 moved it"):
        read(store)
    identity = new.objects[IDENTITY_KEY]
    new.objects.update({**store.objects, IDENTITY_KEY: identity})
    hand.store = new
    hand.write(Hold("goes on"), KEYS.operator)
    assert read(new).state.hold_reasons()[-1] == "goes on"


def test_no_run_is_no_such_copy() -> None:
    store = MemoryStore()
    identify(store, create=True)
    with pytest.raises(NoSuchCopyError, match="no such run"):
        read(store)
    for name in ("", ".hidden", "a/b", "x" * 101, "ü", "a\n"):
        with pytest.raises(UsageError):
            read_log(store, name, ROOT)


def test_strange_objects_among_the_entries_are_no_entries() -> None:
    store, _ = longer(5)
    store.objects[f"runs/{RUN}/log/zzz.tmp"] = b"somebody's editor"
    store.objects[f"runs/{RUN}/log/9.json"] = b"{}"
    assert read(store).seq == 5


def test_appends_between_two_requests_are_no_hole() -> None:
    class Growing(MemoryStore):
        """Two entries appear after the end was probed and before the listing."""

        hand: Hand | None = None

        def list(self, prefix, after=""):  # type: ignore[no-untyped-def]  # as the protocol says
            if self.hand is not None:
                hand, self.hand = self.hand, None
                hand.write(Hold("one"), KEYS.operator)
                hand.write(Hold("two"), KEYS.operator)
            return super().list(prefix, after)

    good, hand = longer(5)
    store = Growing()
    store.objects = good.objects
    store.hand = hand
    assert read(store).seq == 7


def test_a_log_that_never_stands_still_is_busy() -> None:
    class Restless(MemoryStore):
        """Two entries appear before every listing."""

        hand: Hand

        def list(self, prefix, after=""):  # type: ignore[no-untyped-def]  # as the protocol says
            self.hand.write(Hold("one"), KEYS.operator)
            self.hand.write(Hold("two"), KEYS.operator)
            return super().list(prefix, after)

    good, hand = longer(5)
    store = Restless()
    store.objects = good.objects
    store.hand = hand
    with pytest.raises(BusyError, match="grows faster"):
        read(store)


def test_state_is_a_value() -> None:
    store, hand = longer(9)
    view = read(store)
    before = json.dumps([repr(view.state)])
    hand.write(commit_body(50), KEYS.writer)
    hand.write(Lift(operation_id("test", "4"), "x"), KEYS.operator)
    assert read(store, view).seq == 11
    assert json.dumps([repr(view.state)]) == before


def test_identity_is_written_once_and_checked() -> None:
    store = MemoryStore()
    first = identify(store, create=True)
    assert identify(store, create=True) == first == identify(store)
    store.objects[IDENTITY_KEY] = b'{"format":"1","store":"0"}'
    with pytest.raises(CorruptError, match="hex value is malformed"):
        identify(store)
