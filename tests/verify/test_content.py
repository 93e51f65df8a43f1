"""L3 and L4: what is inside. Signed bytes that are whole, and still not what the inventory says, are found and named."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seawall.checkpoint.inspection import Verdict
from seawall.errors import KeyMissingError
from seawall.protect import commit as committing
from seawall.protect import seal_batch as sealing_batches
from seawall.protect.checkpoint_source import CheckpointSource, read_source
from seawall.vault.inventory import Inventory
from seawall.vault.keyring import Keyring
from seawall.vault.sealing import Sealing, read_inventory, unlock
from seawall.vault.tensors import TensorRecord
from seawall.verify.check import FAILED, NOT_ATTAINABLE, Finding, Unlocked
from seawall.verify.levels import Level
from tests.protect.little_site import write_checkpoint
from tests.verify.sealed_copy import SMALL, SealedCopy, failed, proved, sealed, sealed_files

L0, L2, L3, L4 = Level.L0, Level.L2, Level.L3, Level.L4

GOOD = [
    "dcp-ok-uneven",
    "dcp-ok-two-dimensions",
    "dcp-ok-empty-rank-file",
    "dcp-ok-run-with-link",
    "zip-ok-mixed-dtypes",
    "st-ok-all-integers",
    "st-ok-no-tensors",
    "st-ok-pipeline",
    "shards-ok-one",
    "shards-ok-sub-folder",
    "shards-ok-link-inside",
    "ds-ok-stage-3",
    "ds-ok-universal",
    "mg-ok-distributed",
    "mg-ok-pipeline",
    "ranks-ok-two-families",
    "ranks-ok-legacy-container",
    "bin-ok-sharded",
    "opaque-ok",
]
"""A real checkpoint of every layout, from the generator of cases."""


def case_source(case_folder: Path, name: str, **options: Any) -> CheckpointSource:
    """A case as sync reads it, with a step where it has none of its own."""
    import json

    row = next(row for row in json.loads((case_folder / "cases.json").read_text()) if row["name"] == name)
    path = str(case_folder / name / row["target"])
    source = read_source(path, **options)
    return source if source.inspection.step is not None else read_source(path, step=7, **options)


@pytest.mark.parametrize("name", GOOD)
def test_real_checkpoints_hold_to_the_last_tensor(case_folder: Path, name: str) -> None:
    source = case_source(case_folder, name)
    findings = sealed(source).check(L4)
    assert proved(findings) == {L0, L2, L3, L4}, findings[max(findings)]
    assert findings[L4].evidence["tensors"] == str(len(source.inspection.tensors))
    contiguous = sum(piece.start is not None for tensor in sealed(source).inventory().tensors for piece in tensor.pieces)
    assert findings[L4].evidence["summed"] == str(contiguous)


@pytest.mark.parametrize("name", ["unknown-gguf", "unknown-npz", "hostile-stack-global", "dcp-corrupt-metadata-cut"])
def test_what_was_sealed_as_plain_files_has_no_structure_to_prove(case_folder: Path, name: str) -> None:
    findings = sealed(case_source(case_folder, name, as_opaque=True)).check(L4)
    assert proved(findings) == {L0, L2, L3} and not failed(findings)
    assert findings[L4].result == NOT_ATTAINABLE and "plain files" in findings[L4].evidence["why"]


def test_a_commit_mark_of_another_name_is_known_again(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "ck")
    (source / "_COMMITTED").rename(source / "DONE")
    assert proved(sealed(read_source(str(source), commit_mark="DONE")).check(L4)) == {L0, L2, L3, L4}


def test_a_wrong_key_is_no_finding(tmp_path: Path) -> None:
    copy = sealed_files(tmp_path / "ck", SMALL)
    copy.site.keyring = Keyring.generate()
    with pytest.raises(KeyMissingError):
        copy.check(L3)
    assert proved(copy.check(L2)) == {L0, L2}


class TestTensors:
    """A writer that records another structure than it seals, in one way each."""

    @pytest.fixture
    def source(self, case_folder: Path) -> CheckpointSource:
        return case_source(case_folder, "dcp-ok-uneven")

    def _recorded(self, source: CheckpointSource, monkeypatch: pytest.MonkeyPatch, change: Any) -> Finding:
        """Seal it with the first tensor's record changed; the finding of L4."""
        right = CheckpointSource.tensors

        def tensors(this: CheckpointSource) -> tuple[TensorRecord, ...]:
            first, *rest = right(this)
            return (*change(first), *rest)

        monkeypatch.setattr(CheckpointSource, "tensors", tensors)
        findings = sealed(source).check(L4)
        assert proved(findings) == {L0, L2, L3}, "the bytes are what was signed"
        return findings[L4]

    def _assert_named(self, finding: Finding, name: str) -> None:
        assert finding.result == FAILED
        assert name in {damage.object for damage in finding.damages} and name in finding.evidence["damage"]

    def test_dtype(self, source: CheckpointSource, monkeypatch: pytest.MonkeyPatch) -> None:
        name = source.inspection.tensors[0].name
        self._assert_named(self._recorded(source, monkeypatch, lambda first: [replace(first, dtype="int8")]), name)

    def test_shape(self, source: CheckpointSource, monkeypatch: pytest.MonkeyPatch) -> None:
        name = source.inspection.tensors[0].name
        self._assert_named(self._recorded(source, monkeypatch, lambda first: [replace(first, shape=(1, *first.shape))]), name)

    def test_a_tensor_more(self, source: CheckpointSource, monkeypatch: pytest.MonkeyPatch) -> None:
        finding = self._recorded(source, monkeypatch, lambda first: [first, replace(first, name="never.saved")])
        self._assert_named(finding, "never.saved")

    def test_a_tensor_less(self, source: CheckpointSource, monkeypatch: pytest.MonkeyPatch) -> None:
        name = source.inspection.tensors[0].name
        self._assert_named(self._recorded(source, monkeypatch, lambda first: []), name)

    def test_a_piece_of_other_bytes(self, source: CheckpointSource, monkeypatch: pytest.MonkeyPatch) -> None:
        """The inventory's checksum of one piece is another than that of the bytes."""
        right = committing._inventory

        def inventory(*arguments: Any) -> Inventory:
            made = right(*arguments)
            first, *rest = made.tensors
            piece = next(piece for piece in first.pieces if piece.crc64 is not None)
            pieces = tuple(replace(each, crc64=(each.crc64 or 0) ^ 1) if each is piece else each for each in first.pieces)
            return replace(made, tensors=(replace(first, pieces=pieces), *rest))

        monkeypatch.setattr(committing, "_inventory", inventory)
        findings = sealed(source).check(L4)
        assert proved(findings) == {L0, L2, L3}
        self._assert_named(findings[L4], source.inspection.tensors[0].name)
        assert "save time" in findings[L4].evidence["damage"]


def test_an_inventory_with_another_digest_fails_l3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = committing._inventory

    def inventory(*arguments: Any) -> Inventory:
        made = right(*arguments)
        files = tuple(replace(file, plaintext_digest=bytes(32)) if file.name == "twin-a" else file for file in made.files)
        return replace(made, files=files)

    monkeypatch.setattr(committing, "_inventory", inventory)
    findings = sealed_files(tmp_path / "ck", SMALL).check(L4)
    assert proved(findings) == {L0, L2} and failed(findings) == {L3}
    assert "twin-a" in findings[L3].evidence["damage"]


def test_an_object_under_another_data_key_fails_l3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a missing key: the one that there is opened everything else."""
    right = sealing_batches.Sealer

    def sealer(**arguments: Any) -> Any:
        return right(**{**arguments, "data_key": os.urandom(32)} if arguments["name"] == b"twin-b" else arguments)

    monkeypatch.setattr(sealing_batches, "Sealer", sealer)
    findings = sealed_files(tmp_path / "ck", SMALL).check(L3)
    assert proved(findings) == {L0, L2} and failed(findings) == {L3}
    # _COMMITTED, empty, twin-a, twin-b
    assert [damage.object for damage in findings[L3].damages] == ["file-3.sea"]


def test_an_inventory_of_another_sealing_is_refused(tmp_path: Path) -> None:
    """Its key opens it and its signature is right; it only is not this checkpoint's."""
    copy = sealed_files(tmp_path / "ck", SMALL)

    def mixed_up(sealing: Sealing) -> Unlocked:
        data_key = unlock(sealing, copy.site.keyring.keys, copy.state.resolver("operator"))
        inventory = read_inventory(sealing, data_key)
        return Unlocked(data_key, replace(inventory, files=inventory.files[::-1]))

    object.__setattr__(copy, "open_up", mixed_up)
    assert failed(copy.check(L3)) == {L3}


def test_every_verdict_is_either_structured_or_not(case_folder: Path) -> None:
    from seawall.verify.structure import why_unrecorded

    inventory = _inventory_of(case_folder)
    unrecorded = {verdict for verdict in Verdict if why_unrecorded(replace(inventory, notes={"verdict": verdict.word}))}
    assert unrecorded == {Verdict.UNKNOWN, Verdict.INCOMPLETE, Verdict.CORRUPT, Verdict.HOSTILE}


def _inventory_of(case_folder: Path) -> Inventory:
    copy: SealedCopy = sealed(case_source(case_folder, "opaque-ok"))
    return copy.inventory()
