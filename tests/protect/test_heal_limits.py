"""What the copies together do not hold changes nothing, and a store that does not answer is no loss."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from seawall.errors import StoreUnavailableError
from seawall.log.records import list_records
from seawall.protect.acts import RESPONSE
from seawall.protect.heal import HealError
from seawall.protect.place import Place
from seawall.testing.faulty import FaultyStore
from seawall.vault.header import HEADER_BYTES
from tests.protect.little_site import RUN
from tests.protect.three_copies import LARGE, SMALL, Copies, flip, gone, in_record
from tests.protect.three_copies import copies as copies
from tests.protect.three_copies import sealed_once as sealed_once


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


def test_several_heals_at_once_end_in_one_whole_copy(copies: Copies) -> None:
    copies.change("a", LARGE, in_record(1))
    copies.change("a", SMALL, gone)
    copies.change("a", "manifest.json", gone)
    with ThreadPoolExecutor(3) as pool:
        done = [heal.result() for heal in [pool.submit(copies.heal) for _ in range(3)]]
    assert copies.damaged("a") == set() and copies.stored("a") == copies.stored("b")
    assert copies.receipts("a").highest == 2 and any(one.receipt is not None for one in done)
    assert len(list(list_records(copies.site.stores["c"], RUN, RESPONSE))) == 1
