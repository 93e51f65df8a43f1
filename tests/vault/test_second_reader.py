"""The specification is enough: a reader written from it reads the good vectors, and refuses the bad ones for the same reasons."""

import ast
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.vault import second_documents, second_reader
from tests.vault.readers import COPIES, INDEX, STORE, VECTORS, Copy
from tests.vault.second_reader import RefusedError, read_copy


def read(vector: dict[str, Any], secrets: dict[tuple[str, str], bytes] | None = None) -> dict[str, bytes]:
    copy = Copy.of(vector)
    folder = f"runs/{INDEX['run']}/sealings/{copy.sealing.hex()}/"
    files = {key.removeprefix(folder): raw for key, raw in copy.store.objects.items() if key.startswith(folder)}
    key = copy.keyring.key
    if secrets is None:
        secrets = {("keyring", sha256(b"seawall/1/keyring" + key).hexdigest()[:32]): key}
    writers, operators = ({key_id: bytes.fromhex(raw) for key_id, raw in INDEX[role].items()} for role in ("writers", "operators"))
    return read_copy(files, INDEX["run"], copy.sealing.hex(), copy.manifest, writers, operators, secrets)


def good(name: str) -> dict[str, Any]:
    return {**COPIES[name], "copy": name, "replaced": [], "removed": [], "keyring": "usual", "object": ""}


def test_it_imports_nothing_of_seawall() -> None:
    trees = [ast.parse(Path(str(module.__file__)).read_text()) for module in (second_reader, second_documents)]
    imported = {
        name
        for tree in trees
        for node in ast.walk(tree)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None) or ""])
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert {name for name in imported if name.split(".")[0] in ("seawall", "tests")} == {"tests.vault.second_documents"}


@pytest.mark.parametrize("name", list(COPIES))
@pytest.mark.parametrize("kind", ["keyring", "recovery"])
def test_good_copies_are_read(name: str, kind: str) -> None:
    secrets = None
    if kind == "recovery":
        seeds = bytes.fromhex(INDEX["recovery_key"])
        # The public half, and so the recipient id, follows from the seeds.
        seed, ecdh = (
            second_reader.MLKEM768PrivateKey.from_seed_bytes(seeds[:64]),
            second_reader.X25519PrivateKey.from_private_bytes(seeds[64:]),
        )
        public = seed.public_key().public_bytes_raw() + ecdh.public_key().public_bytes_raw()
        secrets = {("recovery", sha256(public).hexdigest()[:32]): seeds}
    found = read(good(name), secrets)
    assert {name: sha256(content).hexdigest() for name, content in found.items()} == {
        file["name"]: file["sha256"] for file in COPIES[name]["files"]
    }


@pytest.mark.parametrize("name", list(VECTORS))
def test_it_says_what_ours_says(name: str) -> None:
    vector = VECTORS[name]
    if vector["expect"] == "ok":
        assert read(vector)
        return
    with pytest.raises(RefusedError) as caught:
        read(vector)
    assert caught.value.args[0] == vector["expect"], caught.value.args


def test_the_store_is_whole() -> None:
    assert {"seawall.json", "trust/1.json", "trust/2.json"} <= set(STORE)
