"""Rebuilding on disk: every kind of entry comes back, and nothing is written where it should not be."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from seawall.errors import CorruptError, SeawallError
from seawall.testing.memory import MemoryStore
from seawall.vault.codecs import Codec
from seawall.vault.inventory import Inventory
from seawall.vault.names import posix_bytes
from seawall.vault.plan import Folder, Link, Pointer
from seawall.vault.rebuild import finish_tree, rebuild_files
from seawall.vault.sealing import Sealing, read_sealing
from tests.log.actors import KEYS, RUN
from tests.vectors.copies import SealedCopy, folder_of, noise, plain, seal_copy


def opened(copy: SealedCopy) -> Sealing:
    store = MemoryStore()
    store.objects.update({folder_of(copy) + name: raw for name, raw in copy.objects.items()})
    return read_sealing(store, RUN, copy.sealing, copy.manifest_digest, lambda key_id: KEYS.writer.public)


def rebuilt(copy: SealedCopy, tree: Path) -> None:
    rebuild_files(opened(copy), copy.inventory, range(len(copy.inventory.files)), copy.data_key, tree, transfers=2)
    finish_tree(tree, copy.inventory)


def test_every_kind_of_entry_comes_back(tmp_path: Path) -> None:
    copy = plain()
    rebuilt(copy, tmp_path)
    found = {os.path.relpath(os.path.join(folder, name), tmp_path) for folder, _, names in os.walk(tmp_path) for name in names}
    assert found == {*copy.contents, "deep/link", "latest"}
    for name, content in copy.contents.items():
        path = os.fsencode(tmp_path) + b"/" + posix_bytes(name)
        with open(path, "rb") as file:
            assert file.read() == content, name
        facts = os.stat(path)
        assert stat.S_IMODE(facts.st_mode) == 0o640
        assert facts.st_mtime_ns == 1767225600000000000
    assert os.readlink(tmp_path / "deep/link") == "../one.bin"
    assert stat.S_IMODE((tmp_path / "empty folder").stat().st_mode) == 0o750
    assert (tmp_path / "latest").read_bytes() == b"step100"
    # Again over what is there: a restore that was killed goes on.
    rebuilt(copy, tmp_path)


def test_a_file_that_looks_like_a_part_of_another_is_kept(tmp_path: Path) -> None:
    contents = {"a": b"first", ".0.seawall-part": b"second", "x.seawall-part-": b"third", ".2.seawall-part--": b"fourth"}
    rebuilt(seal_copy("parts", 1, contents, Codec.NONE, batches=1), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == contents


def test_a_damaged_file_never_has_its_name(tmp_path: Path) -> None:
    copy = seal_copy("damaged", 1, {"a": noise("a", 3000), "b": b"whole"}, Codec.NONE, batches=1)
    sealing = opened(copy)
    key = folder_of(copy) + "file-0.sea"
    raw = bytearray(copy.objects["file-0.sea"])
    raw[2300] ^= 1
    sealing.store.objects[key] = bytes(raw)  # type: ignore[attr-defined]  # a MemoryStore
    with pytest.raises(CorruptError, match="record 2"):
        rebuild_files(sealing, copy.inventory, [1, 0], copy.data_key, tmp_path, transfers=2)
    assert not (tmp_path / "a").exists()


def inventory_with(**fields: object) -> Inventory:
    bare = replace(plain().inventory, files=(), folders=(), links=(), pointer=None, tensors=())
    return replace(bare, **fields)  # type: ignore[arg-type]  # its fields


@pytest.mark.parametrize(
    ("name", "target"),
    [("l", "/etc/passwd"), ("l", ".."), ("l", "../x"), ("a/l", "../../x"), ("a/l", "../.."), ("l", "a/../../x"), ("l", "./../x")],
)
def test_a_link_that_leaves_the_checkpoint_is_refused(tmp_path: Path, name: str, target: str) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(CorruptError, match="leaves it"):
        finish_tree(tmp_path, inventory_with(links=(Link(name, target),)))
    assert not os.path.lexists(tmp_path / name)


def test_links_are_followed_through_each_other(tmp_path: Path) -> None:
    """Each by itself seems to stay inside; the second, through the first, does not."""
    (tmp_path / "p/q").mkdir(parents=True)
    links = (Link("p/q/r", "../.."), Link("m", "p/q/r/../x"))
    with pytest.raises(CorruptError, match="leaves it"):
        finish_tree(tmp_path, inventory_with(links=links))
    inside = (Link("p/q/r", "../.."), Link("m", "p/q/r/p/../y"), Link("loop", "loop"), Link("self", "."))
    finish_tree(tmp_path, inventory_with(links=inside))
    assert {os.readlink(tmp_path / link.name) for link in inside} == {link.target for link in inside}


@pytest.mark.parametrize("name", ["latest", "sub"])
def test_a_pointer_is_not_written_through_a_link(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / name).symlink_to(outside)
    with pytest.raises(SeawallError, match="cannot be written"):
        finish_tree(tree, inventory_with(pointer=Pointer(name, "step1")))
    assert outside.read_bytes() == b"untouched"


def test_an_undecodable_pointer_is_written_as_its_bytes(tmp_path: Path) -> None:
    finish_tree(tmp_path, inventory_with(pointer=Pointer("latest-\udcff", "step-\udcfe")))
    with open(os.fsencode(tmp_path) + b"/latest-\xff", "rb") as file:
        assert file.read() == b"step-\xfe"


def test_what_the_file_system_refuses_names_the_entry(tmp_path: Path) -> None:
    with pytest.raises(SeawallError, match="cannot be written") as caught:
        finish_tree(tmp_path, inventory_with(folders=(Folder("not there", 0o700),)))
    assert caught.value.where == "not there"


def test_a_large_object_is_read_in_parts(tmp_path: Path) -> None:
    """Above the bound for one request the records are fetched ahead; the result is the same."""
    content = noise("large", 17 << 20)
    copy = seal_copy("large", 1, {"large": content}, Codec.NONE, batches=1)
    assert len(copy.objects["file-0.sea"]) > 16 << 20
    sealing = opened(copy)
    rebuild_files(sealing, copy.inventory, [0], copy.data_key, tmp_path, transfers=4)
    assert (tmp_path / "large").read_bytes() == content
