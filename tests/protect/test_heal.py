"""A damaged copy is made whole from what the copies together hold, by public keys alone; what they do not hold changes nothing."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall.errors import KeyMissingError, NoSuchCopyError, StoreRefusedError
from seawall.log.records import list_records, read_record
from seawall.protect.acts import OUTCOME, RESPONSE, any_role
from seawall.protect.heal import HealError
from seawall.protect.restore import restore
from seawall.testing.counting import CountingStore
from seawall.testing.faulty import FaultyStore
from seawall.vault.header import HEADER_BYTES
from seawall.vault.signing import SigningKey
from seawall.vault.tail import TRAILER_BYTES
from tests.protect.little_site import RUN, tree
from tests.protect.three_copies import EMPTY, LARGE, MIB, RECORD_BYTES, SMALL, Change, Copies, flip, fresh, gone, in_record
from tests.protect.three_copies import copies as copies
from tests.protect.three_copies import sealed_once as sealed_once

DAMAGES: dict[str, tuple[str, Change]] = {
    "a record of a large file": (LARGE, in_record(1)),
    "two records": (LARGE, lambda raw: in_record(0)(in_record(2)(raw) or b"")),
    "a small file": (SMALL, flip(HEADER_BYTES + 9)),
    "the record of an empty file": (EMPTY, flip(HEADER_BYTES)),
    "a header": (LARGE, flip(20)),
    "a tail": (LARGE, flip(-TRAILER_BYTES - 40)),
    "a trailer": (LARGE, flip(-3)),
    "a signature": (SMALL, flip(-40)),
    "cut in half": (LARGE, lambda raw: raw[: len(raw) // 2]),
    "cut to nothing": (SMALL, lambda raw: b""),
    "grown": (SMALL, lambda raw: raw + b"\0"),
    "grown large": (LARGE, lambda raw: raw + b"more"),
    "zeros": (LARGE, lambda raw: bytes(len(raw))),
    "another object's bytes": (SMALL, lambda raw: b"something else"),
    "missing small": (SMALL, gone),
    "missing large": (LARGE, gone),
    "inventory": ("inventory.sea", flip(HEADER_BYTES + 1)),
    "plan": ("plan.sea", gone),
    "batch": ("batch-0.sea", flip(HEADER_BYTES + 1)),
    "keys": ("keys-1.json", flip(40)),
    "keys missing": ("keys-1.json", gone),
    "manifest": ("manifest.json", flip(10)),
    "manifest missing": ("manifest.json", gone),
    "objects table": ("objects.json", flip(30)),
    "objects table missing": ("objects.json", gone),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_whatever_is_damaged_is_made_whole(copies: Copies, name: str) -> None:
    object_name, change = DAMAGES[name]
    copies.change("a", object_name, change)
    assert copies.damaged("a")
    done = copies.heal()
    (repair,) = done.repairs
    assert repair.object == object_name and repair.created == (change is gone)
    assert repair.sources or "grown" in name, "what grew has all that it needs"
    assert copies.damaged("a") == set()
    assert copies.stored("a") == copies.stored("b"), "the same bytes"
    assert done.receipt is not None and done.receipt.sequence == 2
    found = copies.receipts("a")
    assert found.newest == done.receipt
    again = copies.heal()
    assert (again.repairs, again.receipt) == ([], None)


def test_only_the_damaged_record_is_fetched(copies: Copies) -> None:
    copies.change("a", LARGE, in_record(1))
    counting = CountingStore(copies.site.stores["b"])
    copies.site.stores["b"] = counting
    done = copies.heal()
    (repair,) = done.repairs
    assert (repair.object, repair.records, repair.sources) == (LARGE, (1,), ("b",))
    assert RECORD_BYTES <= counting.bytes_down < RECORD_BYTES + 10_000, "the record, and little else"
    assert done.fetched_bytes["b"] == RECORD_BYTES


def test_a_restore_of_the_healed_copy_is_the_checkpoint(copies: Copies, tmp_path: Path) -> None:
    for name, change in (DAMAGES["a record of a large file"], DAMAGES["missing small"], DAMAGES["inventory"]):
        copies.change("a", name, change)
    copies.heal()
    restore(*copies.site.opened("a", copies.commit.sealing), tmp_path / "out")
    assert tree(tmp_path / "out") == tree(copies.source)


def test_records_come_from_several_copies_that_are_damaged_elsewhere(copies: Copies) -> None:
    copies.change("a", LARGE, in_record(0))
    copies.change("a", LARGE, in_record(1))
    copies.change("b", LARGE, in_record(0))
    copies.change("c", LARGE, in_record(1))
    (repair,) = copies.heal().repairs
    assert (repair.records, repair.sources) == ((0, 1), ("b", "c"))
    assert copies.damaged("a") == set()


def test_a_frame_comes_from_parts_of_several_copies(copies: Copies) -> None:
    """No copy has a whole frame: one lost its header, one its tail, one its trailer."""
    copies.change("a", LARGE, flip(20))
    copies.change("b", LARGE, flip(-TRAILER_BYTES - 40))
    copies.change("c", LARGE, flip(-3))
    (repair,) = copies.heal().repairs
    assert repair.records == () and set(repair.sources) <= {"b", "c"}
    assert copies.damaged("a") == set()
    assert {LARGE} == copies.damaged("b") == copies.damaged("c"), "only the copy that was asked for"


def test_a_lost_store_is_refilled(copies: Copies) -> None:
    """A first store that lost all its objects, receipts too."""
    for key in [key for key in copies.memory("a").objects if key.startswith(copies.folder)]:
        del copies.memory("a").objects[key]
    done = copies.heal()
    assert {repair.created for repair in done.repairs} == {True}
    assert done.repairs[-1].object == "manifest.json", "without a manifest there is no copy: it comes last"
    assert copies.stored("a") == copies.stored("b") and copies.damaged("a") == set()
    assert done.receipt is not None and done.receipt.sequence == 1
    assert set(done.receipt.versions) == {name for name in copies.stored("a") if name.endswith(".sea")}
    assert copies.site.sync(copies.source, places=("a", "b", "c")).status == "unchanged"


def test_the_receipt_names_the_versions_that_are_there(copies: Copies) -> None:
    before = copies.receipts("a").newest
    copies.change("a", LARGE, in_record(0))
    done = copies.heal()
    assert done.receipt is not None
    changed = {name for name, version in done.receipt.versions.items() if before.versions.get(name) != version}
    assert changed == {LARGE}
    assert done.receipt.versions[LARGE] == copies.memory("a").head(copies.folder + LARGE).version


def test_a_damaged_receipt_is_followed_by_one_that_counts(copies: Copies) -> None:
    name = f"receipt-{copies.site.place('a').id}-1.json"
    copies.change("a", name, flip(60))
    assert copies.receipts("a").newest is None
    done = copies.heal()
    assert done.repairs == [] and done.receipt is not None and done.receipt.sequence == 2
    assert copies.receipts("a").newest == done.receipt
    assert copies.heal().receipt is None


def test_the_act_is_reserved_and_finished(copies: Copies) -> None:
    copies.change("a", SMALL, gone)
    copies.heal()
    store, state = copies.site.stores["c"], copies.site.view().state
    (op,) = list_records(store, RUN, RESPONSE)
    (same,) = list_records(store, RUN, OUTCOME)
    assert op == same
    record = read_record(store, RUN, RESPONSE, op, any_role(state))
    assert record.signers == (copies.site.keys["writer"].key_id,)
    assert (record.body["response"], record.body["stores"]) == ("heal", [copies.site.place("a").id])
    assert SMALL in str(record.body["reason"])


def test_a_store_that_refuses_a_document_is_quoted(copies: Copies) -> None:
    """A full store, for one: that the document is not there is what the heal came for."""
    copies.change("a", "keys-1.json", gone)
    refusal = StoreRefusedError("the object cannot be written", where="a", why="no room left")
    copies.site.stores["a"] = FaultyStore(copies.site.stores["a"]).fail("put", refusal, times=None)
    with pytest.raises(StoreRefusedError, match="no room left"):
        copies.heal()


@pytest.mark.parametrize("rightly", [True, False])
def test_a_copy_that_somebody_else_replaced_meanwhile_is_left_alone(copies: Copies, rightly: bool) -> None:
    """The version is not the damaged one any more: another heal came first, or somebody put something else there."""
    copies.change("a", SMALL, flip(HEADER_BYTES))
    memory, key = copies.memory("a"), copies.folder + SMALL
    other = copies.stored("b")[SMALL] if rightly else b"not ours"
    faulty = FaultyStore(memory).before("replace", lambda _: memory._set(key, other))
    copies.site.stores["a"] = faulty
    if rightly:
        assert copies.heal().receipt is not None
    else:
        with pytest.raises(StoreRefusedError):
            copies.heal()
    assert not faulty.unused and memory.objects[key] == other


PARTS = {"header": 20, "record": HEADER_BYTES + 5, "tail": -TRAILER_BYTES - 40, "trailer": -3}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(sorted(PARTS)), st.sets(st.sampled_from("abc"))))
def test_a_copy_is_healed_if_and_only_if_every_part_is_somewhere(sealed_once: Copies, damage: dict[str, set[str]]) -> None:
    copies = fresh(sealed_once)
    for part, stores in damage.items():
        for name in stores:
            copies.change(name, SMALL, flip(PARTS[part]))
    before = dict(copies.memory("a").objects)
    if any(stores == set("abc") for stores in damage.values()):
        with pytest.raises(HealError):
            copies.heal()
        assert copies.memory("a").objects == before
    else:
        copies.heal()
        assert copies.damaged("a") == set()


def test_a_dry_run_writes_nothing_and_says_the_same(copies: Copies) -> None:
    copies.change("a", LARGE, in_record(1))
    copies.change("a", SMALL, gone)
    before = {name: dict(copies.memory(name).objects) for name in "abc"}
    would = copies.heal(writer=None)
    assert {name: dict(copies.memory(name).objects) for name in "abc"} == before and would.receipt is None
    done = copies.heal()
    assert [(repair.object, repair.records) for repair in done.repairs] == [(repair.object, repair.records) for repair in would.repairs]


def test_with_names_only_these_are_looked_at(copies: Copies) -> None:
    copies.change("a", LARGE, in_record(1))
    copies.change("a", SMALL, flip(HEADER_BYTES))
    assert [repair.object for repair in copies.heal(only=[LARGE]).repairs] == [LARGE]
    assert copies.damaged("a") == {SMALL}


def test_a_large_object_is_assembled_in_a_file(copies: Copies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.protect.heal.IN_MEMORY_BYTES", MIB)
    monkeypatch.setattr("seawall.protect.heal.KEPT_BYTES", 0)
    copies.change("a", LARGE, lambda raw: bytes(len(raw)))
    copies.heal(scratch=tmp_path)
    assert copies.damaged("a") == set() and not list(tmp_path.glob("seawall-heal-*"))


def test_wrapped_keys_that_were_added_later_come_along(copies: Copies) -> None:
    planted = b'{"payloadType":"x"}'
    copies.memory("a")._set(copies.folder + "keys-2.json", planted)
    done = copies.heal()
    assert set(done.unmendable) == {"keys-2.json"} and done.repairs == []
    assert copies.memory("a").objects[copies.folder + "keys-2.json"] == planted, "nothing is removed"


def test_a_deleted_copy_stays_deleted(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.log.state.RunState.is_deleted", lambda state, sealing, store: store == copies.site.place("a").id)
    with pytest.raises(NoSuchCopyError, match="deleted by plan"):
        copies.heal()


def test_a_writer_that_is_not_listed_heals_nothing(copies: Copies) -> None:
    copies.change("a", SMALL, gone)
    with pytest.raises(KeyMissingError, match="does not count"):
        copies.heal(writer=SigningKey.generate("writer"))
    assert copies.damaged("a") == {SMALL}
