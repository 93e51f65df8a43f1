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


@pytest.mark.parametrize("count", [*range(0, 36), 63, 64, 65, 100, 257])
def test_a_kept_tree_is_the_same_tree(count: int) -> None:
    entries = entries_of(count)
    tree = merkle.Tree(entries)
    assert len(tree) == count and tree.root == naive_root(entries)
    assert [tree.proof(index) for index in range(count)] == [naive_path(index, entries) for index in range(count)]
    groups = [naive_root(entries[start : start + merkle.GROUP]) for start in range(0, count, merkle.GROUP)]
    assert tree.group_roots() == groups
    assert merkle.root_of_groups(groups) == naive_root(entries)


@given(st.integers(1, 300), st.data())
@settings(max_examples=100, deadline=None)
def test_a_change_rehashes_its_own_path_only(count: int, data: st.DataObject) -> None:
    entries = [number.to_bytes(2, "big") for number in range(count)]
    tree = merkle.Tree(entries)
    for _ in range(3):
        index = data.draw(st.integers(0, count - 1))
        before = tree.group_roots()
        entries[index] = data.draw(st.binary(max_size=8))
        assert tree.replace(index, entries[index]) <= (count - 1).bit_length()
        assert tree.root == naive_root(entries)
        changed = [number for number, (old, new) in enumerate(zip(before, tree.group_roots(), strict=True)) if old != new]
        assert set(changed) <= {index // merkle.GROUP}
    with pytest.raises(IndexError):
        tree.replace(count, b"")


def test_a_groups_part_of_a_proof_comes_first_and_is_at_most_five_hashes_deep() -> None:
    """16 ranks, then all groups: who has the group's root needs four hashes."""
    entries = entries_of(160)
    tree = merkle.Tree(entries)
    for index in (0, 15, 16, 159):
        path = tree.proof(index)
        inside, group = path[:4], index // merkle.GROUP
        root = merkle.root_from_proof(entries[index], index % merkle.GROUP, merkle.GROUP, inside)
        assert root == tree.group_roots()[group]
        assert 1 + len(inside) == 5, "with the hash of the leaf"
