"""docs/cli.md and docs/configuration.md say what the program does: every command, option, exit code and key, and no others."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from seawall.alerts.configuration import AlertSettings
from seawall.cli.config import Configuration
from seawall.protect.configuration import RunSettings
from seawall.protect.retention_settings import RetentionSettings
from seawall.stores.configuration import CoordinationSettings, StoreSettings, TransferSettings
from seawall.vault.configuration import KeyringSettings, RecoverySettings, SigningSettings
from seawall.verify.configuration import MatrixSettings, MaxAgeDays, MediumAgeDays, VerifySettings
from tests.cli.test_main import all_commands

DOCS = Path(__file__).parents[2] / "docs"
LEAVES = {words: command for words, command in all_commands() if not hasattr(command, "commands")}


def sections(name: str, mark: str) -> dict[str, str]:
    """Heading → text below it."""
    parts = re.split(rf"^{mark} (.+)$", (DOCS / name).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_command_has_a_section_and_no_other_has() -> None:
    assert set(sections("cli.md", "###")) == {f"`seawall {' '.join(words)}`" for words in LEAVES}


@pytest.mark.parametrize("words", sorted(LEAVES), ids=" ".join)
def test_every_option_is_documented_and_no_other_is(words: tuple[str, ...]) -> None:
    text = sections("cli.md", "###")[f"`seawall {' '.join(words)}`"]
    documented = {option for line in text.splitlines() if line.startswith("* ") for option in re.findall(r"`(--[a-z-]+)`", line)}
    actual = {option for p in LEAVES[words].params for option in p.opts if option.startswith("--")} - {"--help"}
    assert documented == actual
    summary = " ".join((LEAVES[words].help or "").split())
    assert summary in " ".join(text.split()), "the first lines are those of --help"


def test_the_exit_codes_are_listed() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", (DOCS / "cli.md").read_text(), flags=re.MULTILINE)}
    assert codes == {*range(12), 130}


MODELS: dict[str, type[BaseModel]] = {
    "The file": Configuration,
    "[stores.NAME]": StoreSettings,
    "[coordination]": CoordinationSettings,
    "[runs.NAME]": RunSettings,
    "[keys.keyring]": KeyringSettings,
    "[keys.recovery]": RecoverySettings,
    "[keys.signing]": SigningSettings,
    "[verify]": VerifySettings,
    "[verify.max_age_days]": MaxAgeDays,
    "[verify.max_age_days_of.MEDIUM]": MediumAgeDays,
    "[verify.matrix]": MatrixSettings,
    "[transfer]": TransferSettings,
    "[alerts]": AlertSettings,
    "[retention]": RetentionSettings,
}


def shown(default: Any) -> str:
    """A default as the page writes it."""
    if isinstance(default, BaseModel):
        return "as below"
    if isinstance(default, tuple) and default:
        return ", ".join(f"`{item}`" for item in default)
    if default is None or default in ({}, ()):
        return "none"
    return "empty" if default == "" else f"`{default}`"


@pytest.mark.parametrize("heading", MODELS)
def test_every_key_is_documented_with_its_default(heading: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", sections("configuration.md", "##")[heading], flags=re.MULTILINE)
    documented = {name: default for name, default, _ in rows}
    fields = MODELS[heading].model_fields
    actual = {
        name: "needed" if field.is_required() else shown(field.get_default(call_default_factory=True)) for name, field in fields.items()
    }
    if heading == "The file":
        actual["keys"] = "none"
    assert documented == actual


def test_every_table_of_the_file_has_a_section() -> None:
    assert set(sections("configuration.md", "##")) == set(MODELS)
