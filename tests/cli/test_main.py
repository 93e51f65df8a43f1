"""The frame around all commands: exit codes, --json whatever happens, interrupts, closed pipes, a quick start."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from seawall.cli import main as frame
from seawall.errors import SeawallError
from tests.cli.checkpoints import safetensors_bytes, write_checkpoint
from tests.cli.conftest import Cli, DemoSite

PROGRAM = [sys.executable, "-m", "seawall.cli.entry"]


def all_commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group by its words."""
    todo: list[tuple[tuple[str, ...], Any]] = [((), get_command(frame.application()))]
    while todo:
        words, command = todo.pop()
        yield words, command
        todo += [((*words, name), below) for name, below in getattr(command, "commands", {}).items()]


@pytest.mark.parametrize("words", sorted(words for words, _ in all_commands()), ids=" ".join)
def test_every_command_explains_itself(cli: Cli, words: tuple[str, ...]) -> None:
    said = cli(*words, "--help")
    assert said.code == 0
    assert "Usage: seawall" in said.out


def test_every_option_says_what_it_is_for() -> None:
    silent = [
        f"{' '.join(words)} {parameter.name}"
        for words, command in all_commands()
        for parameter in command.params
        if parameter.name != "help" and not getattr(parameter, "help", None)
    ]
    assert silent == []


def test_every_command_but_those_that_run_on_has_json() -> None:
    leaves = {words: command for words, command in all_commands() if not hasattr(command, "commands")}
    without = [words for words, command in leaves.items() if not any("--json" in p.opts for p in command.params)]
    assert without == [("dev", "s3")]


# One real situation for each exit code.


def test_0_ok(cli: Cli, tmp_path: Path) -> None:
    said = cli("inspect", write_checkpoint(tmp_path / "ok", 1), "--json")
    assert said.code == 0 and said.document["verdict"] == "ok"


@pytest.mark.parametrize("words", [["nope"], ["inspect"], ["inspect", "--nope", "x"], ["copies", "gpt", "--step", "x"], ["--json"]])
def test_2_usage(cli: Cli, words: list[str]) -> None:
    said = cli(*words, "--json")
    assert said.code == 2
    assert said.document["error"] == "UsageError" and said.document["exit_code"] == 2
    human = cli(*[word for word in words if word != "--json"] or ["nope"])
    assert human.code == 2 and human.out == "" and "seawall: " in human.err


@pytest.mark.parametrize("words", [[], ["run"], ["log"], ["keys"], ["keys", "trust"], ["store"], ["dev"]], ids=" ".join)
def test_2_without_a_command_the_help_goes_to_stderr(cli: Cli, words: list[str]) -> None:
    said = cli(*words)
    assert said.code == 2 and said.out == "" and "Usage: seawall" in said.err


def test_3_incomplete(cli: Cli, tmp_path: Path) -> None:
    index = {"metadata": {}, "weight_map": {"w": "model-00001-of-00002.safetensors", "v": "model-00002-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(safetensors_bytes([1.0]))
    assert cli("inspect", tmp_path).code == 3


def test_4_corrupt(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", 8) + b"no JSON!")
    assert cli("inspect", tmp_path / "model.safetensors").code == 4


def test_5_hostile(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rank_00000.pt").write_bytes(b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.")
    assert cli("inspect", tmp_path / "rank_00000.pt").code == 5


def test_6_no_such_copy(site: DemoSite) -> None:
    said = site("copies", "gpt", "--step", 7, "--json")
    assert said.code == 6 and said.document["error"] == "NoSuchCopyError"


def test_7_store_unreachable(site: DemoSite) -> None:
    (site.folder / "c").rename(site.folder / "unmounted")
    said = site("copies", "gpt", "--json")
    assert said.code == 7 and said.document["exit_code"] == 7
    assert not (site.folder / "c").exists()


def test_8_key_refused(site: DemoSite) -> None:
    (site.folder / "keys/operator.key").chmod(0o644)
    said = site("log", "hold", "gpt", "--reason", "x", "--json")
    assert said.code == 8 and "chmod 600" in said.document["do"]


def test_9_busy(cli: Cli, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "running.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert cli("dev", "s3", "--folder", tmp_path).code == 9
    finally:
        os.close(descriptor)


def test_10_freshness(site: DemoSite) -> None:
    site.good("log", "hold", "gpt", "--reason", "x")
    (site.log_folder("c") / f"{3:016d}.json").unlink()
    said = site("copies", "gpt", "--json")
    assert said.code == 10 and said.document["error"] == "FreshnessError"


def test_11_unknown_layout(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.bin").write_bytes(b"GGUF" + bytes(60))
    assert cli("inspect", tmp_path / "notes.bin").code == 11


def test_1_a_bug_is_told_with_its_traceback_and_as_json(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = typer.Typer()

    @broken.command()
    def divide(json: bool = typer.Option(False, "--json")) -> int:
        return 1 // 0

    monkeypatch.setattr(frame, "application", lambda arguments: broken)
    said = cli("--json")
    assert said.code == 1
    assert "ZeroDivisionError" in said.document["why"] and "Traceback" in said.err


@pytest.mark.parametrize("as_json", [False, True])
def test_130_interrupted(tmp_path: Path, as_json: bool) -> None:
    """The command waits for a key that comes from a pipe: a point at which it surely is when the signal arrives."""
    pipe = tmp_path / "recovery.key"
    os.mkfifo(pipe, 0o600)
    words = ["open", str(tmp_path / "file-0.sea"), str(tmp_path / "out"), "--recovery-key", str(pipe), *(["--json"] if as_json else [])]
    child = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pipe.open("w"):
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert child.returncode == 130, err
    if as_json:
        assert json.loads(out)["exit_code"] == 130
    else:
        assert "interrupted" in err and "Traceback" not in err


@pytest.mark.parametrize("words", [["--help"], ["inspect", "--json", "missing"]], ids=" ".join)
def test_a_reader_that_went_away_is_no_traceback(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*PROGRAM, *words], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[coordination]", "[coordination]\nspare = 1", "coordination.spare"),
        ("[keys.signing]", "[keys.signing]\nauditor = 'x'", "keys.signing.auditor"),
        ('zone = "a"', 'zone = "a"\nbucket = "x"', "stores.a.bucket"),
        ("[coordination]", "[health]\nboard = 'file:///x'\n[coordination]", "health"),
        ('copies = ["a", "c"]', 'copies = ["a", "c"]\nrpo = 5', "runs.gpt.rpo"),
    ],
)
def test_unknown_configuration_keys_are_errors_that_name_the_key(site: DemoSite, old: str, new: str, named: str) -> None:
    site.edit(old, new)
    said = site("copies", "gpt", "--json")
    assert said.code == 2 and named in said.document["why"]


def test_no_configuration_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    said = cli("copies", "gpt", "--config", tmp_path / "none.toml", "--json")
    assert said.code == 2 and "seawall init" in said.document["do"]


def test_the_frame_imports_nothing_heavy() -> None:
    heavy = ["botocore", "boto3", "pydantic", "numpy", "rich.progress", "zstandard", "cryptography", "awscrt", "stamina", "urllib3"]
    code = (
        f"import sys; from seawall.cli.main import application; application(); print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_inspect_imports_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "ok", 1)
    # pydantic is left out: Typer reads the options with it.
    heavy = ["botocore", "boto3", "numpy", "rich.progress", "zstandard", "cryptography"]
    code = (
        f"import sys; from seawall.cli.main import main; assert main(['inspect', {str(path)!r}]) == 0;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_exit_codes_are_those_that_are_documented() -> None:
    def kinds(kind: type[SeawallError]) -> Iterator[type[SeawallError]]:
        yield kind
        for below in kind.__subclasses__():
            yield from kinds(below)

    assert {kind.exit_code for kind in kinds(SeawallError)} == set(range(1, 12))
