"""Whatever is wrong with a copy is found at its level, by object and record, and certifies nothing above."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from seawall.vault.header import HEADER_BYTES
from seawall.vault.tail import TRAILER_BYTES
from seawall.verify.check import NOT_ATTAINABLE
from seawall.verify.levels import Level
from tests.verify.sealed_copy import LARGE, MIB, SMALL, SealedCopy, failed, proved, sealed_files

L0, L1, L2, L3, L4 = Level.L0, Level.L1, Level.L2, Level.L3, Level.L4

# Files by name: _COMMITTED, empty, large, twin-a, twin-b.
EMPTY, LARGE_FILE, TWIN_A, TWIN_B = "file-1.sea", "file-2.sea", "file-3.sea", "file-4.sea"
RECORD_BYTES = 8 * MIB + 1 + 16
"""A stored record of a whole chunk: codec byte and authentication tag more."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SealedCopy:
    return sealed_files(tmp_path_factory.mktemp("whole") / "ck", SMALL | LARGE)


@dataclass(frozen=True)
class Damaged:
    """``change`` gets the bytes of ``object`` and returns what is there instead; None removes it."""

    name: str
    object: str
    change: Callable[[bytes], bytes | None]
    levels: frozenset[Level]
    records: tuple[int, ...] = ()


def flip(at: int) -> Callable[[bytes], bytes]:
    """One bit at byte ``at``, from the end if negative."""

    def change(raw: bytes) -> bytes:
        altered = bytearray(raw)
        altered[at] ^= 0x10
        return bytes(altered)

    return change


def _rows() -> list[Damaged]:
    read, listed = frozenset({L2}), frozenset({L0, L2})
    rows = [
        Damaged("first byte of the first record", LARGE_FILE, flip(HEADER_BYTES), read, (0,)),
        Damaged("in the middle record", LARGE_FILE, flip(HEADER_BYTES + RECORD_BYTES + 5), read, (1,)),
        Damaged("in the last record", LARGE_FILE, flip(HEADER_BYTES + 2 * RECORD_BYTES + 5), read, (2,)),
        Damaged("two records", LARGE_FILE, lambda raw: flip(HEADER_BYTES)(flip(HEADER_BYTES + RECORD_BYTES)(raw)), read, (0, 1)),
        Damaged("record of a small object", TWIN_A, flip(HEADER_BYTES + 100), read, (0,)),
        Damaged("record of an empty file", EMPTY, flip(HEADER_BYTES), read, (0,)),
        Damaged("cut by a byte", TWIN_A, lambda raw: raw[:-1], listed),
        Damaged("cut in half", LARGE_FILE, lambda raw: raw[: len(raw) // 2], listed),
        Damaged("cut to nothing", TWIN_A, lambda raw: b"", listed),
        Damaged("grown by a byte", TWIN_A, lambda raw: raw + b"\0", listed),
        Damaged("missing", TWIN_A, lambda raw: None, listed),
        Damaged("large one missing", LARGE_FILE, lambda raw: None, listed),
        Damaged("zeros of the right length", LARGE_FILE, lambda raw: bytes(len(raw)), read),
        Damaged("inventory", "inventory.sea", flip(HEADER_BYTES + 1), read, (0,)),
        Damaged("inventory missing", "inventory.sea", lambda raw: None, listed),
        Damaged("plan", "plan.sea", flip(HEADER_BYTES + 1), read, (0,)),
        Damaged("batch", "batch-0.sea", flip(HEADER_BYTES + 1), read, (0,)),
        Damaged("keys changed", "keys-1.json", flip(40), read),
        Damaged("keys replaced", "keys-1.json", lambda raw: b"{}", read),
        Damaged("keys missing", "keys-1.json", lambda raw: None, read),
        Damaged("strange second keys", "keys-2.json", lambda raw: b'{"payloadType":"x"}', read),
        Damaged("manifest changed", "manifest.json", flip(10), frozenset({L0})),
        Damaged("manifest missing", "manifest.json", lambda raw: None, frozenset({L0})),
        Damaged("manifest empty", "manifest.json", lambda raw: b"", frozenset({L0})),
        Damaged("objects table changed", "objects.json", flip(30), frozenset({L0})),
        Damaged("objects table missing", "objects.json", lambda raw: None, frozenset({L0})),
    ]
    for object_name in (TWIN_A, LARGE_FILE):
        for at in (0, 4, 6, 9, 14, 33, 40, 60, 100, HEADER_BYTES - 1):
            rows.append(Damaged(f"header byte {at} of {object_name}", object_name, flip(at), read))
        for at in (-TRAILER_BYTES - 40, -TRAILER_BYTES - 1):
            rows.append(Damaged(f"tail byte {at} of {object_name}", object_name, flip(at), read))
        for at in (-TRAILER_BYTES, -60, -8, -1):
            rows.append(Damaged(f"trailer byte {at} of {object_name}", object_name, flip(at), read))
    return rows


@pytest.mark.parametrize("damaged", _rows(), ids=lambda damaged: damaged.name)
def test_damage_is_found_and_named(whole: SealedCopy, damaged: Damaged) -> None:
    copy = whole.fresh()
    key = copy.folder + damaged.object
    changed = damaged.change(copy.store.objects.get(key, b""))
    if changed is None:
        del copy.store.objects[key]
    else:
        copy.store.objects[key] = changed
    findings = copy.check(L4)
    assert failed(findings) == damaged.levels
    assert not {L3, L4} & findings.keys(), "content is only judged when the bytes hold"
    worst = findings[max(damaged.levels)]
    assert [(found.object, found.records) for found in worst.damages] == [(damaged.object, damaged.records)]
    assert damaged.object in worst.evidence["damage"] and worst.evidence["damaged_objects"] == "1"


def test_an_object_under_anothers_name(whole: SealedCopy) -> None:
    copy = whole.fresh()
    objects = copy.store.objects
    a, b = copy.folder + TWIN_A, copy.folder + TWIN_B
    objects[a], objects[b] = objects[b], objects[a]
    findings = copy.check(L2)
    assert proved(findings) == {L0} and failed(findings) == {L2}
    assert {damage.object for damage in findings[L2].damages} == {TWIN_A, TWIN_B}


def test_several_damages_are_all_named(whole: SealedCopy) -> None:
    copy = whole.fresh()
    del copy.store.objects[copy.folder + TWIN_A]
    for name in (EMPTY, LARGE_FILE):
        copy.store.objects[copy.folder + name] = flip(HEADER_BYTES)(copy.store.objects[copy.folder + name])
    findings = copy.check(L2)
    assert [damage.object for damage in findings[L0].damages] == [TWIN_A]
    assert {(damage.object, damage.records) for damage in findings[L2].damages} == {(EMPTY, (0,)), (LARGE_FILE, (0,)), (TWIN_A, ())}


def test_what_does_not_belong_to_it_is_harmless(whole: SealedCopy) -> None:
    copy = whole.fresh()
    copy.store.objects[copy.folder + "file-99.sea"] = b"somebody else's"
    copy.store.objects[copy.folder + "README"] = b""
    copy.store.objects[copy.folder + "receipt-junk.json"] = b"junk"
    assert proved(copy.check(L4)) == {L0, L2, L3, L4}


def test_a_whole_copy_holds_up_to_its_structure(whole: SealedCopy) -> None:
    findings = whole.check(L4)
    assert proved(findings) == {L0, L2, L3, L4}
    assert findings[L1].result == NOT_ATTAINABLE and "no checksum" in findings[L1].evidence["why"]


@pytest.mark.parametrize("up_to", [L0, L1, L2])
def test_public_levels_need_no_key_at_all(whole: SealedCopy, up_to: Level) -> None:
    findings = whole.check(up_to, keys=False)
    assert set(findings) == {level for level in (L0, L1, L2) if level <= up_to}
    assert not failed(findings)


def test_content_levels_without_a_key_are_a_mistake_of_the_caller(whole: SealedCopy) -> None:
    with pytest.raises(ValueError, match="data key"):
        whole.check(L3, keys=False)
