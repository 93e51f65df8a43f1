"""The Makefile and what it calls: nothing is built twice, a failing step fails the run, nothing asks for root without need."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

STEPS = ["deps", "lint", "kernels", "test", "quickstart", "demo"]


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(["make", *arguments], cwd=folder, env=kept | environment, capture_output=True, text=True)


@pytest.fixture
def copy(checkout: Path, tmp_path: Path) -> Path:
    """Makefile and tools in a folder with a space in its name, with an environment that counts as built."""
    folder = tmp_path / "a checkout"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(checkout / name, folder)
    shutil.copytree(checkout / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def built(folder: Path) -> None:
    stamp = make(folder, "--dry-run", "venv").stdout.split('"')[1]
    (folder / ".venv").mkdir(exist_ok=True)
    (folder / stamp).touch()


def test_a_built_environment_is_not_built_again(copy: Path) -> None:
    assert "build_venv.sh" in make(copy, "--dry-run", "test").stdout
    built(copy)
    assert "build_venv.sh" not in make(copy, "--dry-run", "test").stdout


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_it_is_built_again_when_its_contents_change(copy: Path, name: str) -> None:
    built(copy)
    before = (copy / name).read_bytes()
    (copy / name).touch()
    assert "build_venv.sh" not in make(copy, "--dry-run", "test").stdout, "a newer date alone is no change"
    (copy / name).write_bytes(before + b"\n")
    assert "build_venv.sh" in make(copy, "--dry-run", "test").stdout
    (copy / name).write_bytes(before)
    assert "build_venv.sh" not in make(copy, "--dry-run", "test").stdout, "and back again costs nothing"


def test_a_moved_checkout_gets_a_new_environment(copy: Path) -> None:
    built(copy)
    moved = copy.rename(copy.with_name("moved"))
    assert "build_venv.sh" in make(moved, "--dry-run", "test").stdout


def test_without_a_python_it_says_so(copy: Path) -> None:
    bare = copy / "bin"
    bare.mkdir()
    for tool in ("bash", "cat", "cksum", "tr", "make", "pwd"):
        (bare / tool).symlink_to(str(shutil.which(tool)))
    done = make(copy, "venv", PATH=str(bare))
    assert done.returncode != 0
    assert "no Python 3.11 or 3.12" in done.stderr
    assert not (copy / ".venv").exists()


def test_every_target_is_listed_by_help(checkout: Path) -> None:
    listed = {line.split()[1] for line in make(checkout, "help").stdout.splitlines()}
    phony = next(line for line in (checkout / "Makefile").read_text().splitlines() if line.startswith(".PHONY:"))
    assert listed == set(phony.split()[1:])


def test_deps_without_packages_needs_nothing(checkout: Path) -> None:
    done = make(checkout, "--no-print-directory", "deps", "SYSTEM_PACKAGES=")
    assert (done.returncode, done.stdout) == (0, "make deps: no system packages are needed\n")


class AptBox:
    """The script with a PATH of our own: which tools exist, and what they were asked."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.script = checkout / "tools/install_system_packages.sh"
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        self.bin.mkdir()
        self.calls.touch()
        for tool in ("bash", "env"):
            (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def tool(self, name: str, body: str) -> None:
        (self.bin / name).write_text(f'#!/bin/bash\necho "{name} $*" >> "{self.calls}"\n{body}\n')
        (self.bin / name).chmod(0o755)

    def run(self, *packages: str) -> subprocess.CompletedProcess[str]:
        bash = str(self.bin / "bash")
        return subprocess.run([bash, str(self.script), *packages], env={"PATH": str(self.bin)}, capture_output=True, text=True)


@pytest.fixture
def apt_box(checkout: Path, tmp_path: Path) -> AptBox:
    return AptBox(checkout, tmp_path)


def test_deps_without_apt_is_polite(apt_box: AptBox) -> None:
    done = apt_box.run("mtx")
    assert done.returncode == 0
    assert "no apt-get here" in done.stdout and "mtx" in done.stdout


def test_deps_asks_for_no_rights_when_all_is_present(apt_box: AptBox) -> None:
    apt_box.tool("apt-get", "exit 1")
    apt_box.tool("dpkg-query", "printf installed")
    done = apt_box.run("mtx")
    assert (done.returncode, done.stdout) == (0, "make deps: present already: mtx\n")
    assert "apt-get" not in apt_box.calls.read_text()


@pytest.mark.parametrize(("user", "prefix"), [("0", ""), ("1000", "sudo ")])
def test_deps_installs_only_what_is_missing(apt_box: AptBox, user: str, prefix: str) -> None:
    apt_box.tool("apt-get", "exit 0")
    apt_box.tool("dpkg-query", '[ "$3" = git ] && printf installed || exit 1')
    apt_box.tool("id", f"echo {user}")
    apt_box.tool("sudo", 'exec "$@"')
    done = apt_box.run("mtx", "git")
    assert done.returncode == 0, done.stderr
    assert "make deps: apt-get install mtx\n" in done.stdout
    calls = apt_box.calls.read_text()
    assert f"{prefix}apt-get update" in calls
    assert "install --quiet=2 --yes --no-install-recommends mtx\n" in calls
    assert ("sudo" in calls) is bool(prefix)


def test_deps_without_rights_says_what_to_type(apt_box: AptBox) -> None:
    apt_box.tool("apt-get", "exit 0")
    apt_box.tool("dpkg-query", "exit 1")
    apt_box.tool("id", "echo 1000")
    done = apt_box.run("mtx")
    assert done.returncode == 1
    assert "as root: apt-get install mtx" in done.stderr


@pytest.mark.parametrize("failing", [*STEPS, None])
def test_ci_stops_at_the_first_failure(checkout: Path, tmp_path: Path, failing: str | None) -> None:
    """With a `make` that only records: what .ci/run does with a step that fails."""
    recorder = tmp_path / "make"
    recorder.write_text(
        f'#!/bin/bash\nread -r line && exit 9\necho "${{@: -1}} $CI" >> "{tmp_path}/steps"\n[ "${{@: -1}}" != "{failing}" ]\n'
    )
    recorder.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment["PATH"] = f"{tmp_path}{os.pathsep}{environment['PATH']}"
    done = subprocess.run([str(checkout / ".ci/run")], cwd="/", env=environment, input="typed\n", capture_output=True, text=True)
    ran = (tmp_path / "steps").read_text().splitlines()
    expected = STEPS if failing is None else STEPS[: STEPS.index(failing) + 1]
    assert ran == [f"{step} true" for step in expected]
    assert (done.returncode == 0) is (failing is None)
    assert ("all of it passed" in done.stdout) is (failing is None)
