"""Every dependency is explained, pinned, and pinned to something that the declared range allows."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


@pytest.fixture(scope="module")
def declared(checkout: Path) -> list[Requirement]:
    """All requirements of pyproject.toml, those of every extra included."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + [line for extra in project["optional-dependencies"].values() for line in extra]
    return [Requirement(line) for line in lines]


@pytest.fixture(scope="module")
def pins(checkout: Path) -> list[Requirement]:
    lines = (checkout / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def pinned_version(pin: Requirement) -> Version:
    (only,) = pin.specifier
    assert only.operator == "==", str(pin)
    return Version(only.version)


def test_constraints_are_exact_versions_and_nothing_else(pins: list[Requirement]) -> None:
    for pin in pins:
        assert pin.url is None and not pin.extras, str(pin)
        assert pinned_version(pin).local is None, f"{pin}: a local label exists on one index only"


def test_every_dependency_is_pinned_within_its_range(declared: list[Requirement], pins: list[Requirement]) -> None:
    for requirement in declared:
        own = [pin for pin in pins if canonicalize_name(pin.name) == canonicalize_name(requirement.name)]
        assert own, f"{requirement.name}: run make constraints"
        for pin in own:
            assert pinned_version(pin) in requirement.specifier, f"{pin} is outside {requirement}"


def test_the_pins_that_were_asked_for(pins: list[Requirement]) -> None:
    versions = {str(canonicalize_name(pin.name)): pinned_version(pin) for pin in pins}
    assert versions["apache-airflow"] == Version("3.3.2")
    assert versions["torch"] == Version("2.13.0")
    assert versions["cryptography"] >= Version("50"), "the hybrid post-quantum HPKE suite arrived there"


def test_every_dependency_has_its_line(checkout: Path, declared: list[Requirement]) -> None:
    text = (checkout / "docs/dependencies.md").read_text()
    explained = [canonicalize_name(name) for name in re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)]
    assert len(explained) == len(set(explained)), "a dependency is explained twice"
    names = {canonicalize_name(requirement.name) for requirement in declared}
    bench = (checkout / "bench/requirements.txt").read_text()
    names |= {canonicalize_name(Requirement(line).name) for line in bench.splitlines() if line and not line.startswith("#")}
    assert names - set(explained) == set(), "docs/dependencies.md lacks a line"
    assert set(explained) - names == set(), "docs/dependencies.md explains what nobody needs"


def test_the_core_needs_neither_airflow_nor_torch(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    core = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    dev = {canonicalize_name(Requirement(line).name) for line in project["optional-dependencies"]["dev"]}
    heavy = {"apache-airflow", "torch", "cupy-cuda13x", "nvidia-ml-py"}
    assert core.isdisjoint(heavy) and dev.isdisjoint(heavy)
