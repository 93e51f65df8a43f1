"""One byte changed anywhere in a copy: reading it back finds it, and a restore refuses it or does without it."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.errors import CorruptError, TrustError
from seawall.protect.restore import restore
from seawall.vault.sealing import read_sealing
from seawall.verify.levels import Level
from tests.protect.little_site import RUN, tree, write_checkpoint
from tests.verify.sealed_copy import SMALL, SealedCopy, failed, sealed

ANY_FLIP = settings(max_examples=150, deadline=None)
PLACES = st.floats(0, 1, exclude_max=True)
MASKS = st.integers(1, 255)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[SealedCopy, Path]:
    source = write_checkpoint(tmp_path_factory.mktemp("whole") / "ck", files=SMALL)
    return sealed(source), source


def altered(whole: SealedCopy, chosen: int, place: float, mask: int) -> tuple[SealedCopy, str]:
    """A copy with one byte changed, and the object's name. Receipts are about a copy, not of it."""
    copy = whole.fresh()
    names = sorted(key for key in copy.store.objects if key.startswith(copy.folder) and "/receipt-" not in key)
    key = names[chosen % len(names)]
    raw = bytearray(copy.store.objects[key])
    raw[int(place * len(raw))] ^= mask
    copy.store.objects[key] = bytes(raw)
    return copy, key.removeprefix(copy.folder)


@ANY_FLIP
@given(st.integers(0, 100), PLACES, MASKS)
def test_it_is_found_with_public_keys_alone(whole: tuple[SealedCopy, Path], chosen: int, place: float, mask: int) -> None:
    copy, name = altered(whole[0], chosen, place, mask)
    findings = copy.check(Level.L2, keys=False)
    assert failed(findings)
    assert {damage.object for finding in findings.values() for damage in finding.damages} == {name}


@ANY_FLIP
@given(st.integers(0, 100), PLACES, MASKS)
def test_a_restore_refuses_it_or_gives_every_byte(whole: tuple[SealedCopy, Path], chosen: int, place: float, mask: int) -> None:
    copy, name = altered(whole[0], chosen, place, mask)
    commit, state = copy.commit, copy.state
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out"
        try:
            opened = read_sealing(copy.store, RUN, bytes.fromhex(commit.sealing), commit.manifest, state.writer_of(commit))
            unlocked = copy.open_up(opened)
            restore(opened, unlocked.inventory, unlocked.data_key, target)
        except (CorruptError, TrustError):
            assert not target.exists()
            return
        # Only what a restore does not need may be damaged unnoticed by it: how the work was dealt out.
        assert name in ("plan.sea", "batch-0.sea")
        assert tree(target) == tree(whole[1])
