"""Wheel and sdist hold everything importable, once, as real files; the wheel works where nothing else is installed."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.repository.artefacts import Artefacts
from tests.repository.interpreters import find_python

VERSIONS = ["3.11", "3.12"]


def _python_or_skip(version: str) -> str:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no working Python {version} on this machine")
    return python


def _new_environment(folder: Path, version: str, environment: dict[str, str]) -> Path:
    made = subprocess.run(
        [sys.executable, "-m", "uv", "venv", "--quiet", "--python", _python_or_skip(version), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    return folder / "bin" / "python"


def _install(python: Path, wheel: Path, environment: dict[str, str], *options: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), *options, str(wheel)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_wheel_holds_every_module_of_the_tree(artefacts: Artefacts, tracked: dict[str, str]) -> None:
    in_wheel = artefacts.names_in_wheel()
    expected = set()
    for name in tracked:
        top = name.split("/", 1)[0]
        if top == "seawall" and tracked[name] != "120000":
            expected.add(name)
        elif top in {"kernels", "operators", "plugins", "dags"}:
            expected.add(f"seawall/{name}")
    assert expected - in_wheel == set()
    assert {"seawall/kernels/__init__.py", "seawall/operators/__init__.py", "seawall/plugins/__init__.py"} <= in_wheel


def test_the_wheel_has_one_top_level_package(artefacts: Artefacts) -> None:
    tops = {name.split("/", 1)[0] for name in artefacts.names_in_wheel()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"seawall"}


def test_neither_artefact_holds_a_link(artefacts: Artefacts) -> None:
    with tarfile.open(artefacts.sdist) as archive:
        assert [member.name for member in archive if member.issym() or member.islnk()] == []
    # A zip keeps Unix modes in the upper half of the external attributes; 0o120000 would be a link.
    with zipfile.ZipFile(artefacts.wheel) as wheel:
        assert [info.filename for info in wheel.infolist() if (info.external_attr >> 28) == 0o12] == []


def test_the_sdist_holds_what_git_tracks_once(artefacts: Artefacts, tracked: dict[str, str]) -> None:
    with tarfile.open(artefacts.sdist) as archive:
        held = [member.name.split("/", 1)[1] for member in archive if member.isfile()]
    assert len(held) == len(set(held))
    files = {name for name, mode in tracked.items() if mode != "120000"}
    assert files - set(held) == set()


def test_the_sdist_builds_the_same_wheel(artefacts: Artefacts) -> None:
    with zipfile.ZipFile(artefacts.wheel) as ours, zipfile.ZipFile(artefacts.wheel_of_sdist) as theirs:
        assert {info.filename: info.CRC for info in ours.infolist()} == {info.filename: info.CRC for info in theirs.infolist()}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_imports_in_an_empty_environment(
    artefacts: Artefacts, version: str, tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    """Without even the dependencies: the package and its three linked rooms are light, and bring no top-level name along."""
    python = _new_environment(tmp_path / "env", version, clean_environment)
    _install(python, artefacts.wheel, clean_environment, "--no-deps", "--offline")
    program = """
import importlib.resources, importlib.util, pathlib, sys
import seawall, seawall.kernels, seawall.operators, seawall.plugins
assert pathlib.Path(seawall.__file__).is_relative_to(sys.prefix), seawall.__file__
for bare in ("kernels", "operators", "plugins", "dags", "tests", "tools"):
    assert importlib.util.find_spec(bare) is None, bare
assert (importlib.resources.files("seawall") / "dags" / "README.md").is_file()
assert (importlib.resources.files("seawall") / "py.typed").is_file()
print(seawall.__version__)
"""
    done = subprocess.run([str(python), "-I", "-c", program], cwd=tmp_path, env=clean_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == artefacts.wheel.name.split("-")[1]


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_with_its_dependencies_imports_whole(
    artefacts: Artefacts, checkout: Path, version: str, tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    """From the package index, at the pinned versions; neither Airflow nor torch comes along."""
    python = _new_environment(tmp_path / "env", version, clean_environment)
    _install(python, artefacts.wheel, clean_environment, "--constraints", str(checkout / "constraints.txt"))
    program = """
import importlib, importlib.util, pkgutil
import seawall
assert importlib.util.find_spec("airflow") is None and importlib.util.find_spec("torch") is None
names = [m.name for m in pkgutil.walk_packages(seawall.__path__, "seawall.", onerror=lambda name: None)]
core = [n for n in names if n.split(".")[1] not in ("operators", "plugins", "training", "dags")]
for name in core:
    importlib.import_module(name)
print(len(core))
"""
    done = subprocess.run([str(python), "-I", "-c", program], cwd=tmp_path, env=clean_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_an_editable_install_is_this_tree(checkout: Path) -> None:
    """The environment that runs these tests: no stale copy of anything lies in site-packages."""
    program = "import seawall, seawall.kernels, sysconfig; print(seawall.__file__); print(sysconfig.get_path('purelib'))"
    done = subprocess.run([sys.executable, "-I", "-c", program], cwd="/", capture_output=True, text=True)
    if "No module named 'seawall'" in done.stderr:
        pytest.skip("seawall is not installed in this environment, the tests run from the tree alone")
    assert done.returncode == 0, done.stderr
    module, site_packages = done.stdout.split("\n")[:2]
    assert Path(module).resolve() == checkout / "seawall" / "__init__.py"
    assert not (Path(site_packages) / "seawall").exists()
