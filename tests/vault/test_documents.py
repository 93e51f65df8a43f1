"""Every document of a sealing is read back as it was written, whatever its names; and one content has one form."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.errors import CorruptError, TrustError
from seawall.vault import canonical
from seawall.vault.batch import Batch, SealedFile, decode_batch
from seawall.vault.identity import sealing_id
from seawall.vault.inventory import Inventory, InventoryFile, decode_inventory
from seawall.vault.manifest import Manifest, parse_manifest
from seawall.vault.names import check_tree, checked_name, posix_bytes
from seawall.vault.objects import ObjectsTable, Row, decode_objects
from seawall.vault.plan import Folder, Link, Plan, PlannedFile, Pointer, decode_plan
from seawall.vault.receipt import Receipt, parse_receipt
from seawall.vault.tensors import TensorPiece, TensorRecord
from tests.log.actors import KEYS
from tests.vault.sealed import resolve

QUICK = settings(max_examples=40, deadline=None)
NUMBERS = st.integers(0, canonical.MAX_NUMBER)
DIGESTS = st.binary(min_size=32, max_size=32)
IDS = st.binary(min_size=16, max_size=16)
CRCS = st.integers(0, (1 << 64) - 1)
TIMES = st.datetimes(min_value=datetime(1000, 1, 1)).map(lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z")  # noqa: DTZ001  # hypothesis wants it naive
# As the operating system gives them: any bytes but NUL and the slash, decoded with surrogateescape.
PARTS = st.binary(min_size=1, max_size=20).map(lambda raw: raw.replace(b"\0", b"_").replace(b"/", b"_").decode("utf-8", "surrogateescape"))
NAMES = st.lists(PARTS.filter(lambda part: part not in (".", "..")), min_size=1, max_size=3).map("/".join)
TEXTS = PARTS
MODES = st.integers(0, 0o7777)
IDENTITIES = st.builds("{}:{}:{}".format, st.integers(-(2**63), 2**63 - 1), NUMBERS, NUMBERS)
ROWS = st.builds(Row, st.just("file-0.sea"), NUMBERS, DIGESTS, CRCS, DIGESTS)
PIECES = st.builds(
    TensorPiece,
    st.just(0),
    NUMBERS,
    st.none() | NUMBERS,
    st.lists(NUMBERS, max_size=3).map(tuple),
    st.lists(NUMBERS, max_size=3).map(tuple),
    st.none() | CRCS,
)
TENSORS = st.lists(
    st.builds(
        TensorRecord,
        st.text("ab\udc80é", max_size=5),
        st.text("F32", max_size=3),
        st.lists(NUMBERS, max_size=3).map(tuple),
        st.lists(PIECES, max_size=2).map(tuple),
    ),
    max_size=3,
).map(tuple)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    """Names of files, folders, links and a pointer that can lie beside each other."""
    names = draw(st.lists(NAMES, min_size=1, max_size=8, unique=True))
    chosen: list[str] = []
    for name in names:
        below = any(other.startswith(name + "/") or name.startswith(other + "/") or name == other for other in chosen)
        if not below:
            chosen.append(name)
    files, rest = chosen[:1] + chosen[3:], chosen[1:3]
    folders = tuple(Folder(name, draw(MODES)) for name in rest[:1])
    links = tuple(Link(name, draw(NAMES)) for name in rest[1:2])
    pointer = draw(st.none() | st.builds(Pointer, st.just(files[0]), TEXTS))
    return {"names": files, "folders": folders, "links": links, "pointer": pointer}


@QUICK
@given(trees(), TENSORS, st.data())
def test_plans(tree: dict[str, Any], tensors: tuple[TensorRecord, ...], data: st.DataObject) -> None:
    step, epoch, mark, attempt = data.draw(NUMBERS), data.draw(NUMBERS), data.draw(DIGESTS), data.draw(st.integers(0, 2**32 - 1))
    batches = data.draw(st.integers(1, 3))
    files = tuple(
        PlannedFile(name, data.draw(NUMBERS), data.draw(MODES), data.draw(IDENTITIES), data.draw(st.integers(0, batches - 1)))
        for name in tree["names"]
    )
    plan = Plan(
        run="gpt",
        sealing=sealing_id("gpt", epoch, step, mark, attempt),
        step=step,
        epoch=epoch,
        attempt=attempt,
        mark_digest=mark,
        layout="dcp",
        world_size=data.draw(st.none() | NUMBERS),
        commit_mark=data.draw(st.none() | NAMES),
        codec=data.draw(st.integers(0, 255)),
        saved_at=data.draw(TIMES),
        files=files,
        folders=tree["folders"],
        links=tree["links"],
        pointer=tree["pointer"],
        tensors=tensors,
        batches=batches,
    )
    assert decode_plan(plan.encode(), "plan") == plan
    assert sorted(number for batch in range(batches) for number in plan.numbers_of(batch)) == list(range(len(files)))
    with pytest.raises(CorruptError, match="not that of its checkpoint"):
        decode_plan(replace(plan, mark_digest=bytes(32), attempt=(attempt + 1) % 2**32).encode(), "plan")


@QUICK
@given(trees(), TENSORS, st.data())
def test_inventories(tree: dict[str, Any], tensors: tuple[TensorRecord, ...], data: st.DataObject) -> None:
    inventory = Inventory(
        run="gpt",
        sealing=data.draw(IDS),
        step=data.draw(NUMBERS),
        layout="dcp",
        world_size=data.draw(st.none() | NUMBERS),
        commit_mark=data.draw(st.none() | NAMES),
        files=tuple(
            InventoryFile(name, data.draw(NUMBERS), data.draw(MODES), data.draw(IDENTITIES), data.draw(DIGESTS)) for name in tree["names"]
        ),
        folders=tree["folders"],
        links=tree["links"],
        pointer=tree["pointer"],
        tensors=tensors,
        notes=data.draw(st.dictionaries(TEXTS, TEXTS, max_size=3)),
    )
    raw = inventory.encode()
    assert decode_inventory(raw, "inventory") == inventory
    assert raw.isascii()


@QUICK
@given(
    IDS,
    NUMBERS,
    st.lists(st.builds(SealedFile, st.just(0), ROWS, DIGESTS, st.lists(CRCS, max_size=3).map(tuple)), max_size=1),
    st.dictionaries(TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=2), max_size=2),
)
def test_batches(sealing: bytes, number: int, files: list[SealedFile], versions: dict[str, dict[str, str]]) -> None:
    batch = Batch(sealing, number, tuple(files), versions)
    assert decode_batch(batch.encode(), "batch") == batch


@QUICK
@given(IDS, st.integers(0, 5), st.integers(0, 3), ROWS)
def test_objects_tables(sealing: bytes, files: int, batches: int, row: Row) -> None:
    names = [f"file-{n}.sea" for n in range(files)] + [f"batch-{n}.sea" for n in range(batches)] + ["inventory.sea", "plan.sea"]
    table = ObjectsTable(sealing, tuple(replace(row, name=name) for name in names))
    assert decode_objects(table.encode(), sealing, "objects") == table
    assert table.files == files
    with pytest.raises(CorruptError, match="another sealing"):
        decode_objects(table.encode(), bytes(reversed(sealing)) if sealing != sealing[::-1] else bytes(15) + b"x", "objects")


def test_more_than_ten_files_are_in_the_order_of_their_numbers() -> None:
    row = Row("", 1, bytes(32), 1, bytes(32))
    names = [f"file-{n}.sea" for n in range(12)] + ["inventory.sea", "plan.sea"]
    table = ObjectsTable(bytes(16), tuple(replace(row, name=name) for name in names))
    assert decode_objects(table.encode(), bytes(16), "objects") == table
    with pytest.raises(CorruptError, match="out of their order"):
        decode_objects(ObjectsTable(bytes(16), tuple(sorted(table.rows, key=lambda row: row.name))).encode(), bytes(16), "objects")


@QUICK
@given(st.data())
def test_manifests(data: st.DataObject) -> None:
    numbers = [data.draw(NUMBERS) for _ in range(6)]
    digests = [data.draw(DIGESTS) for _ in range(4)]
    base = data.draw(st.none() | DIGESTS.map(bytes.hex))
    manifest = Manifest("gpt", data.draw(IDS), *numbers[:3], data.draw(TIMES), *numbers[3:], *digests, base)
    assert parse_manifest(manifest.sign(KEYS.writer), resolve, "manifest") == manifest
    with pytest.raises(TrustError):
        parse_manifest(manifest.sign(KEYS.verifier), resolve, "manifest")


@QUICK
@given(IDS, NUMBERS, st.none() | TIMES, st.none() | TIMES, st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_receipts(sealing: bytes, sequence: int, server_time: str | None, locked_until: str | None, versions: dict[str, str]) -> None:
    receipt = Receipt("gpt", sealing, "00" * 32, "ab" * 16, sequence, server_time, locked_until, versions)
    assert parse_receipt(receipt.sign(KEYS.writer), resolve, "receipt") == receipt
    with pytest.raises(TrustError):
        parse_receipt(receipt.sign(KEYS.coordinator), resolve, "receipt")


@QUICK
@given(NAMES)
def test_names_stand_for_their_bytes(name: str) -> None:
    assert checked_name(name, "") == name
    assert posix_bytes(name).decode("utf-8", "surrogateescape") == name


@pytest.mark.parametrize(
    "name", ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "./a", "a\0b", "n" * 256, "é" * 128, "a/" * 2048 + "a", "\udcc3\udca9"]
)
def test_names_that_no_restore_may_create(name: str) -> None:
    with pytest.raises(CorruptError):
        checked_name(name, "")


@pytest.mark.parametrize(
    ("files", "folders", "links", "pointer"),
    [
        (["a", "a"], [], [], None),
        (["a"], ["a"], [], None),
        (["a"], [], ["a"], None),
        ([], ["a"], ["a"], None),
        ([], ["a", "a"], [], None),
        (["a", "a/b"], [], [], None),
        (["a/b/c"], [], ["a"], None),
        (["l/x"], [], ["l"], None),
        ([], ["l/x"], ["l"], None),
        ([], [], ["l", "l/m"], None),
        ([], [], ["l"], "l/latest"),
        ([], [], ["latest"], "latest"),
        ([], ["latest"], [], "latest"),
        (["latest/a"], [], [], "latest"),
    ],
)
def test_entries_that_cannot_lie_beside_each_other(files: list[str], folders: list[str], links: list[str], pointer: str | None) -> None:
    with pytest.raises(CorruptError):
        check_tree(files, folders, links, pointer, "")


def test_entries_that_can() -> None:
    check_tree(["a", "b/a", "b/c/d", "ab"], ["c", "b/e"], ["l", "b/l"], "a", "")
    check_tree([], [], [], None, "")
    check_tree(["a"], [], [], "latest", "")
