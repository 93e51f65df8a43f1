"""Inclusion proofs: made from a real copy, checked with the trust root alone, and refused after any change."""

import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seawall.errors import CorruptError, NoSuchCopyError, SeawallError, TrustError, UsageError
from seawall.log.verbs import change_trust, hold
from seawall.testing.memory import MemoryStore
from seawall.vault import canonical
from seawall.vault.canonical import base64_text
from seawall.vault.signing import ROOT, PublicKey, SigningKey
from seawall.vault.trust import read_list, sign_list
from seawall.verify.inclusion import Included, check_file, check_inclusion, prove_inclusion
from tests.verify.sealed_copy import LARGE, SMALL, SealedCopy, sealed_files

FILES = SMALL | LARGE


@dataclass
class Proved:
    copy: SealedCopy
    inventory_names: list[str]
    opened: bytes
    """With the footer of the large file."""
    bare: bytes

    @property
    def root(self) -> PublicKey:
        return self.copy.site.root.public

    def object(self, name: str) -> bytes:
        return self.copy.store.objects[self.copy.folder + name]


def prove(copy: SealedCopy, name: str, opened: bool) -> bytes:
    view = copy.site.view()
    data_key = copy.site.opened("a", copy.commit.sealing)[2] if opened else None
    return prove_inclusion(copy.store, copy.site.stores["c"], view, copy.commit, name, data_key)


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Proved:
    copy = sealed_files(tmp_path_factory.mktemp("inclusion") / "ck", FILES)
    names = [file.name for file in copy.inventory().files]
    name = f"file-{names.index('large')}.sea"
    return Proved(copy, names, prove(copy, name, True), prove(copy, name, False))


def held(proved: Proved, raw: bytes) -> Included:
    return check_inclusion(raw, proved.root)


def test_a_proof_says_which_file_of_which_checkpoint(proved: Proved) -> None:
    included = held(proved, proved.opened)
    commit = proved.copy.commit
    assert (included.run, included.step, included.sealing, included.entry) == ("gpt", 100, commit.sealing, commit.seq)
    assert included.writer == proved.copy.site.keys["writer"].key_id
    assert included.footer is not None
    assert (included.footer.name, included.footer.length) == (b"large", len(FILES["large"]))
    assert check_file(included, io.BytesIO(FILES["large"]), "large") == "plaintext"
    assert check_file(included, io.BytesIO(proved.object(included.row.name)), "object") == "object"


def test_without_a_key_the_sealed_object_is_proved(proved: Proved) -> None:
    included = held(proved, proved.bare)
    assert included.footer is None
    assert check_file(included, io.BytesIO(proved.object(included.row.name)), "object") == "object"
    with pytest.raises(UsageError, match="plaintext"):
        check_file(included, io.BytesIO(FILES["large"]), "large")


def test_every_object_of_the_sealing_can_be_proved(proved: Proved) -> None:
    for name in ["plan.sea", "inventory.sea", "batch-0.sea", *(f"file-{number}.sea" for number in range(len(proved.inventory_names)))]:
        included = held(proved, prove(proved.copy, name, True))
        assert included.row.name == name and included.footer is not None
        if name.startswith("file-"):
            expected = proved.inventory_names[int(name[5:-4])]
            assert os.fsdecode(included.footer.name) == expected
            if expected in FILES:
                check_file(included, io.BytesIO(FILES[expected]), expected)
    with pytest.raises(NoSuchCopyError):
        prove(proved.copy, "file-99.sea", False)


def test_another_file_is_told_apart(proved: Proved) -> None:
    included = held(proved, proved.opened)
    changed = bytearray(FILES["large"])
    changed[5_000_000] ^= 1
    for other in (bytes(changed), FILES["large"][:-1], FILES["large"] + b"\0", b"", FILES["twin-a"]):
        with pytest.raises(CorruptError):
            check_file(included, io.BytesIO(other), "other")
    rotten = bytearray(proved.object(included.row.name))
    for at in (3_000_000, 60, len(rotten) - 40, len(rotten) - 100):
        rotten[at] ^= 1
        with pytest.raises(SeawallError):
            check_file(included, io.BytesIO(bytes(rotten)), "rotten")
        rotten[at] ^= 1


def changed(raw: bytes, **fields: Any) -> bytes:
    return canonical.encode({**json.loads(raw), **fields})


def test_no_part_of_a_proof_may_be_exchanged(proved: Proved, tmp_path: Path) -> None:
    """Each against the same part of another, valid proof: of another object, another checkpoint, another root."""
    small = json.loads(prove(proved.copy, f"file-{proved.inventory_names.index('twin-a')}.sea", True))
    other = json.loads(prove(sealed_files(tmp_path / "ck", FILES), "file-1.sea", True))
    document = json.loads(proved.opened)
    for foreign in (small, other):
        for name, value in foreign.items():
            if value != document[name]:
                with pytest.raises(SeawallError):
                    held(proved, changed(proved.opened, **{name: value}))
        for name, value in foreign["opening"].items():
            with pytest.raises(SeawallError):
                held(proved, changed(proved.opened, opening={**document["opening"], name: value}))
    assert held(proved, changed(proved.opened))


@pytest.mark.parametrize(
    "fields",
    [
        {"index": "0"},
        {"size": "1"},
        {"size": "9999"},
        {"path": []},
        {"path": ["00" * 32]},
        {"row": None},
        {"opening": "x"},
        {"opening": {}},
        {"type": "another"},
        {"format": "2"},
        {"entry": base64_text(b"{}")},
        {"manifest": base64_text(b"")},
        {"trust": base64_text(b"{}")},
        {"more": "x"},
    ],
    ids=str,
)
def test_a_malformed_proof_is_refused(proved: Proved, fields: dict[str, Any]) -> None:
    with pytest.raises((CorruptError, TrustError)):
        held(proved, changed(proved.opened, **fields))
    short = {name: value for name, value in json.loads(proved.opened).items() if name not in fields}
    if short.keys() != json.loads(proved.opened).keys():
        with pytest.raises((CorruptError, TrustError)):
            held(proved, canonical.encode(short))


def test_another_root_does_not_count(proved: Proved) -> None:
    with pytest.raises(TrustError):
        check_inclusion(proved.opened, SigningKey.generate(ROOT).public)


def test_another_entry_of_the_log_is_no_commit(proved: Proved) -> None:
    site = proved.copy.site
    view = hold(site.stores["c"], site.view(), "audit", site.keys["operator"], site.clock)
    store = site.stores["c"]
    assert isinstance(store, MemoryStore)
    raw = store.objects[f"runs/gpt/log/{view.seq:016d}.json"]
    with pytest.raises(CorruptError, match="no commit"):
        held(proved, changed(proved.opened, entry=base64_text(raw)))


def test_a_writer_that_was_revoked_does_not_count(tmp_path: Path) -> None:
    copy = sealed_files(tmp_path / "ck", SMALL)
    site = copy.site
    before = prove(copy, "file-0.sea", False)
    view = site.view()
    revoked = read_list(view.state.trust_bytes, site.root.public).with_revocation(site.keys["writer"].key_id, "stolen")
    change_trust(site.stores["c"], view, sign_list(revoked, site.root), site.keys["operator"], site.clock)
    after = prove(copy, "file-0.sea", False)
    with pytest.raises(TrustError, match="revoked"):
        check_inclusion(after, site.root.public)
    # One that was made before still says what it said, and by which list.
    assert check_inclusion(before, site.root.public).trust_version == revoked.version - 1
