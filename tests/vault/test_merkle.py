"""The tree against RFC 9162 written down as it stands there: recursively."""

from hashlib import sha3_256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.vault import merkle


def naive_root(entries: list[bytes]) -> bytes:
    """Section 2.1.1."""
    if not entries:
        return sha3_256(b"").digest()
    if len(entries) == 1:
        return sha3_256(b"\0" + entries[0]).digest()
    k = largest_power_below(len(entries))
    return sha3_256(b"\1" + naive_root(entries[:k]) + naive_root(entries[k:])).digest()


def naive_path(m: int, entries: list[bytes]) -> list[bytes]:
    """Section 2.1.3.1."""
    if len(entries) == 1:
        return []
    k = largest_power_below(len(entries))
    if m < k:
        return [*naive_path(m, entries[:k]), naive_root(entries[k:])]
    return [*naive_path(m - k, entries[k:]), naive_root(entries[:k])]


def largest_power_below(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def entries_of(count: int) -> list[bytes]:
    return [bytes((number % 251,)) * (number % 3) for number in range(count)]


@pytest.mark.parametrize("count", [*range(0, 36), 63, 64, 65, 100])
def test_root_and_proofs(count: int) -> None:
    entries = entries_of(count)
    assert merkle.root(entries) == naive_root(entries)
    for index in range(count):
        proof = merkle.inclusion_proof(entries, index)
        assert proof == naive_path(index, entries)
        assert merkle.root_from_proof(entries[index], index, count, proof) == merkle.root(entries)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 40), st.data())
def test_a_proof_of_anything_else_does_not_hold(count: int, data: st.DataObject) -> None:
    entries = [number.to_bytes(2, "big") for number in range(count)]
    index = data.draw(st.integers(0, count - 1))
    proof = merkle.inclusion_proof(entries, index)
    root = merkle.root(entries)
    assert merkle.root_from_proof(b"other", index, count, proof) != root
    other = data.draw(st.integers(-1, count))
    if other != index:
        assert merkle.root_from_proof(entries[index], other, count, proof) != root
    assert merkle.root_from_proof(entries[index], index, count, [*proof, bytes(32)]) is None
    if proof:
        assert merkle.root_from_proof(entries[index], index, count, proof[:-1]) is None
        changed = data.draw(st.integers(0, len(proof) - 1))
        assert merkle.root_from_proof(entries[index], index, count, [*proof[:changed], bytes(32), *proof[changed + 1 :]]) != root


def test_a_node_is_no_leaf() -> None:
    """Without the two prefixes, a tree of two entries and one of their joined hashes would have one root."""
    left, right = merkle.leaf_hash(b"a"), merkle.leaf_hash(b"b")
    assert merkle.root([left + right]) != merkle.root([b"a", b"b"])


@pytest.mark.parametrize("index", [-1, 3, 100])
def test_there_is_no_proof_of_what_is_not_there(index: int) -> None:
    with pytest.raises(IndexError):
        merkle.inclusion_proof([b"a", b"b", b"c"], index)
