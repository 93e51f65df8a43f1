"""Merkle trees of RFC 9162 section 2.1 over SHA3-256 (FIPS 202): leaves H(0x00 ‖ entry), nodes H(0x01 ‖ left ‖ right)."""

from collections.abc import Sequence
from hashlib import sha3_256

EMPTY_ROOT = sha3_256(b"").digest()
GROUP = 16
"""Leaves of a group's own subtree: the files of the 16 ranks of two nodes. Its depth is 4, 5 with the hash of the leaf."""


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one entry as a leaf."""
    return sha3_256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return sha3_256(b"\1" + left + right).digest()


def root(entries: Sequence[bytes]) -> bytes:
    """The root over all entries, in order.

    Built level by level: an odd node at the end of a level moves up unchanged, which gives the same tree as the
    recursive split at the largest power of two.
    """
    level = [leaf_hash(entry) for entry in entries]
    if not level:
        return EMPTY_ROOT
    while len(level) > 1:
        paired = [node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        if len(level) % 2:
            paired.append(level[-1])
        level = paired
    return level[0]


def inclusion_proof(entries: Sequence[bytes], index: int) -> list[bytes]:
    """The sibling hashes from leaf ``index`` up to the root (RFC 9162 section 2.1.3.1)."""
    if not 0 <= index < len(entries):
        raise IndexError(index)
    level = [leaf_hash(entry) for entry in entries]
    proof = []
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            proof.append(level[sibling])
        paired = [node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        if len(level) % 2:
            paired.append(level[-1])
        level, index = paired, index // 2
    return proof


def root_from_proof(entry: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """The root that ``proof`` leads to (RFC 9162 section 2.1.3.2), or None when it has the wrong length for its place."""
    if not 0 <= index < size:
        return None
    node, last, position = leaf_hash(entry), size - 1, index
    siblings = iter(proof)
    while last:
        if position % 2 or position < last:
            sibling = next(siblings, None)
            if sibling is None:
                return None
            node = node_hash(sibling, node) if position % 2 else node_hash(node, sibling)
        position, last = position // 2, last // 2
    return node if next(siblings, None) is None else None


class Tree:
    """A tree that is kept: a leaf that changes re-hashes the nodes above it and no others, and a group of 16 has a root of its own.

    An aligned run of 16 leaves is a subtree of the RFC 9162 tree, so the roots of the groups, hashed on, give the same root as all leaves,
    and the group's part of an inclusion proof is its first four hashes.
    """

    def __init__(self, entries: Sequence[bytes]) -> None:
        self._levels = [[leaf_hash(entry) for entry in entries]]
        while len(self._levels[-1]) > 1:
            below = self._levels[-1]
            self._levels.append([self._above(below, index) for index in range(-(-len(below) // 2))])

    @staticmethod
    def _above(below: Sequence[bytes], index: int) -> bytes:
        return node_hash(below[2 * index], below[2 * index + 1]) if 2 * index + 1 < len(below) else below[2 * index]

    def __len__(self) -> int:
        return len(self._levels[0])

    @property
    def root(self) -> bytes:
        """The same as :func:`root` over the entries."""
        return self._levels[-1][0] if self._levels[0] else EMPTY_ROOT

    def group_roots(self) -> list[bytes]:
        """The root of each group of :data:`GROUP` leaves; the last group may be smaller."""
        depth = GROUP.bit_length() - 1
        return list(self._levels[min(depth, len(self._levels) - 1)])

    def replace(self, index: int, entry: bytes) -> int:
        """Another entry at ``index``; how many nodes were hashed again, its own leaf not counted."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        self._levels[0][index] = leaf_hash(entry)
        hashed = 0
        for below, level in zip(self._levels, self._levels[1:], strict=False):
            hashed += 2 * (index // 2) + 1 < len(below)
            index //= 2
            level[index] = self._above(below, index)
        return hashed

    def proof(self, index: int) -> list[bytes]:
        """The same as :func:`inclusion_proof`."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        found = []
        for level in self._levels[:-1]:
            if index ^ 1 < len(level):
                found.append(level[index ^ 1])
            index //= 2
        return found


def root_of_groups(roots: Sequence[bytes]) -> bytes:
    """The root of the whole tree from :meth:`Tree.group_roots`."""
    level = list(roots)
    if not level:
        return EMPTY_ROOT
    while len(level) > 1:
        level = [Tree._above(level, index) for index in range(-(-len(level) // 2))]
    return level[0]
