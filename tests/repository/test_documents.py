"""What the documents tell people to type or to open exists."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOMS = ("seawall", "kernels", "operators", "plugins", "dags", "tests", "docs", "bench", "examples", "tools", ".ci")

# Names that documents use for what lies elsewhere than in this checkout, and why.
ELSEWHERE = {
    "seawall/dags": "dags/ as the wheel carries it",
}

CODE_SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^(?:    |\t)\s*(\S.*)$", re.MULTILINE)
PATH = re.compile(r"(?:" + "|".join(re.escape(room) for room in ROOMS) + r")/[\w./*-]*")


def documents(checkout: Path, tracked: dict[str, str]) -> list[Path]:
    return [checkout / name for name in sorted(tracked) if name.endswith(".md") and (checkout / name).is_file()]


def spans(text: str) -> Iterator[str]:
    """Inline code, outside fenced blocks."""
    yield from CODE_SPAN.findall(FENCE.sub("", text))


def commands(text: str) -> Iterator[str]:
    """Inline code and lines of blocks, a prompt taken off: whatever may be a command."""
    yield from spans(text)
    for block in FENCE.findall(text):
        yield from (line.strip().removeprefix("$ ") for line in block.splitlines()[1:-1])
    yield from (line.removeprefix("$ ") for line in INDENTED.findall(FENCE.sub("", text)))


def missing_paths(checkout: Path, text: str) -> list[str]:
    missing = []
    for span in spans(text):
        name = span.rstrip("/")
        if not PATH.fullmatch(span) or name in ELSEWHERE:
            continue
        found = any(checkout.glob(name)) if "*" in name else (checkout / name).exists()
        if not found:
            missing.append(span)
    return missing


def missing_links(document: Path, text: str) -> list[str]:
    targets = (target.split("#", 1)[0] for target in LINK.findall(FENCE.sub("", text)) if "://" not in target)
    return [target for target in targets if target and not (document.parent / target).exists()]


def unknown_targets(checkout: Path, text: str) -> list[str]:
    known = set(re.findall(r"^([a-z][a-z-]*):", (checkout / "Makefile").read_text(), re.MULTILINE))
    asked = {match[1] for line in commands(text) if (match := re.match(r"make ([a-z][a-z-]*)", line))}
    return sorted(asked - known)


def unknown_commands(text: str) -> list[str]:
    """``seawall …`` commands that the command line does not have."""
    from typer.main import get_command

    from seawall.cli.main import application

    top = get_command(application())
    unknown = []
    for line in commands(text):
        match = re.match(r"seawall ([a-z][a-z0-9-]*)(?: ([a-z][a-z0-9-]*))?(?![\w.:/])", line)
        if not match:
            continue
        command = getattr(top, "commands", {}).get(match[1])
        below = getattr(command, "commands", None)
        if command is None or (below is not None and match[2] is not None and match[2] not in below):
            unknown.append(match[0])
    return unknown


def test_paths_exist(checkout: Path, tracked: dict[str, str]) -> None:
    missing = {str(path.relative_to(checkout)): missing_paths(checkout, path.read_text()) for path in documents(checkout, tracked)}
    assert {name: paths for name, paths in missing.items() if paths} == {}


def test_links_lead_somewhere(checkout: Path, tracked: dict[str, str]) -> None:
    missing = {str(path.relative_to(checkout)): missing_links(path, path.read_text()) for path in documents(checkout, tracked)}
    assert {name: targets for name, targets in missing.items() if targets} == {}


def test_make_targets_exist(checkout: Path, tracked: dict[str, str]) -> None:
    unknown = {str(path.relative_to(checkout)): unknown_targets(checkout, path.read_text()) for path in documents(checkout, tracked)}
    assert {name: targets for name, targets in unknown.items() if targets} == {}


def test_commands_exist(checkout: Path, tracked: dict[str, str]) -> None:
    assert importlib.util.find_spec("seawall.cli.entry"), "pyproject.toml names seawall.cli.entry:run as the program"
    unknown = {str(path.relative_to(checkout)): unknown_commands(path.read_text()) for path in documents(checkout, tracked)}
    assert {name: lines for name, lines in unknown.items() if lines} == {}


def test_every_decision_is_listed(checkout: Path) -> None:
    folder = checkout / "docs/decisions"
    records = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert LINK.findall((folder / "README.md").read_text()) == records
    for name in records:
        text = (folder / name).read_text()
        for part in ("**Context.**", "**Decision.**", "**Rejected.**", "**Revisit when**"):
            assert part in text, f"{name} lacks {part}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see `docs/nowhere.md`", ["docs/nowhere.md"]),
        ("see `docs/dependencies.md` and `tests/` and `docs/decisions/0*.md`", []),
        ("see `docs/decisions/9*.md`", ["docs/decisions/9*.md"]),
        ("written to `runs/<run>/log/<seq>.json`, `seawall/dags`", []),
    ],
)
def test_the_path_check_sees_what_it_should(checkout: Path, text: str, expected: list[str]) -> None:
    assert missing_paths(checkout, text) == expected


def test_the_target_check_sees_what_it_should(checkout: Path) -> None:
    text = "`make test`\n\n    make quickstart  # fine\n    make coffee\n\n```sh\n$ make tea\n```\n"
    assert unknown_targets(checkout, text) == ["coffee", "tea"]
