"""Bytes that are not what was signed and have the checksum that was: CRC-64 is linear, so whoever chooses bytes chooses it too."""

from seawall.kernels.crc64 import crc64

WINDOW = 8
"""Bytes that are given up to make the checksum come out: as many as it has."""


def with_crc_kept(raw: bytes, flip_at: int, window_at: int) -> bytes:
    """``raw`` with one bit flipped at ``flip_at``, and the eight bytes at ``window_at`` chosen so that its CRC-64/NVME stays."""
    wanted = crc64(raw)
    forged = bytearray(raw)
    forged[flip_at] ^= 1
    base = crc64(forged)
    # Each bit of the window changes the checksum by a fixed pattern, whatever the other bits are: 64 equations over GF(2).
    rows = []
    for bit in range(8 * WINDOW):
        forged[window_at + bit // 8] ^= 1 << bit % 8
        rows.append((crc64(forged) ^ base, 1 << bit))
        forged[window_at + bit // 8] ^= 1 << bit % 8
    pivots: dict[int, tuple[int, int]] = {}
    for effect, mask in rows:
        effect, mask = _reduced(effect, mask, pivots)
        if effect:
            pivots[effect.bit_length()] = (effect, mask)
    left, mask = _reduced(wanted ^ base, 0, pivots)
    assert left == 0, "eight bytes reach every checksum"
    for bit in range(8 * WINDOW):
        if mask >> bit & 1:
            forged[window_at + bit // 8] ^= 1 << bit % 8
    return bytes(forged)


def _reduced(effect: int, mask: int, pivots: dict[int, tuple[int, int]]) -> tuple[int, int]:
    while effect and effect.bit_length() in pivots:
        other, other_mask = pivots[effect.bit_length()]
        effect, mask = effect ^ other, mask ^ other_mask
    return effect, mask
