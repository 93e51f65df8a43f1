"""A damaged copy is made whole from what the copies together hold, by public keys alone; what they do not hold changes nothing."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall.errors import KeyMissingError, NoSuchCopyError, StoreRefusedError, StoreUnavailableError
from seawall.log.records import list_records, read_record
from seawall.log.state import CommitRecord
from seawall.protect.acts import OUTCOME, RESPONSE, any_role
from seawall.protect.heal import Healed, HealError, heal
from seawall.protect.heal_receipt import read_receipts
from seawall.protect.place import Place
from seawall.protect.restore import restore
from seawall.stores.base import Store
from seawall.testing.counting import CountingStore
from seawall.testing.faulty import FaultyStore
from seawall.testing.memory import MemoryStore
from seawall.vault.header import HEADER_BYTES
from seawall.vault.identity import sealing_folder
from seawall.vault.sealing import read_sealing
from seawall.vault.signing import SigningKey
from seawall.vault.tail import TRAILER_BYTES
from seawall.verify.check import check_copy
from seawall.verify.levels import Level
from seawall.verify.receipts import receipt_signers
from tests.protect.little_site import RUN, LittleSite, tree, write_checkpoint

MIB = 1 << 20
RECORD_BYTES = 8 * MIB + 1 + 16
"""A stored record of a whole chunk: codec byte and authentication tag more."""
# Files by name: _COMMITTED, empty, large, small.
EMPTY, LARGE, SMALL = "file-1.sea", "file-2.sea", "file-3.sea"
Change = Callable[[bytes], bytes | None]


@dataclass
class Copies:
    """A checkpoint with whole copies in ``a``, ``b`` and ``c``; ``c`` is the coordination store."""

    site: LittleSite
    commit: CommitRecord
    source: Path

    @property
    def folder(self) -> str:
        return sealing_folder(RUN, bytes.fromhex(self.commit.sealing))

    def memory(self, name: str) -> MemoryStore:
        store = self.site.stores[name]
        assert isinstance(store, MemoryStore)
        return store

    def change(self, name: str, object_name: str, change: Change) -> None:
        """Play a store that lost or altered an object."""
        store, key = self.memory(name), self.folder + object_name
        changed = change(store.objects[key])
        if changed is None:
            del store.objects[key]
        else:
            store._set(key, changed)

    def heal(self, name: str = "a", others: Sequence[str] = ("b", "c"), **options: Any) -> Healed:
        places = [self.site.place(other) for other in others]
        wanted: dict[str, Any] = {"writer": self.site.keys["writer"], **options}
        return heal(
            self.site.view(),
            self.commit,
            self.site.place(name),
            places,
            coordination=self.site.stores["c"],
            clock=self.site.clock,
            transfers=4,
            **wanted,
        )

    def damaged(self, name: str) -> set[str]:
        """What a verifier without any secret key finds wrong."""
        state = self.site.view().state
        writers, operators = state.writer_of(self.commit), state.resolver("operator")
        sealing = bytes.fromhex(self.commit.sealing)
        findings = check_copy(self.site.stores[name], RUN, sealing, self.commit.manifest, writers, operators, Level.L2)
        return {damage.object for finding in findings for damage in finding.damages}

    def stored(self, name: str) -> dict[str, bytes]:
        """The sealing's objects in a store, but its receipts."""
        return {
            key.removeprefix(self.folder): raw
            for key, raw in self.memory(name).objects.items()
            if key.startswith(self.folder) and "receipt-" not in key
        }

    def receipts(self, name: str) -> Any:
        state = self.site.view().state
        store = self.site.stores[name]
        sealing = read_sealing(store, RUN, bytes.fromhex(self.commit.sealing), self.commit.manifest, state.writer_of(self.commit))
        return read_receipts(self.site.place(name), sealing, receipt_signers(state))


def new_copies(folder: Path) -> Copies:
    site = LittleSite({name: MemoryStore(name) for name in "abc"})
    site.open()
    files = {"small": os.urandom(3000), "empty": b"", "large": os.urandom(17 * MIB)}
    source = write_checkpoint(folder / "ck", files=files)
    done = site.sync(source, places=("a", "b", "c"))
    return Copies(site, site.view().state.commit_of(done.sealing), source)


@pytest.fixture(scope="module")
def sealed_once(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return new_copies(tmp_path_factory.mktemp("copies"))


@pytest.fixture
def copies(sealed_once: Copies) -> Copies:
    return fresh(sealed_once)


def fresh(sealed_once: Copies) -> Copies:
    """The same, in stores of their own that may be damaged."""
    stores: dict[str, Store] = {}
    for name in "abc":
        fresh, old = MemoryStore(name), sealed_once.memory(name)
        fresh.objects, fresh._arrived, fresh._changes = dict(old.objects), dict(old._arrived), old._changes
        stores[name] = fresh
    old_site = sealed_once.site
    site = LittleSite(stores, root=old_site.root, keys=old_site.keys, keyring=old_site.keyring, recovery=old_site.recovery)
    return Copies(site, sealed_once.commit, sealed_once.source)


def flip(at: int) -> Change:
    """One bit at byte ``at``, from the end if negative."""

    def change(raw: bytes) -> bytes:
        altered = bytearray(raw)
        altered[at] ^= 0x10
        return bytes(altered)

    return change


def gone(raw: bytes) -> None:
    """The object is not there any more."""


def in_record(number: int) -> Change:
    """A flip inside a record of the large file."""
    return flip(HEADER_BYTES + number * RECORD_BYTES + 5)


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


class TestWhatNoCopyHas:
    """Nothing is overwritten, and the error names it."""

    def _nothing_changed(self, copies: Copies, before: dict[str, bytes], missing: dict[str, tuple[int, ...]], **options: Any) -> None:
        with pytest.raises(HealError) as caught:
            copies.heal(**options)
        assert caught.value.missing == missing
        assert copies.memory("a").objects == before
        assert not list(list_records(copies.site.stores["c"], RUN, RESPONSE))

    def test_a_record(self, copies: Copies) -> None:
        for name in "abc":
            copies.change(name, LARGE, in_record(1))
        copies.change("a", SMALL, flip(HEADER_BYTES))
        self._nothing_changed(copies, dict(copies.memory("a").objects), {LARGE: (1,)})

    def test_a_frame(self, copies: Copies) -> None:
        for name in "abc":
            copies.change(name, LARGE, flip(-3))
        self._nothing_changed(copies, dict(copies.memory("a").objects), {LARGE: ()})

    def test_an_object(self, copies: Copies) -> None:
        for name in "abc":
            copies.change(name, SMALL, gone)
        copies.change("a", LARGE, in_record(0))
        self._nothing_changed(copies, dict(copies.memory("a").objects), {SMALL: ()})

    @pytest.mark.parametrize("name", ["manifest.json", "objects.json", "keys-1.json"])
    def test_a_document(self, copies: Copies, name: str) -> None:
        for store in "abc":
            copies.change(store, name, flip(30))
        self._nothing_changed(copies, dict(copies.memory("a").objects), {name: ()})

    def test_a_missing_object_of_which_a_record_is_nowhere(self, copies: Copies) -> None:
        """This shows only while it is copied: the damaged object beside it must not have been replaced by then."""
        copies.change("a", LARGE, gone)
        copies.change("a", SMALL, flip(HEADER_BYTES))
        for name in "bc":
            copies.change(name, LARGE, in_record(2))
        before = copies.memory("a").objects[copies.folder + SMALL]
        with pytest.raises(HealError) as caught:
            copies.heal()
        assert caught.value.missing == {LARGE: (2,)}
        assert copies.memory("a").objects[copies.folder + SMALL] == before
        assert copies.folder + LARGE not in copies.memory("a").objects
        assert copies.receipts("a").highest == 1


class TestSilence:
    """A store that does not answer is neither good nor bad."""

    def _silence(self, copies: Copies, name: str) -> None:
        faulty = FaultyStore(copies.site.stores[name])
        for method in ("get", "read_into", "head", "list"):
            faulty.fail(method, StoreUnavailableError("no answer", where=name), times=None)
        place = copies.site.place(name)
        copies.site.stores[name] = faulty
        copies.site._places[name] = Place(name, place.id, faulty)

    def test_another_copy_does_it(self, copies: Copies) -> None:
        copies.change("a", LARGE, in_record(1))
        self._silence(copies, "b")
        done = copies.heal()
        assert done.repairs[0].sources == ("c",) and set(done.silent) == {"b"}
        assert copies.damaged("a") == set()

    def test_what_it_may_have_is_not_called_lost(self, copies: Copies) -> None:
        for name in "ac":
            copies.change(name, LARGE, in_record(1))
        self._silence(copies, "b")
        with pytest.raises(StoreUnavailableError, match="cannot be healed from the stores that answer"):
            copies.heal()

    def test_a_silent_copy_is_not_taken_for_a_damaged_one(self, copies: Copies) -> None:
        self._silence(copies, "a")
        with pytest.raises(StoreUnavailableError, match="no answer"):
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
