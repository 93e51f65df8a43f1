"""The committed vectors are read as they say, and the entries that are written today are still the committed ones."""

import json
from pathlib import Path

import pytest

from seawall.errors import SeawallError
from seawall.log.entries import entry_key
from seawall.log.read import read_log
from seawall.vault.signing import PublicKey
from tests.log.vector_files import FOLDER, REFUSALS, file_name, store_of, summary, vectors

FILES = sorted(FOLDER.glob("*.json"))
BASE = json.loads((FOLDER / "base.json").read_text())
WORDS = {word: error for error, word in REFUSALS.items()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_is_read_as_it_says(path: Path) -> None:
    vector = json.loads(path.read_text())
    store = store_of(vector, BASE)
    root = PublicKey.from_text(BASE["root"])
    if vector["expect"] == "read":
        assert summary(read_log(store, BASE["run"], root).state) == vector["state"]
        return
    with pytest.raises(SeawallError) as caught:
        read_log(store, BASE["run"], root)
    assert type(caught.value) is WORDS[vector["expect"]]
    # The refusal is about that entry and no other: the log before it is read.
    for seq in range(vector["at"], 20):
        store.objects.pop(entry_key(BASE["run"], seq), None)
    assert read_log(store, BASE["run"], root).seq == vector["at"] - 1


def test_format_1_is_still_written_as_it_was() -> None:
    made = {file_name(name): vector for name, vector in vectors().items()}
    assert set(made) == {path.name for path in FILES}
    for path in FILES:
        assert json.loads(path.read_text()) == made[path.name], path.name
