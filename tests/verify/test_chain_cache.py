"""Reading what is proved costs as many requests as there is news, and a cache makes nothing look better than the store has it."""

from pathlib import Path

import pytest

from seawall.log.read import LogView
from seawall.testing.counting import CountingStore
from seawall.testing.memory import MemoryStore
from seawall.verify import chain_cache
from seawall.verify.certify import certify, read_proofs
from seawall.verify.chain_cache import ChainCache
from seawall.verify.proofs import Proof, proof_key
from tests.log.actors import KEYS, RUN, TickClock, begun, read
from tests.verify.test_proofs import certified, proof

VERIFIER = KEYS.verifier


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_cache, "SEGMENT_BATCHES", 8)


def longer(store: MemoryStore, view: LogView, *numbers: int, cache: ChainCache | None = None) -> LogView:
    for number in numbers:
        view = certify(store, view, [proof(number)], VERIFIER, TickClock(), cache)
    return view


def proofs_and_requests(store: MemoryStore, view: LogView, cache: ChainCache) -> tuple[tuple[Proof, ...], int]:
    counted = CountingStore(store)
    known = read_proofs(counted, view, cache=cache)
    assert not known.unknown
    return known.proofs, counted.total


def test_what_is_known_is_not_read_again(tmp_path: Path) -> None:
    store, view = certified(30)
    full = read_proofs(store, view).proofs
    assert proofs_and_requests(store, view, ChainCache(tmp_path)) == (full, 31)
    # Another process: the last batch again, and that there is none after it.
    assert proofs_and_requests(store, view, ChainCache(tmp_path)) == (full, 2)
    view = longer(store, view, 31, 32, 33)
    assert proofs_and_requests(store, view, ChainCache(tmp_path)) == (read_proofs(store, view).proofs, 5)
    assert proofs_and_requests(store, view, ChainCache(tmp_path))[1] == 2


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 17])
def test_segments_end_where_they_may(tmp_path: Path, length: int) -> None:
    store, view = certified(length)
    full = read_proofs(store, view).proofs
    for expected in (length + 1, 2, 2):
        assert proofs_and_requests(store, view, ChainCache(tmp_path)) == (full, expected)


def test_certifying_costs_no_more_for_a_long_chain(tmp_path: Path) -> None:
    store, view = certified(20)
    cache = ChainCache(tmp_path)
    read_proofs(store, view, cache=cache)
    counted = CountingStore(store)
    certify(counted, view, [proof(40)], VERIFIER, TickClock(), cache)
    assert counted.calls["get"] <= 4, counted.calls


def test_a_process_remembers_without_a_folder() -> None:
    store, view = certified(9)
    cache = ChainCache()
    assert proofs_and_requests(store, view, cache)[1] == 10
    assert proofs_and_requests(store, view, cache)[1] == 2


@pytest.mark.parametrize("gone", [9, 5, 1])
def test_a_batch_that_is_taken_away_is_missed(tmp_path: Path, gone: int) -> None:
    """At the end at once. Behind it the next reader without memory misses it; one that remembers it has seen it signed."""
    store, view = certified(9)
    read_proofs(store, view, cache=ChainCache(tmp_path))
    del store.objects[proof_key(RUN, VERIFIER.key_id, gone)]
    assert bool(read_proofs(store, view, cache=ChainCache(tmp_path)).unknown) is (gone == 9)
    assert read_proofs(store, view, cache=ChainCache()).unknown


def test_a_cache_that_knows_more_than_the_store_is_not_believed(tmp_path: Path) -> None:
    """The store was put back to an older state, its log with it."""
    store, view = certified(5)
    older = dict(store.objects)
    longer_view = longer(store, view, 6, 7)
    read_proofs(store, longer_view, cache=ChainCache(tmp_path))
    store.objects.clear()
    store.objects.update(older)
    assert len(read_proofs(store, view, cache=ChainCache(tmp_path)).proofs) == 5


@pytest.mark.parametrize("change", ["torn", "another history's", "another version's", "gone"])
def test_a_file_that_is_not_ours_is_passed_over(tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store, view = certified(10)
    full = read_proofs(store, view, cache=ChainCache(tmp_path)).proofs
    files = sorted((tmp_path / "proofs").glob("*.json"))
    assert len(files) == 2 and all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    if change == "torn":
        files[0].write_bytes(files[0].read_bytes()[:-20])
    elif change == "gone":
        files[0].unlink()
    elif change == "another version's":
        monkeypatch.setattr(chain_cache, "_VERSION", "2 later")
    else:
        # Another history of the same run in a store of the same id: only the digest of its last batch tells.
        other, _ = begun()
        other_view = longer(other, read(other), *range(20, 30))
        read_proofs(other, other_view, cache=ChainCache(tmp_path / "other"))
        (foreign,) = sorted((tmp_path / "other" / "proofs").glob("*.0.json"))
        files[0].write_bytes(foreign.read_bytes())
    assert proofs_and_requests(store, view, ChainCache(tmp_path)) == (full, 12 if change == "another history's" else 11)


def test_a_folder_that_cannot_be_written_costs_requests_only(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    store, view = certified(3)
    assert proofs_and_requests(store, view, ChainCache(blocked))[1] == 4
    assert proofs_and_requests(store, view, ChainCache(blocked))[1] == 4
