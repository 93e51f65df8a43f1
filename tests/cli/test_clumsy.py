"""What a clumsy person gives, and what a stranger's names do to a terminal: always a typed answer, never a traceback."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seawall.cli.output import printable
from tests.cli.checkpoints import safetensors_bytes
from tests.cli.conftest import Cli, DemoSite

PROGRAM = [sys.executable, "-m", "seawall.cli.entry"]


def test_names_cannot_speak_to_the_terminal(cli: Cli, tmp_path: Path) -> None:
    forged = b"\x1b]0;x\x07\x1b[2J\xe2\x80\xae\nok: fine"
    (tmp_path / "model.safetensors").write_bytes(safetensors_bytes([1.0]).replace(b'"w"', b'"%s"' % forged.replace(b"\n", b"\\n")))
    said = cli("inspect", tmp_path)
    assert said.code == 4
    folder = tmp_path / os.fsdecode(forged)
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"")
    for said in (cli("inspect", folder), cli("sync", os.fsdecode(forged))):
        lines = (said.out + said.err).splitlines()
        assert said.code and not any(line.startswith("ok:") for line in lines)
        assert all(line.isprintable() for line in lines)


def test_what_is_printable_stays_as_it_is() -> None:
    assert printable("層.0.重み: étage 1") == "層.0.重み: étage 1"
    assert printable("a\tb\x7f\x9b\udc80\u2028") == "a\\tb\\x7f\\x9b\\udc80\\u2028"


def test_a_terminal_of_another_encoding_gets_escapes(tmp_path: Path) -> None:
    path = tmp_path / "重み.safetensors"
    path.write_bytes(safetensors_bytes([1.0]))
    done = subprocess.run(
        [*PROGRAM, "inspect", str(path)], capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"\\u91cd\\u307f.safetensors" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("keys/recovery.pub", sys.executable, 2),
        ('/a"', '/a%00b"', 2),
        ("trust_root", 'state = "~nobody-has-this-name/x"\ntrust_root', 2),
        ("[coordination]", "[verify.max_age_days]\nL2 = 99999999999\n[coordination]", 2),
        ("[coordination]", "[retention]\ndetection_days = 99999999\n[coordination]", 2),
        ("trust_root", "deep = " + "[" * 20_000 + "\ntrust_root", 2),
    ],
    ids=["binary-recovery-key", "nul", "home-of-nobody", "age-beyond-all", "wait-beyond-all", "deep"],
)
def test_odd_configuration(site: DemoSite, old: str, new: str, code: int) -> None:
    site.edit(old, new)
    (site.source / "step_1").mkdir()
    (site.source / "step_1/model.safetensors").write_bytes(safetensors_bytes([1.0]))
    said = site("sync", "gpt", "--json")
    assert said.code == code and said.document["exit_code"] == code, said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("command", ["restore", "open"])
def test_a_recovery_key_that_is_no_text(site: DemoSite, command: str) -> None:
    site.commit(1)
    target = site.folder / "out"
    if command == "restore":
        said = site("restore", "gpt", target, "--unproved", "--recovery-key", sys.executable, "--json")
    else:
        said = site.cli("open", site.config, target, "--recovery-key", sys.executable, "--json")
    assert said.code == 2 and "recovery key" in said.document["what"], said.err


def test_a_key_that_is_refused_does_not_lower_the_level_in_silence(site: DemoSite) -> None:
    site.commit(1)
    keyring = site.folder / "keys/keyring.json"
    keyring.chmod(0o644)
    said = site("verify", "gpt", "--json")
    assert said.code == 0 and all("L3" not in copy["levels"] for copy in said.document["copies"])
    assert "nothing above L2 is checked" in said.err and "open to other users" in said.err
    assert site("verify", "gpt", "--recovery-key", site.folder / "nowhere").code == 8
    keyring.unlink()  # a host that has no keyring checks what it can
    assert site("verify", "gpt").err == ""


def test_runs_that_are_opened_at_once_are_all_in_the_configuration(site: DemoSite) -> None:
    """Each process reads the file, adds its run and writes it: without a lock the last one wins."""
    site.config.chmod(0o600)
    names = [f"run-{number}" for number in range(4)]

    def begin(name: str) -> subprocess.CompletedProcess[bytes]:
        words = ["run", "open", name, "--path", str(site.source), "--config", str(site.config)]
        return subprocess.run([*PROGRAM, *words], capture_output=True, check=False)

    with ThreadPoolExecutor(4) as pool:
        for done in pool.map(begin, names):
            assert done.returncode == 0, done.stderr
    text = site.config.read_text()
    assert all(f'[runs."{name}"]' in text for name in names)
    assert stat.S_IMODE(site.config.stat().st_mode) == 0o600


def test_a_link_to_the_configuration_stays_one(site: DemoSite) -> None:
    real = site.folder / "elsewhere"
    real.mkdir()
    site.config.rename(real / "site.toml")
    site.config.symlink_to("elsewhere/site.toml")
    (real / "keys").symlink_to(site.folder / "keys")
    site.good("run", "open", "other", "--path", site.source)
    assert site.config.is_symlink()
    assert '[runs."other"]' in (real / "site.toml").read_text()
