"""The readers that seawall has, asked in one way: what does each say to a copy? For the vectors."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seawall.errors import CorruptError, FreshnessError, KeyMissingError, NoSuchCopyError, NoSuchObjectError, SeawallError, TrustError
from seawall.stores.part_buffers import PartBuffers
from seawall.testing.memory import MemoryStore
from seawall.vault.batch import decode_batch
from seawall.vault.header import UnsupportedFormatError
from seawall.vault.open import Opener, open_bytes, read_frame, scrub
from seawall.vault.plaintext import plaintext_of, read_range
from seawall.vault.plan import decode_plan
from seawall.vault.rebuild import rebuild_files
from seawall.vault.recipients import KeyringKey
from seawall.vault.sealing import Sealing, read_inventory, read_sealing, read_whole, read_wraps, unlock
from seawall.vault.signing import PublicKey
from seawall.verify.check import FAILED, Unlocked, check_copy
from seawall.verify.levels import Level

FOLDER = Path(__file__).parent.parent / "vectors"
INDEX: dict[str, Any] = json.loads((FOLDER / "index.json").read_text())
STORE = {str(path.relative_to(FOLDER / "store")): path.read_bytes() for path in sorted((FOLDER / "store").rglob("*.*")) if path.is_file()}
COPIES: dict[str, dict[str, Any]] = {copy["name"]: copy for copy in INDEX["copies"]}
VECTORS: dict[str, dict[str, Any]] = {vector["name"]: vector for vector in INDEX["vectors"]}
PIECE = 700
"""Bytes of a range: less than a record, so that ranges begin and end inside them."""


def keys_of(field: str) -> dict[str, PublicKey]:
    return {key_id: PublicKey(bytes.fromhex(raw)) for key_id, raw in INDEX[field].items()}


WRITERS, OPERATORS = keys_of("writers"), keys_of("operators")


def outcome_of(error: SeawallError) -> str:
    """The word of the specification for an error."""
    kinds = (
        (UnsupportedFormatError, "unsupported"),
        (CorruptError, "corrupt"),
        (FreshnessError, "freshness"),
        (TrustError, "trust"),
        (KeyMissingError, "key"),
        # What a copy lacks is damage of the copy.
        (NoSuchObjectError, "corrupt"),
        (NoSuchCopyError, "corrupt"),
    )
    return next(word for kind, word in kinds if isinstance(error, kind))


@dataclass
class Copy:
    """One vector's copy, in a store of its own."""

    store: MemoryStore
    sealing: bytes
    manifest: str
    keyring: KeyringKey
    object: str
    data_key: bytes

    @classmethod
    def of(cls, vector: dict[str, Any]) -> "Copy":
        base = COPIES[vector["copy"]]
        store = MemoryStore("vector")
        store.objects.update(STORE)
        folder = f"runs/{INDEX['run']}/sealings/{base['sealing']}/"
        for name in vector["replaced"]:
            store.objects[folder + name] = (FOLDER / "bad" / vector["name"] / name).read_bytes()
        for name in vector["removed"]:
            del store.objects[folder + name]
        keyring = KeyringKey(bytes.fromhex(INDEX["keyrings"][vector["keyring"]]))
        sealing, data_key = bytes.fromhex(base["sealing"]), bytes.fromhex(base["data_key"])
        return cls(store, sealing, vector["manifest"], keyring, vector["object"], data_key)

    def opened(self) -> Sealing:
        return read_sealing(self.store, INDEX["run"], self.sealing, self.manifest, WRITERS.get)

    def unlocked(self, opened: Sealing) -> Unlocked:
        data_key = unlock(opened, [self.keyring], OPERATORS.get)
        return Unlocked(data_key, read_inventory(opened, data_key))

    def raw(self) -> bytes:
        return self.store.objects[f"runs/{INDEX['run']}/sealings/{self.sealing.hex()}/{self.object}"]


def alone(copy: Copy) -> None:
    """The object by itself, as a tool reads it that has nothing else."""
    open_bytes(copy.raw(), copy.data_key, WRITERS.get, copy.object)


def _sealed_document(copy: Copy, opened: Sealing, data_key: bytes) -> Opener | None:
    """Plan and batches are read by who joins a sealing, not by who restores it."""
    if not copy.object.startswith(("plan", "batch")):
        return None
    row = opened.table.row(copy.object)
    assert row is not None
    raw = read_whole(opened.store, opened.key_of(row), row.length)
    opened.frame_of(row, raw)
    plaintext, opener = open_bytes(raw, data_key, opened.writers, copy.object)
    (decode_plan if copy.object == "plan.sea" else decode_batch)(plaintext, copy.object)
    return opener


def stream(copy: Copy) -> None:
    """Every file from its first byte to its last."""
    opened = copy.opened()
    unlocked = copy.unlocked(opened)
    rebuild_files(opened, unlocked.inventory, range(len(unlocked.inventory.files)), unlocked.data_key, None, transfers=2)
    _sealed_document(copy, opened, unlocked.data_key)


def ranges(copy: Copy) -> None:
    """Every file in pieces, each read alone."""
    opened = copy.opened()
    unlocked = copy.unlocked(opened)
    for number, file in enumerate(unlocked.inventory.files):
        for at in range(0, max(file.size, 1), PIECE):
            pieces = read_range(opened, unlocked.inventory, number, unlocked.data_key, at, PIECE)
            assert sum(map(len, pieces)) == min(PIECE, file.size - at)
    _sealed_document(copy, opened, unlocked.data_key)


def keyless(copy: Copy) -> None:
    """Every stored byte, with public keys alone."""
    opened = copy.opened()
    read_wraps(opened, OPERATORS.get)
    for row in opened.table.rows:
        raw = memoryview(opened.store.get(opened.key_of(row)))
        frame = opened.frame_of(row, bytes(raw))
        damaged = scrub(frame, lambda start, length, raw=raw: raw[start : start + length])  # type: ignore[misc]
        if damaged:
            raise CorruptError("records are damaged", where=row.name, why=str(damaged))


def check(copy: Copy) -> None:
    """What `seawall verify` does, up to L3. A finding has no class, so it counts as the class that is expected."""
    findings = check_copy(
        copy.store, INDEX["run"], copy.sealing, copy.manifest, WRITERS.get, OPERATORS.get, Level.L3, unlock=copy.unlocked, transfers=2
    )
    if findings[-1].result == FAILED:
        assert findings[-1].damages
        raise CheckFailedError(str(findings[-1]))
    assert findings[-1].level == Level.L3


class CheckFailedError(Exception):
    """A level failed."""


READERS = {"alone": alone, "stream": stream, "range": ranges, "scrub": keyless, "check": check}


def readable_records(copy: Copy) -> Iterator[int]:
    """Records of the object that can still be read, each alone."""
    raw = copy.raw()
    frame = read_frame(lambda start, length: raw[start : start + length], len(raw), WRITERS.get, copy.object)
    opener = Opener(frame, copy.data_key)

    def read_into(start: int, buffer: memoryview) -> int:
        piece = raw[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)

    for number in range(len(frame.leaves)):
        try:
            list(opener.read_range(number * frame.header.chunk_bytes, frame.header.chunk_bytes, read_into))
        except CorruptError:
            continue
        yield number


def contents(copy: Copy) -> dict[str, bytes]:
    """Every file of a copy by name."""
    opened = copy.opened()
    unlocked = copy.unlocked(opened)
    with ThreadPoolExecutor(2) as pool:
        buffers = PartBuffers(1 << 20)
        return {
            file.name: b"".join(map(bytes, plaintext_of(opened, unlocked.inventory, number, unlocked.data_key, pool, buffers)))
            for number, file in enumerate(unlocked.inventory.files)
        }
