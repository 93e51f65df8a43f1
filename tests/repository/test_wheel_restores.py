"""The wheel alone, in an empty environment without torch and Airflow, rebuilds a checkpoint that it did not seal."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.protect.little_site import file_site, tree, write_checkpoint
from tests.repository.artefacts import Artefacts
from tests.repository.test_packages import _install, _new_environment


@pytest.mark.timeout(400)
def test_a_copy_is_restored_with_the_wheel_alone(tmp_path: Path, artefacts: Artefacts, checkout: Path) -> None:
    source = write_checkpoint(tmp_path / "ck", files={"weights": os.urandom(9 << 20), "deep/er": b"1", "empty": b""})
    site = file_site(tmp_path)
    site.sync(source)
    keyring = tmp_path / "keyring.json"
    site.keyring.create(keyring)
    (tmp_path / "recovery.key").write_text(site.recovery.text())
    (tmp_path / "recovery.key").chmod(0o600)
    environment = {**os.environ, "PYTHONPATH": ""}
    python = _new_environment(tmp_path / "empty", "3.11", environment)
    _install(python, artefacts.wheel, environment, "--constraint", str(checkout / "constraints.txt"))
    present = subprocess.run(
        [str(python), "-c", "import importlib.util as u; print(u.find_spec('torch'), u.find_spec('airflow'))"],
        capture_output=True,
        text=True,
    )
    assert present.stdout.split() == ["None", "None"]
    for number, key in enumerate((["--keyring", str(keyring)], ["--recovery-key", str(tmp_path / "recovery.key")])):
        target = tmp_path / f"out-{number}"
        words = [str(python.parent / "seawall"), "restore", "gpt", str(target), "--unproved", "--store", f"file://{tmp_path}/a"]
        words += ["--trust-root", site.root.public.text(), *key]
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "freshness unproved" in done.stdout
        assert tree(target) == tree(source)
