"""A site of two file stores with one run, driven through the command line as a person would."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seawall.cli.main import main
from tests.cli.checkpoints import write_checkpoint


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one object of ``--json``."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


class Cli:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Said:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Said(code, captured.out, captured.err)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


class DemoSite:
    """``seawall init`` with stores ``a`` and ``c`` (the log), and run ``gpt``."""

    def __init__(self, folder: Path, cli: Cli) -> None:
        self.folder = folder
        self.cli = cli
        self.config = folder / "seawall.toml"
        self.source = folder / "checkpoints"

    def __call__(self, *arguments: object) -> Said:
        """A command with this site's configuration."""
        return self.cli(*arguments, "--config", self.config)

    def good(self, *arguments: object) -> dict[str, Any]:
        """A command that must succeed; its JSON object."""
        said = self(*arguments, "--json")
        assert said.code == 0, said
        return said.document

    def commit(self, step: int) -> str:
        """Sync a small checkpoint; its sealing."""
        path = write_checkpoint(self.source / f"step_{step}", step)
        done = self.good("sync", "gpt", "--path", path, "--step", step)
        assert done["status"] == "committed"
        return str(done["sealing"])

    def log_folder(self, store: str) -> Path:
        return self.folder / store / "runs/gpt/log"

    def sealing_folder(self, store: str, sealing: str) -> Path:
        return self.folder / store / "runs/gpt/sealings" / sealing

    def edit(self, old: str, new: str) -> None:
        """Change the configuration."""
        text = self.config.read_text()
        assert old in text
        self.config.write_text(text.replace(old, new))

    def key_id(self, role: str) -> str:
        keys = self.good("keys", "show")["host"]
        return next(str(key["id"]) for key in keys if key["kind"] == role)


@pytest.fixture
def site(tmp_path: Path, cli: Cli) -> DemoSite:
    demo = DemoSite(tmp_path, cli)
    demo.source.mkdir()
    urls = [f"--store={name}={(tmp_path / name).as_uri()}" for name in ("a", "c")]
    assert cli("init", *urls, "--folder", tmp_path).code == 0
    assert demo("run", "open", "gpt", "--path", demo.source).code == 0
    return demo
