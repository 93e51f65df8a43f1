"""Every case gets the verdict that it should, says whom it blames, and runs nothing."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seawall.checkpoint.detect import detect
from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Inspection, Verdict
from seawall.checkpoint.source import pointer_for
from tests.checkpoint.case_list import Case, all_cases
from tests.checkpoint.conftest import CHECKOUT

MARKER = "PAYLOAD_RAN.marker"
CASES = all_cases()


def everything_said(found: Inspection) -> str:
    return " ".join(f"{reason.file} {reason.tensor} {reason.text}" for reason in found.reasons)


def judge(case: Case, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deep: bool) -> Inspection:
    monkeypatch.chdir(tmp_path)
    found = inspect(folder / case.name / case.target, deep=deep)
    assert not (tmp_path / MARKER).exists(), "a payload ran"
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_verdict(case: Case, case_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge(case, case_folder, tmp_path, monkeypatch, deep=True)
    said = everything_said(found)
    assert found.verdict.word in (case.expected, *case.also), said
    for name in case.blame if found.verdict > Verdict.OK else ():
        assert name in said
    assert found.layout == case.layout or found.layout == "unknown"
    json.dumps(found.as_json())


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_shallow_look_is_never_stricter_and_agrees_on_the_layout(
    case: Case, case_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shallow = judge(case, case_folder, tmp_path, monkeypatch, deep=False)
    deep = judge(case, case_folder, tmp_path, monkeypatch, deep=True)
    assert shallow.verdict <= deep.verdict
    assert shallow.layout == deep.layout
    assert [tensor.name for tensor in shallow.tensors] == [tensor.name for tensor in deep.tensors]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_detection_agrees_with_the_inspection(case: Case, case_folder: Path) -> None:
    assert detect(case_folder / case.name / case.target) in (case.layout, "unknown")


GOOD = [case for case in CASES if case.expected == "ok"]


@pytest.mark.parametrize("case", GOOD, ids=[case.name for case in GOOD])
def test_a_restored_copy_is_found_to_be_the_same_under_its_recorded_layout(case: Case, case_folder: Path, tmp_path: Path) -> None:
    """A restore knows the layout from the inventory: it asks for it by name, in a folder with nothing else in it."""
    original = inspect(case_folder / case.name / case.target)
    restored = tmp_path / "restored"
    if Path(original.path).is_file():
        restored.mkdir()
        shutil.copy(original.path, restored)
    elif (pointer := pointer_for(original.layout, Path(original.path).name)) is not None:
        shutil.copytree(original.path, restored / Path(original.path).name, symlinks=True)
        (restored / pointer[0]).write_text(pointer[1])
    else:
        shutil.copytree(original.path, restored, symlinks=True)
    again = inspect(restored, layout=original.layout)
    assert again.verdict <= Verdict.WARN, again.reasons
    assert again.layout == original.layout
    assert [(one.name, one.dtype, one.shape, one.pieces) for one in again.tensors] == [
        (one.name, one.dtype, one.shape, one.pieces) for one in original.tensors
    ]
    assert len({one.name for one in again.tensors}) == len(again.tensors)


def test_there_are_cases_of_every_verdict() -> None:
    assert len(CASES) > 140
    assert {case.expected for case in CASES} == {"ok", "warn", "incomplete", "corrupt", "hostile", "unknown"}
    assert len({case.name for case in CASES}) == len(CASES)


def test_inspecting_imports_no_torch_and_a_shallow_look_no_numpy(case_folder: Path) -> None:
    """In a process of its own: this one may have imported anything."""
    script = (
        "import sys; from seawall.checkpoint.inspect import inspect\n"
        "assert inspect(sys.argv[1]).verdict == 0\n"
        "assert 'numpy' not in sys.modules, 'numpy'\n"
        "assert inspect(sys.argv[1], deep=True).verdict == 0\n"
        "assert 'torch' not in sys.modules, 'torch'\n"
    )
    target = str(case_folder / "zip-ok-mixed-dtypes" / "model.pt")
    done = subprocess.run([sys.executable, "-c", script, target], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
