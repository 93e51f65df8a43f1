"""The checks that are not linear, and so are made again for every error: a sealing's leaf digest and its authentication tag."""

import random
from hashlib import sha256

from seawall.drills.flip_patterns import Flips
from seawall.drills.linear_check import flip
from seawall.vault.records import OVERHEAD_BYTES, ObjectKeys, RecordCipher


class SealedRecords:
    """Two records of a sealed object, one behind the other, as docs/spec/format-1.md makes them, from a seed."""

    def __init__(self, chunk_bytes: int, seed: int) -> None:
        """``chunk_bytes`` of plaintext in each."""
        noise = random.Random(seed)
        self._cipher = RecordCipher(ObjectKeys(noise.randbytes(32), noise.randbytes(32), noise.randbytes(32)))
        self._records = [bytearray(chunk_bytes + OVERHEAD_BYTES) for _ in range(2)]
        for number, record in enumerate(self._records):
            self._cipher.seal_into(number, number == 1, bytes(1) + noise.randbytes(chunk_bytes), memoryview(record))
        self._leaves = [sha256(record).digest() for record in self._records]
        self._plaintext = memoryview(bytearray(chunk_bytes + OVERHEAD_BYTES))

    @property
    def record_bits(self) -> int:
        """Of the stored record: codec byte, chunk and tag."""
        return len(self._records[0]) * 8

    def missed(self, flips: Flips) -> tuple[int, int]:
        """How many errors the leaf digests do not notice, and how many the tags do not."""
        by_leaf = by_tag = 0
        for trial in range(flips.trials):
            same_leaf = opens = True
            for number, positions in enumerate(flips.of_trial(trial)):
                record = self._records[number]
                flip(record, positions)
                same_leaf = same_leaf and sha256(record).digest() == self._leaves[number]
                opens = opens and self._cipher.open_into(number, number == 1, memoryview(record), self._plaintext) is not None
                flip(record, positions)
            by_leaf += same_leaf
            by_tag += opens
        return by_leaf, by_tag
