"""Two public scanners as second opinions: what either calls dangerous is never plainly ok here."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.pickles.names import Standing, judge_name
from tests.checkpoint.case_list import all_cases

pytestmark = pytest.mark.nightly

LOOKED_INTO = {
    # What these are given is judged itself: the function that partial wraps is a name, the bytes are read as pickles.
    ("functools", "partial"),
    ("torch.storage", "_load_from_bytes"),
}


def scanned_names() -> Iterator[tuple[str, str]]:
    """Every global that one of the scanners lists as unsafe; a whole module stands for a function of it."""
    scanner = pytest.importorskip("picklescan.scanner")
    for module, names in scanner._unsafe_globals.items():
        for name in ("anything",) if isinstance(names, str) and names == "*" else (names,) if isinstance(names, str) else names:
            yield module, name
    analysis = pytest.importorskip("fickling.analysis")
    for module in analysis.UnsafeImportsML.UNSAFE_MODULES:
        yield module, "anything"
    for module, names in analysis.UnsafeImportsML.UNSAFE_IMPORTS.items():
        for name in names:
            yield module, name
    for module in pytest.importorskip("fickling.fickle").UNSAFE_IMPORTS:
        yield module, "anything"


def test_no_listed_name_is_harmless() -> None:
    names = set(scanned_names()) - LOOKED_INTO
    assert len(names) > 150
    assert [name for name in sorted(names) if judge_name(*name) is Standing.HARMLESS] == []


def test_picklescan_and_the_cases(case_folder: Path) -> None:
    scanner = pytest.importorskip("picklescan.scanner")
    flagged = 0
    for case in all_cases():
        if "bomb" in case.name:
            continue  # the scanner inflates and walks them for minutes
        for path in sorted((case_folder / case.name).rglob("*")):
            if not path.is_file() or path.is_symlink() or path.suffix not in (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".distcp"):
                continue
            try:
                found = scanner.scan_file_path(str(path))
            except Exception:  # noqa: BLE001  # the scanner breaks on what we find damaged; then it has no opinion
                continue
            dangerous = {(one.module, one.name) for one in found.globals if one.safety == scanner.SafetyLevel.Dangerous} - LOOKED_INTO
            if dangerous:
                flagged += 1
                assert inspect(path).verdict > Verdict.OK, (path, dangerous)
    assert flagged > 20


def test_fickling_and_the_cases(case_folder: Path) -> None:
    fickle = pytest.importorskip("fickling.fickle")
    analysis = pytest.importorskip("fickling.analysis")
    flagged = 0
    for case in all_cases():
        path = case_folder / case.name / case.target
        if not path.is_file() or not zipfile.is_zipfile(path):
            continue
        try:
            with zipfile.ZipFile(path) as archive:
                name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
                if archive.getinfo(name).file_size > 1 << 20:
                    continue
                severity = analysis.check_safety(fickle.Pickled.load(archive.read(name))).severity
        except Exception:  # noqa: BLE001  # no opinion on what it cannot read
            continue
        if severity >= analysis.Severity.LIKELY_OVERTLY_MALICIOUS and b"_load_from_bytes" not in path.read_bytes():
            flagged += 1
            assert inspect(path).verdict > Verdict.OK, (path, severity)
    assert flagged > 10
