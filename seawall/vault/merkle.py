"""Merkle trees of RFC 9162 section 2.1 over SHA3-256 (FIPS 202): leaves H(0x00 ‖ entry), nodes H(0x01 ‖ left ‖ right)."""

from collections.abc import Sequence
from hashlib import sha3_256

EMPTY_ROOT = sha3_256(b"").digest()


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
