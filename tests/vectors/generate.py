"""Writes the vectors of sealings: ``python -m tests.vectors.generate``. The same bytes each time; the log's are made by tests/log.

``store/`` is a good store as it lies on a disk. ``bad/<name>/`` holds what one vector has instead of it in one sealing's folder.
``index.json`` says what was done to each and what every reader must say. Some vectors are good: what looks odd and must be read.
"""

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import zstandard

from tests.log.actors import KEYS, RUN
from tests.vectors import bad_bytes, bad_documents, bad_planes, bad_signed, casts, other_documents
from tests.vectors.copies import FOLDER, KEYRING, RECOVERY, RECOVERY_WRAPS, STRANGE_KEYRING, USED_WRAPS, SealedCopy
from tests.vectors.store import GoodStore, good_store
from tests.vectors.vector import READERS, Vector


def vectors(good: GoodStore) -> Iterator[Vector]:
    """All of them."""
    plain, zstd = good.copies["plain"], good.copies["zstd"]
    yield from bad_bytes.bad_bytes(plain)
    yield from bad_signed.bad_signed(plain)
    yield from bad_signed.bad_frames(zstd)
    yield from bad_documents.bad_manifests(plain, zstd)
    yield from bad_documents.bad_tables(plain)
    yield from bad_documents.bad_keys(plain)
    yield from bad_documents.bad_inventories(plain)
    yield from bad_documents.bad_plans(plain)
    yield from bad_planes.bad_planes(good.copies["planes"])


def describe(good: GoodStore, made: list[Vector]) -> dict[str, Any]:
    """The index."""
    return {
        "run": RUN,
        "about": "docs/spec/format-1.md section 15",
        "trust_root": KEYS.root.public.text(),
        "writers": {KEYS.writer.key_id: KEYS.writer.public.raw.hex()},
        "operators": {KEYS.operator.key_id: KEYS.operator.public.raw.hex()},
        "verifiers": {key.key_id: key.public.raw.hex() for key in (KEYS.verifier, KEYS.second_verifier)},
        "keyrings": {"usual": KEYRING.key.hex(), "stranger": STRANGE_KEYRING.key.hex()},
        "recovery_key": RECOVERY.seeds.hex(),
        "store": good.id,
        "zstd": list(zstandard.ZSTD_VERSION),
        "copies": [_copy(copy) for copy in good.copies.values()],
        "vectors": [_vector(vector) for vector in made],
    }


def _copy(copy: SealedCopy) -> dict[str, Any]:
    files = [{"name": name, "size": len(content), "sha256": sha256(content).hexdigest()} for name, content in copy.contents.items()]
    return {
        "name": copy.name,
        "sealing": copy.sealing.hex(),
        "manifest": copy.manifest_digest,
        "data_key": copy.data_key.hex(),
        "files": files,
    }


def _vector(vector: Vector) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": vector.name,
        "copy": vector.base.name,
        "done": vector.done,
        "expect": vector.expect,
        "object": vector.object,
        "replaced": sorted(name for name, raw in vector.objects.items() if raw is not None),
        "removed": sorted(name for name, raw in vector.objects.items() if raw is None),
        "manifest": vector.manifest or vector.base.manifest_digest,
        "keyring": vector.keyring,
    }
    others = {reader: vector.outcome(reader) for reader in READERS if vector.outcome(reader) != vector.expect}
    if others:
        described["readers"] = others
    if vector.readable is not None:
        described["readable"] = list(vector.readable)
    return described


def files() -> dict[str, bytes]:
    """Everything below this folder that the generator writes."""
    USED_WRAPS.clear()
    good = good_store()
    made = list(vectors(good))
    assert len({vector.name for vector in made}) == len(made), "two vectors have one name"
    written = {f"store/{key}": raw for key, raw in good.store.objects.items()}
    for vector in made:
        written.update({f"bad/{vector.name}/{name}": raw for name, raw in vector.objects.items() if raw is not None})
    index = json.dumps(describe(good, made), indent=1, ensure_ascii=True)
    plain = good.copies["plain"]
    documents = {
        "receipts": list(other_documents.receipts(plain)),
        "proofs": list(other_documents.chains(plain)),
        "store": other_documents.STORE,
    }
    others = json.dumps(documents, indent=1, ensure_ascii=True)
    wraps = json.dumps({label: RECOVERY_WRAPS[label] for label in USED_WRAPS}, indent=1, sort_keys=True)
    written["recovery_wraps.json"] = wraps.encode() + b"\n"
    written["casts.json"] = casts.encoded()
    return {**written, "index.json": index.encode() + b"\n", "documents.json": others.encode() + b"\n"}


def main(folder: Path = FOLDER) -> None:
    for name in ("store", "bad"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name, raw in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


if __name__ == "__main__":
    main()
