"""Proofs reach the other stores, so that one store alone still tells what its copies are worth."""

from pathlib import Path

import pytest

from seawall.errors import StoreUnavailableError
from seawall.log.opening import open_log
from seawall.testing.counting import CountingStore
from seawall.testing.faulty import FaultyStore
from seawall.testing.memory import MemoryStore
from seawall.vault.identity import sealing_folder
from seawall.vault.recipients import RecoveryKey
from seawall.vault.signing import SigningKey
from seawall.vault.wraps import keys_name, wrap_for
from seawall.verify.certify import certify, read_proofs
from seawall.verify.levels import Level
from seawall.verify.mirror_proofs import BroughtBack, bring_back, mirror_proofs, spread
from seawall.verify.proofs import Proof, proof_key
from tests.protect.little_site import RUN, LittleSite, file_site, write_checkpoint

MOMENT = "2026-11-29T12:00:00.000000Z"


def _proved(site: LittleSite, sealing: str, times: int) -> None:
    for _ in range(times):
        view = site.view()
        commit = view.state.commit_of(sealing)
        proof = Proof(sealing, commit.manifest, site.place("a").id, Level.L3, "ok", "decrypt", MOMENT)
        certify(site.stores["c"], view, [proof], site.keys["verifier"], site.clock)


@pytest.fixture
def site(tmp_path: Path) -> LittleSite:
    return file_site(tmp_path)


def test_a_mirror_alone_has_the_proofs(site: LittleSite, tmp_path: Path) -> None:
    done = site.sync(write_checkpoint(tmp_path / "ck"))
    _proved(site, done.sealing, 3)
    view = site.view()
    assert spread(site.stores["c"], view, {"a": site.stores["a"]}) == {}
    alone, _ = open_log(site.stores["a"], RUN, site.root.public, mirror=True)
    assert alone.seq == view.seq
    known = read_proofs(site.stores["a"], alone)
    assert len(known.proofs) == 3 and not known.unknown
    assert mirror_proofs(site.stores["c"], view, site.stores["a"]) == 0


def test_a_mirror_that_was_stopped_goes_on_without_a_hole(site: LittleSite, tmp_path: Path) -> None:
    done = site.sync(write_checkpoint(tmp_path / "ck"))
    _proved(site, done.sealing, 4)
    view = site.view()
    verifier = site.keys["verifier"].key_id
    stopping = FaultyStore(site.stores["a"]).fail("put", StoreUnavailableError("gone"), key=proof_key(RUN, verifier, 3))
    behind = spread(site.stores["c"], view, {"a": stopping})
    assert "gone" in behind["a"]
    there = [found.key for found in site.stores["a"].list(f"runs/{RUN}/proofs/")]
    assert there == [proof_key(RUN, verifier, 1), proof_key(RUN, verifier, 2)]
    assert open_log(site.stores["a"], RUN, site.root.public, mirror=True)[0].seq < view.seq, "its log must not name proofs it lacks"
    assert spread(site.stores["c"], view, {"a": site.stores["a"]}) == {}
    assert len(list(site.stores["a"].list(f"runs/{RUN}/proofs/"))) == 4


def test_a_store_that_is_filled_late_gets_later_keys_too(site: LittleSite, tmp_path: Path) -> None:
    """A key that was added since must open the new copy as well."""
    done = site.sync(write_checkpoint(tmp_path / "ck"), places=("a",))
    _, _, data_key = site.opened("a", done.sealing)
    added = RecoveryKey.generate()
    operator: SigningKey = site.keys["operator"]
    sealing = bytes.fromhex(done.sealing)
    folder = sealing_folder(RUN, sealing)
    site.stores["a"].put(folder + keys_name(2), wrap_for([added.public], data_key, RUN, sealing, 2).sign(operator))
    site.sync(tmp_path / "ck", places=("a", "c"))
    assert site.stores["c"].get(folder + keys_name(2)) == site.stores["a"].get(folder + keys_name(2))


def _take_away(site: LittleSite, *numbers: int) -> None:
    verifier = site.keys["verifier"].key_id
    for number in numbers:
        site.stores["c"].delete(proof_key(RUN, verifier, number))


@pytest.mark.parametrize("gone", [(4,), (2,), (1,), (1, 2, 3, 4), (1, 3)])
def test_proofs_that_were_deleted_come_back_from_a_mirror(site: LittleSite, tmp_path: Path, gone: tuple[int, ...]) -> None:
    done = site.sync(write_checkpoint(tmp_path / "ck"))
    _proved(site, done.sealing, 4)
    view = site.view()
    spread(site.stores["c"], view, {"a": site.stores["a"]})
    _take_away(site, *gone)
    assert read_proofs(site.stores["c"], view).unknown
    assert bring_back(site.stores["c"], view, {"a": site.stores["a"]}) == BroughtBack(len(gone))
    assert len(read_proofs(site.stores["c"], view).proofs) == 4
    counted = CountingStore(site.stores["c"])
    assert bring_back(counted, view, {"a": site.stores["a"]}) == BroughtBack()
    assert counted.total == 2, "a listing and the head"


def test_only_the_right_bytes_come_back(site: LittleSite, tmp_path: Path) -> None:
    """One mirror is false, one is behind; what the log names is in the third."""
    done = site.sync(write_checkpoint(tmp_path / "ck"))
    _proved(site, done.sealing, 3)
    view = site.view()
    verifier = site.keys["verifier"].key_id
    good, false, behind = MemoryStore("good"), MemoryStore("false"), MemoryStore("behind")
    for mirror in (good, false):
        mirror_proofs(site.stores["c"], view, mirror)
    false.objects[proof_key(RUN, verifier, 3)] = good.objects[proof_key(RUN, verifier, 2)]
    right = {key: site.stores["c"].get(key) for key in good.objects}
    _take_away(site, 2, 3)
    assert "no mirror has batch 3" in bring_back(site.stores["c"], view, {"false": false, "behind": behind}).lost[verifier]
    mirrors = {
        "false": false,
        "behind": behind,
        "down": FaultyStore(good).fail("get", StoreUnavailableError("down"), times=None),
        "good": good,
    }
    assert bring_back(site.stores["c"], view, mirrors) == BroughtBack(2)
    assert {key: site.stores["c"].get(key) for key in right} == right


def test_a_batch_that_was_replaced_is_reported_and_left_alone(site: LittleSite, tmp_path: Path) -> None:
    done = site.sync(write_checkpoint(tmp_path / "ck"))
    _proved(site, done.sealing, 3)
    view = site.view()
    verifier = site.keys["verifier"].key_id
    spread(site.stores["c"], view, {"a": site.stores["a"]})
    replayed = site.stores["c"].get(proof_key(RUN, verifier, 1))
    _take_away(site, 3)
    site.stores["c"].put(proof_key(RUN, verifier, 3), replayed)
    back = bring_back(site.stores["c"], view, {"a": site.stores["a"]})
    assert back.batches == 0 and "replaced" in back.lost[verifier]
    assert site.stores["c"].get(proof_key(RUN, verifier, 3)) == replayed
