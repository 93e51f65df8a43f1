"""Records: written once, bound to their place, and read only with the signatures that the reader asks for."""

import pytest

from seawall.errors import CorruptError, NoSuchObjectError, ObjectExistsError, StoreAmbiguousError, TrustError, UsageError
from seawall.log.records import list_records, merge_signatures, parse_record, read_record, record_key, sign_record
from seawall.testing.faulty import FaultyStore
from seawall.testing.memory import MemoryStore
from seawall.vault.signing import PublicKey, SigningKey
from tests.log.actors import KEYS, RUN, key_from_seed

BODY = {"what": "nothing", "steps": ["1", "2"]}
SECOND = key_from_seed("operator", "second")


def operators(key_id: str) -> PublicKey | None:
    return {key.key_id: key.public for key in (KEYS.operator, SECOND)}.get(key_id)


def written(store: MemoryStore, name: str = "first", key: SigningKey = KEYS.operator) -> str:
    return sign_record(store, RUN, "incident", name, BODY, [key]).name


def test_a_record_is_read_back_and_named_by_its_digest_without_a_name() -> None:
    store = MemoryStore()
    named, unnamed = written(store), written(store, "")
    found = read_record(store, RUN, "incident", named, operators)
    assert (found.body, found.signers) == (BODY, (KEYS.operator.key_id,))
    assert read_record(store, RUN, "incident", unnamed, operators).digest == unnamed
    assert list(list_records(store, RUN, "incident")) == sorted([named, unnamed])
    assert list(list_records(store, RUN, "incident", after="first")) == []
    assert list(list_records(store, RUN, "incident", "fir")) == ["first"]
    assert list(list_records(store, RUN, "report")) == []


def test_the_same_record_twice_is_one_and_another_under_its_name_is_refused() -> None:
    store = MemoryStore()
    written(store)
    written(store)
    with pytest.raises(ObjectExistsError):
        sign_record(store, RUN, "incident", "first", {"what": "else"}, [KEYS.operator])
    assert read_record(store, RUN, "incident", "first", operators).body == BODY


def test_a_lost_answer_is_settled_by_reading() -> None:
    store = MemoryStore()
    faulty = FaultyStore(store).after("put", StoreAmbiguousError("no answer"))
    sign_record(faulty, RUN, "incident", "first", BODY, [KEYS.operator])
    assert not faulty.unused
    lost = FaultyStore(MemoryStore()).fail("put", StoreAmbiguousError("no answer"), times=None)
    with pytest.raises(StoreAmbiguousError):
        sign_record(lost, RUN, "incident", "first", BODY, [KEYS.operator])


@pytest.mark.parametrize(("run", "kind", "name"), [("other", "incident", "first"), (RUN, "report", "first"), (RUN, "incident", "second")])
def test_a_record_counts_in_its_own_place_only(run: str, kind: str, name: str) -> None:
    store = MemoryStore()
    written(store)
    store.objects[record_key(run, kind, name)] = store.objects[record_key(RUN, "incident", "first")]
    with pytest.raises(CorruptError, match="not the one of its place"):
        read_record(store, run, kind, name, operators)


def test_a_record_named_by_its_digest_has_no_other_name() -> None:
    store = MemoryStore()
    name = written(store, "")
    store.objects[record_key(RUN, "incident", "f" * 64)] = store.objects[record_key(RUN, "incident", name)]
    with pytest.raises(CorruptError):
        read_record(store, RUN, "incident", "f" * 64, operators)


def test_other_signers_do_not_count() -> None:
    store = MemoryStore()
    written(store, key=KEYS.writer)
    with pytest.raises(TrustError):
        read_record(store, RUN, "incident", "first", operators)
    with pytest.raises(NoSuchObjectError):
        read_record(store, RUN, "incident", "second", operators)


def test_two_signatures_are_gathered_from_two_people() -> None:
    store = MemoryStore()
    mine = read_record(store, RUN, "incident", written(store, ""), operators)
    theirs = read_record(store, RUN, "incident", written(store, "", SECOND), operators)
    both = merge_signatures([mine, theirs])
    assert set(parse_record(both, RUN, "incident", None, operators, threshold=2).signers) == {KEYS.operator.key_id, SECOND.key_id}
    with pytest.raises(TrustError):
        parse_record(merge_signatures([mine, mine]), RUN, "incident", None, operators, threshold=2)
    other = sign_record(store, RUN, "incident", "", {"what": "else"}, [SECOND])
    with pytest.raises(UsageError):
        merge_signatures([mine, other])


@pytest.mark.parametrize(
    ("kind", "name"), [("Incident", "a"), ("in/cident", "a"), ("incident", "../a"), ("incident", ".a"), ("incident", "a" * 201)]
)
def test_odd_kinds_and_names_are_refused(kind: str, name: str) -> None:
    with pytest.raises(UsageError):
        sign_record(MemoryStore(), RUN, kind, name, BODY, [KEYS.operator])
