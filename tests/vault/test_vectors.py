"""Every vector through every reader: no reader accepts what another refuses, but for what the specification lists."""

from hashlib import sha256
from pathlib import Path

import pytest

from seawall.errors import SeawallError
from tests.vault.readers import COPIES, FOLDER, INDEX, READERS, VECTORS, CheckFailedError, Copy, contents, outcome_of, readable_records
from tests.vectors import generate


def said(reader: str, copy: Copy, expected: str) -> str:
    try:
        READERS[reader](copy)
    except CheckFailedError:
        # A failed level names damage, not a class of error.
        return expected if expected != "ok" else "corrupt"
    except SeawallError as error:
        assert error.where, f"{type(error).__name__} does not say where: {error}"
        return outcome_of(error)
    return "ok"


@pytest.mark.parametrize("name", list(VECTORS))
def test_every_reader_says_what_it_must(name: str) -> None:
    vector = VECTORS[name]
    expected = {reader: vector.get("readers", {}).get(reader, vector["expect"]) for reader in READERS}
    expected = {reader: word for reader, word in expected.items() if word}
    assert {reader: said(reader, Copy.of(vector), word) for reader, word in expected.items()} == expected


@pytest.mark.parametrize("name", [name for name, vector in VECTORS.items() if "readable" in vector])
def test_the_other_records_can_still_be_read(name: str) -> None:
    assert list(readable_records(Copy.of(VECTORS[name]))) == VECTORS[name]["readable"]


@pytest.mark.parametrize("name", list(COPIES))
def test_good_copies_give_their_files_back(name: str) -> None:
    described = COPIES[name]
    copy = Copy.of({**described, "copy": name, "replaced": [], "removed": [], "keyring": "usual", "object": ""})
    for name, reader in READERS.items():
        if name != "alone":
            reader(copy)
    expected = {file["name"]: (file["size"], file["sha256"]) for file in described["files"]}
    assert {name: (len(content), sha256(content).hexdigest()) for name, content in contents(copy).items()} == expected


def test_every_outcome_and_every_object_occurs() -> None:
    assert {vector["expect"] for vector in VECTORS.values()} == {"ok", "corrupt", "unsupported", "trust", "key"}
    touched = {name for vector in VECTORS.values() for name in vector["replaced"]}
    assert {
        "plan.sea",
        "batch-1.sea",
        "inventory.sea",
        "file-0.sea",
        "file-5.sea",
        "keys-1.json",
        "objects.json",
        "manifest.json",
    } <= touched


def test_only_listed_readers_differ() -> None:
    """The table of exceptions in the specification: nobody but these accepts what others refuse."""
    assert {reader for vector in VECTORS.values() for reader, word in vector.get("readers", {}).items() if word == "ok"} <= set(READERS)
    for vector in VECTORS.values():
        lenient = {reader for reader, word in vector.get("readers", {}).items() if word == "ok"}
        if vector["expect"] == "ok" or "scrub" in lenient:
            continue
        assert "check" not in lenient, f"{vector['name']}: a full check accepts what a scrub refuses"


def test_the_generator_writes_what_is_committed(tmp_path: Path) -> None:
    """Zstandard promises no bytes from one version to the next, so frames are compared only where none differs."""
    written = generate.files()
    there = {str(path.relative_to(FOLDER)) for name in ("store", "bad") for path in (FOLDER / name).rglob("*") if path.is_file()}
    assert there | {"index.json", "documents.json", "recovery_wraps.json", "casts.json"} == set(written)
    import zstandard

    if tuple(INDEX["zstd"]) != zstandard.ZSTD_VERSION:
        pytest.skip(f"the vectors were packed by zstd {INDEX['zstd']}, this is {zstandard.ZSTD_VERSION}")
    different = [name for name, raw in written.items() if (FOLDER / name).read_bytes() != raw]
    assert different == [], "run python -m tests.vectors.generate, and look at what changed"


def test_the_vectors_stay_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 2 << 20
