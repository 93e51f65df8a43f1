"""What somebody who can write to a store, and has no key, can make a reader do: little."""

import random
import struct
import tracemalloc
from dataclasses import dataclass

import pytest

from seawall.errors import CorruptError, KeyMissingError, SeawallError
from seawall.testing.memory import MemoryStore
from seawall.vault import codecs, manifest, objects, wraps, zstd_frames
from seawall.vault.header import HEADER_BYTES
from seawall.vault.open import TAIL_GUESS_BYTES, read_frame
from seawall.vault.recipients import KeyringKey
from seawall.vault.sealing import MAX_KEYS_VERSIONS, Sealing, read_sealing, read_wraps, unlock
from seawall.vault.tail import MAX_RECORDS, TRAILER_BYTES
from tests.vault.readers import COPIES, INDEX, OPERATORS, STORE, WRITERS
from tests.vault.sealed import resolve, sealed

HEADER = sealed(b"content")[0][:HEADER_BYTES]
FOLDER = f"runs/{INDEX['run']}/sealings/{COPIES['plain']['sealing']}/"


def test_a_frame_that_declares_more_than_its_chunk_is_not_inflated() -> None:
    frame = zstd_frames.pack_frame(memoryview(bytes(64 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptError, match="impossible size"):
            codecs.unpack(codecs.Codec.ZSTD, memoryview(frame), 1024)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@dataclass
class HugeObject:
    """An object of any length that is zeros but for its header and trailer."""

    length: int
    tail_offset: int
    count: int = 0
    most: int = 0

    def read(self, start: int, length: int) -> bytes:
        self.most = max(self.most, length)
        assert length <= 64 << 20, "a reader asks for all of it"
        if start == 0:
            return HEADER[:length]
        found = bytearray(length)
        if start <= self.tail_offset < start + length - 8:
            found[self.tail_offset - start : self.tail_offset - start + 8] = self.count.to_bytes(8, "big")
        if start + length == self.length:
            found[-TRAILER_BYTES:] = struct.pack(">Q64sQ", 0, bytes(64), self.tail_offset)
        return bytes(found)


@pytest.mark.parametrize("tail_offset", [145, 1 << 20, (1 << 42) - (1 << 26)])
def test_a_trailer_cannot_have_a_whole_object_loaded_as_its_tail(tail_offset: int) -> None:
    huge = HugeObject(1 << 42, tail_offset)
    with pytest.raises(CorruptError, match="its tail would have"):
        read_frame(huge.read, huge.length, resolve, "huge")
    assert huge.most <= TAIL_GUESS_BYTES


@pytest.mark.parametrize("count", [0, 1, MAX_RECORDS + 1, 1 << 63])
def test_the_largest_tail_is_bounded(count: int) -> None:
    huge = HugeObject(1 << 42, (1 << 42) - TRAILER_BYTES - (8 + 36 * MAX_RECORDS + 60), count)
    with pytest.raises(CorruptError):
        read_frame(huge.read, huge.length, resolve, "huge")
    assert huge.most < 8 + 36 * MAX_RECORDS + 60 + 65536


class GreedyStore(MemoryStore):
    """Holds an object that seems to have no end, and notes how much of it was asked for."""

    def __init__(self, endless: str) -> None:
        super().__init__("greedy")
        self.objects.update(STORE)
        self.endless = endless
        self.asked: dict[str, int] = {}

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        if key != self.endless:
            return super().get(key, start, length, version)
        assert length is not None, f"{key} is read to its end, which it has not"
        self.asked[key] = length
        return b"{" * min(length, 1 << 20)


def opened(store: MemoryStore) -> Sealing:
    copy = COPIES["plain"]
    return read_sealing(store, INDEX["run"], bytes.fromhex(copy["sealing"]), copy["manifest"], WRITERS.get)


@pytest.mark.parametrize(
    ("name", "bound"), [("manifest.json", manifest.MAX_BYTES), ("objects.json", objects.MAX_BYTES), ("keys-1.json", wraps.MAX_BYTES)]
)
def test_documents_are_read_to_their_bounds_only(name: str, bound: int) -> None:
    store = GreedyStore(FOLDER + name)
    with pytest.raises(CorruptError):
        read_wraps(opened(store), OPERATORS.get)
    assert store.asked == {FOLDER + name: bound + 1}


def store_with(**added: bytes) -> MemoryStore:
    store = MemoryStore()
    store.objects.update(STORE)
    store.objects.update({FOLDER + name: raw for name, raw in added.items()})
    return store


def test_odd_names_beside_the_keys_are_no_versions() -> None:
    names = (
        "keys-01.json",
        "keys-.json",
        "keys-x.json",
        "keys-0.json",
        "keys--1.json",
        "keys-1.json.bak",
        "keys-\u0663.json",
        "keys-" + "9" * 300 + ".json",
    )
    store = store_with(**dict.fromkeys(names, b"garbage"))
    assert [wrapped.version for wrapped in read_wraps(opened(store), OPERATORS.get)] == [1]


def test_versions_of_the_keys_are_bounded() -> None:
    store = store_with(**{f"keys-{number}.json": b"" for number in range(2, MAX_KEYS_VERSIONS + 2)})
    usual = KeyringKey(bytes.fromhex(INDEX["keyrings"]["usual"]))
    assert unlock(opened(store), [usual], OPERATORS.get), "the committed version opens, so nothing is listed"
    with pytest.raises(CorruptError, match="too many versions"):
        unlock(opened(store), [KeyringKey(bytes(32))], OPERATORS.get)


def test_junk_beside_the_keys_does_not_keep_a_copy_from_being_opened() -> None:
    store = store_with(**{"keys-2.json": b"junk", "keys-77.json": random.Random(1).randbytes(500)})
    usual = KeyringKey(bytes.fromhex(INDEX["keyrings"]["usual"]))
    assert unlock(opened(store), [usual], OPERATORS.get) == bytes.fromhex(COPIES["plain"]["data_key"])
    with pytest.raises(SeawallError):
        read_wraps(opened(store), OPERATORS.get)
    with pytest.raises((CorruptError, KeyMissingError)):
        unlock(opened(store), [KeyringKey(bytes(32))], OPERATORS.get)
