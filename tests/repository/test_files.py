"""Files: their size, the git links, and nothing in them that belongs to one machine."""

import re
from pathlib import Path

import pytest

MOST_LINES = 400

# Longer than MOST_LINES, and why that is better than cutting it up.
LONGER: dict[str, str] = {
    "tests/cases/make_cases.py": "one list: every case of one set, in the order of its layouts",
    "tests/cases/cases_hostile_pickles.py": "one list: every way in which a pickle calls something",
    "tests/training/test_checkpointer.py": "one life of a save, from the first file to the mark",
}

LINKS = {"seawall/operators": "../operators", "seawall/kernels": "../kernels", "seawall/plugins": "../plugins"}

# Each alternative is broken up so that this file does not match itself.
OF_ONE_MACHINE = re.compile(
    rb"(?<![\w.{$<>])/(?:ho" + rb"me|Use" + rb"rs)/[a-z][\w.-]*/|(?<![\w.{$>])/ro" + rb"ot/|(?<![\w.{$>])/wo" + rb"rk/|/tmp/" + rb"tmp\."
)
INDEX_HOSTS = re.compile(
    rb"--(?:extra-)?index"
    + rb"-url[ =]|--trusted"
    + rb"-host|--find"
    + rb"-links[ =]|https?://[^\s/]+/(?:sim"
    + rb"ple|pypi/[\w-]+/simple)\b"
)


def test_code_files_are_short(checkout: Path, tracked: dict[str, str]) -> None:
    code = [name for name in tracked if name.endswith((".py", ".sh")) or name in {"Makefile", ".ci/run"}]
    lengths = {name: len((checkout / name).read_bytes().splitlines()) for name in code if (checkout / name).is_file()}
    too_long = {name: length for name, length in lengths.items() if length > MOST_LINES and name not in LONGER}
    assert too_long == {}, f"over {MOST_LINES} lines: split by concept, or name the reason in LONGER"
    stale = [name for name in LONGER if lengths.get(name, 0) <= MOST_LINES]
    assert stale == [], "these exceptions are not needed any more"


def test_the_linked_rooms_are_git_links(checkout: Path, tracked: dict[str, str]) -> None:
    assert {name: mode for name, mode in tracked.items() if mode == "120000"} == dict.fromkeys(LINKS, "120000")
    for name, target in LINKS.items():
        assert (checkout / name).readlink() == Path(target)
        assert (checkout / name / "__init__.py").is_file()


def test_nothing_is_executable_that_is_no_program(checkout: Path, tracked: dict[str, str]) -> None:
    for name, mode in tracked.items():
        if mode == "100755":
            assert (checkout / name).read_bytes().startswith(b"#!"), name


@pytest.mark.parametrize("pattern", [OF_ONE_MACHINE, INDEX_HOSTS], ids=["paths", "hosts"])
def test_nothing_names_one_machine(checkout: Path, tracked: dict[str, str], pattern: re.Pattern[bytes]) -> None:
    found = []
    for name in tracked:
        path = checkout / name
        if path.is_symlink() or not path.is_file():
            continue
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if pattern.search(line):
                found.append(f"{name}:{number}: {line[:160]!r}")
    assert found == []


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (OF_ONE_MACHINE, b"open('/ho" + b"me/ada/ckpt/x')", True),
        (OF_ONE_MACHINE, b"cd /ro" + b"ot/seawall", True),
        (OF_ONE_MACHINE, b"https://example.org/home/ada/", False),
        (OF_ONE_MACHINE, b"url = 'file:///mnt/ckpt'", False),
        (OF_ONE_MACHINE, b"runs/<run>/root/x", False),
        (INDEX_HOSTS, b"pip install --index" + b"-url https://mirror.corp/x torch", True),
        (INDEX_HOSTS, b"https://mirror.corp/sim" + b"ple/torch/", True),
        (INDEX_HOSTS, b"https://keepachangelog.com/en/1.1.0/", False),
    ],
)
def test_the_patterns_see_what_they_should(pattern: re.Pattern[bytes], text: bytes, matches: bool) -> None:
    assert bool(pattern.search(text)) is matches


def test_the_changelog_has_room_for_the_next_change(checkout: Path) -> None:
    headings = re.findall(r"^## (.+)$", (checkout / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
