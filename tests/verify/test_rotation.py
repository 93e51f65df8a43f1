"""Which copies are read back next: a table, and laws that hold for any history; then parts that add up to one proof, or do not."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.errors import CorruptError, TrustError
from seawall.vault.header import HEADER_BYTES
from seawall.vault.objects import Row
from seawall.vault.signing import SigningKey
from seawall.verify.levels import AgePolicy, Level
from seawall.verify.parts import Part, check_part, combine, read_part, sign_part
from seawall.verify.proofs import FAILED, OK, Proof
from seawall.verify.recovery import copy_states
from seawall.verify.rotation import Rotation, Span, object_spans, plan_rotation
from tests.protect.little_site import RUN
from tests.verify.judging import POLICY, day, proof, proofs_in, run_of, sealing_id, store_id
from tests.verify.sealed_copy import LARGE, SMALL, SealedCopy, sealed_files

NAMES = {store_id(name): name for name in "abc"}


def planned(
    happened: list[Proof],
    now: float,
    *steps: int,
    level: Level = Level.L2,
    budget: int | None = None,
    receipts: str = "",
    policy: AgePolicy = POLICY,
) -> Rotation:
    state = run_of(*(steps or (100,)))
    whole = {(sealing, store_id(name)): name in receipts for sealing in state.commits for name in "abc"}
    return plan_rotation(state, happened, list(NAMES), whole, day(now), policy, wanted=level, budget_bytes=budget)


def words(rotation: Rotation) -> str:
    return ", ".join(f"{each.commit.step} {NAMES[each.store]} {each.level.name} {each.why}" for each in rotation.readings)


CASES = [
    # what happened; now; stores with a receipt; wanted; what is read
    ("", 1, "", "L2", "100 a L2 never"),
    ("", 1, "ab", "L2", "100 a L2 never, 100 b L2 never"),
    ("1 a L2 ok", 6, "", "L2", ""),
    ("1 a L2 ok", 6.3, "", "L2", "100 a L2 lapsing"),
    ("1 a L1 ok", 2, "", "L2", "100 a L2 never"),
    ("1 a L4 ok", 2, "", "L2", ""),
    ("1 a L2 ok; 1 b L2 ok; 2 c L2 ok", 9, "", "L2", "100 a L2 lapsing, 100 b L2 lapsing, 100 c L2 lapsing"),
    ("2 a L2 ok; 1 b L2 ok", 9, "c", "L2", "100 c L2 never, 100 b L2 lapsing, 100 a L2 lapsing"),
    # Failures first, and not again before the next round.
    ("1 a L2 ok; 6 b L2 failed", 7, "c", "L2", "100 b L2 failed, 100 c L2 never, 100 a L2 lapsing"),
    ("6 a L2 failed", 6.5, "", "L2", ""),
    ("6 a L3 failed", 7, "", "L2", "100 a L3 failed"),
    # A clock that ran ahead postpones nothing.
    ("50 a L2 ok", 2, "", "L2", "100 a L2 never"),
    ("50 a L2 failed", 2, "", "L2", "100 a L2 failed"),
    # One copy of the sealing shows the content; the others are read as bytes.
    ("", 1, "ab", "L4", "100 a L4 never, 100 b L2 never"),
    ("1 a L2 ok; 1 b L2 ok", 2, "", "L4", "100 a L4 content"),
    ("1 a L4 ok; 1 b L2 ok", 2, "", "L4", ""),
    ("1 a L4 ok; 1 b L2 ok", 6.5, "", "L4", "100 a L2 lapsing, 100 b L2 lapsing"),
    ("1 a L4 ok; 20 a L2 ok; 20 b L2 ok", 24, "", "L4", "100 a L4 content"),
    ("1 a L4 ok; 18 a L2 ok; 22 b L2 ok", 24, "", "L4", "100 a L4 content"),
    ("1 a L2 failed", 1.1, "", "L4", ""),
    ("1 a L2 ok of another", 2, "", "L2", "100 a L2 never"),
]


@pytest.mark.parametrize(("happened", "now", "receipts", "level", "expected"), CASES)
def test_what_is_read(happened: str, now: float, receipts: str, level: str, expected: str) -> None:
    assert words(planned(proofs_in(happened), now, level=Level.parse(level), receipts=receipts)) == expected


def sized(at: float, store: str, step: int, nbytes: int) -> Proof:
    return replace(proof(at, store, Level.L2, OK, step), evidence={"stored_bytes": str(nbytes), "requests": "3"})


def test_a_budget_takes_the_most_urgent_and_says_what_is_overdue() -> None:
    happened = [sized(1, "a", 100, 60), sized(2, "a", 200, 50), sized(3, "a", 300, 10)]
    rotation = planned(happened, 9.5, 100, 200, 300, budget=100)
    assert words(rotation) == "100 a L2 lapsing" and rotation.nbytes == 60
    assert [each.commit.step for each in rotation.postponed] == [200, 300], "a small one does not overtake"
    assert [each.commit.step for each in rotation.overdue] == [200]
    assert [each.requests for each in rotation.readings] == [3]
    assert words(planned(happened, 9.5, 100, 200, 300, budget=1)) == "100 a L2 lapsing", "never nothing"


def test_a_medium_has_its_own_period() -> None:
    policy = AgePolicy(POLICY.max_age_days, {"tape": {Level.L2: 365}}, {store_id("a"): "tape", store_id("b"): "disk"})
    assert words(planned(proofs_in("1 a L2 ok; 1 b L2 ok"), 20, policy=policy)) == "100 b L2 lapsing"


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from("ab"), st.integers(1, 50)), min_size=1, max_size=8, unique_by=lambda each: each[:2]
    ),
    st.integers(30, 60),
)
@settings(max_examples=100, deadline=None)
def test_a_budget_that_fits_the_period_lets_nothing_lapse(copies: list[tuple[int, str, int]], slack: int) -> None:
    """Daily rounds, two of which lie between due and lapsed: with half of all bytes and one more copy a round nothing lapses."""
    steps = sorted({step for step, _, _ in copies})
    # Where it was committed there is a copy, too.
    copies = [*copies, *((step, "a", 1) for step in steps if not any(copy[:2] == (step, "a") for copy in copies))]
    state = run_of(*steps)
    proofs = [sized(0, store, step, nbytes) for step, store, nbytes in copies]
    budget = -(-sum(nbytes for _, _, nbytes in copies) // 2) + max(nbytes for _, _, nbytes in copies)
    for now in range(1, slack):
        rotation = plan_rotation(state, proofs, list(NAMES), {}, day(now), POLICY, budget_bytes=budget)
        assert not rotation.overdue
        proofs += [sized(now, NAMES[each.store], each.commit.step, each.nbytes or 0) for each in rotation.readings]
        for step, store, _ in copies:
            states = copy_states(sealing_id(step), proofs, day(now), POLICY)
            assert states[store_id(store)].level is Level.L2


def row(length: int, number: int) -> Row:
    return Row(f"file-{number}.sea", length, bytes(32), 0, bytes(32))


@given(st.lists(st.integers(0, 100), max_size=40), st.integers(1, 150))
def test_spans_cover_every_object_once(lengths: list[int], limit: int) -> None:
    rows = [row(length, number) for number, length in enumerate(lengths)]
    spans = object_spans(rows, limit)
    assert [index for span in spans for index in range(span.first, span.first + span.count)] == list(range(len(rows)))
    assert all(span.nbytes <= limit or span.count == 1 for span in spans)
    assert [span.nbytes for span in spans] == [sum(lengths[span.first : span.first + span.count]) for span in spans]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SealedCopy:
    return sealed_files(tmp_path_factory.mktemp("parts") / "ck", SMALL | LARGE)


def part_of(copy: SealedCopy, first: int, count: int) -> Part:
    return check_part(copy.store, copy.site.view(), copy.commit, Span(first, count, 0), copy.site.clock, transfers=2)[0]


def test_parts_of_a_real_copy_add_up(whole: SealedCopy) -> None:
    rows = int(whole.check(Level.L0)[Level.L0].evidence["objects"])
    parts = [part_of(whole, first, 2) for first in range(0, rows, 2)]
    (proved,) = combine(parts)
    assert (proved.level, proved.result, proved.at) == (Level.L2, OK, min(part.at for part in parts))
    assert proved.evidence["objects"] == str(rows) and proved.evidence["wraps"].startswith("keyring ")
    assert int(proved.evidence["read_bytes"]) >= int(proved.evidence["stored_bytes"])
    for missing in range(len(parts)):
        assert not combine([part for number, part in enumerate(parts) if number != missing]), "a hole is no proof"


def test_damage_in_one_part_is_a_failure_at_once(whole: SealedCopy) -> None:
    copy = whole.fresh()
    key = copy.folder + "file-1.sea"
    rotten = bytearray(copy.store.objects[key])
    rotten[HEADER_BYTES + 5] ^= 1
    copy.store.objects[key] = bytes(rotten)
    part, damages = check_part(copy.store, copy.site.view(), copy.commit, Span(1, 1, 0), copy.site.clock)
    assert part.result == FAILED and [damage.object for damage in damages] == ["file-1.sea"]
    (proof_of_it,) = combine([part, part_of(copy, 0, 1)])
    assert proof_of_it.result == FAILED and "file-1.sea" in proof_of_it.evidence["damage"]


def test_a_copy_without_manifest_fails_in_every_part(whole: SealedCopy) -> None:
    copy = whole.fresh()
    del copy.store.objects[copy.folder + "manifest.json"]
    (found,) = combine([part_of(copy, 3, 1)])
    assert found.result == FAILED and "manifest.json" in found.evidence["damage"]


def a_part(
    first: int, count: int, objects: int = 6, result: str = OK, versions: str = "", at: float = 1, wraps: bool | None = None
) -> Part:
    evidence = {"requests": "1", "read_bytes": "10"} | ({"wraps": "keyring 1"} if (first == 0 if wraps is None else wraps) else {})
    some = proof(at, "a", Level.L2, result)
    return Part(some.sealing, some.manifest, some.store, first, count, objects, result, some.at, versions, evidence)


@pytest.mark.parametrize(
    ("parts", "result"),
    [
        ([a_part(0, 6)], OK),
        ([a_part(0, 3), a_part(3, 3)], OK),
        ([a_part(3, 3), a_part(0, 3)], OK),
        ([a_part(0, 4), a_part(2, 4)], OK),
        ([a_part(0, 3)], None),
        ([a_part(3, 3)], None),
        ([a_part(0, 2), a_part(3, 3)], None),
        ([a_part(0, 3), a_part(3, 3, versions="other")], None),
        ([a_part(0, 3), a_part(3, 3, objects=7)], None),
        ([a_part(0, 3, wraps=False), a_part(3, 3)], None),
        ([a_part(0, 0, objects=0)], None),
        ([a_part(3, 3, result=FAILED)], FAILED),
        ([a_part(0, 6), a_part(3, 3, result=FAILED, at=2)], FAILED),
        ([a_part(0, 3), replace(a_part(3, 3), store=store_id("b"))], None),
        ([], None),
    ],
)
def test_what_parts_prove(parts: list[Part], result: str | None) -> None:
    found = combine(parts)
    assert [each.result for each in found] == ([] if result is None else [result])


def test_old_parts_prove_an_old_moment() -> None:
    (found,) = combine([a_part(0, 3, at=1), a_part(3, 3, at=9)])
    assert found.at == a_part(0, 3, at=1).at


def test_a_part_passes_through_strangers_hands(whole: SealedCopy) -> None:
    keys = whole.site.keys
    part = part_of(whole, 0, 2)
    resolve = whole.site.view().state.resolver("verifier")
    text = sign_part(RUN, part, keys["verifier"])
    assert read_part(text, RUN, resolve) == part
    with pytest.raises(TrustError):
        read_part(sign_part(RUN, part, keys["writer"]), RUN, resolve)
    with pytest.raises(TrustError):
        read_part(sign_part(RUN, part, SigningKey.generate("verifier")), RUN, resolve)
    with pytest.raises(CorruptError):
        read_part(text, "another", resolve)
    with pytest.raises(CorruptError):
        read_part(sign_part(RUN, replace(part, result="fine"), keys["verifier"]), RUN, resolve)
