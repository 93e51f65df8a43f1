"""The first screen of the README, typed by a machine: its commands do what it says that one then has."""

import json
import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

from seawall.testing.seaweedfs import SeaweedFS
from tests.protect.little_site import tree
from tests.servers import BUCKET

READY = re.compile(r"^\$ (seawall .*)$", re.MULTILINE)


def test_the_first_screen_works(tmp_path: Path, checkout: Path, seaweed: SeaweedFS, s3_url: str) -> None:
    commands = READY.findall((checkout / "README.md").read_text())
    assert [command.split()[1] for command in commands] == ["init", "run", "sync", "verify", "restore"]
    saved = tmp_path / "mnt" / "ckpt" / "gpt" / "step_40"
    saved.mkdir(parents=True)
    (saved / "weights").write_bytes(os.urandom(100_000))
    (saved / "_COMMITTED").write_text(json.dumps({"step": 40}))
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL_S3": seaweed.endpoint,
        "AWS_ACCESS_KEY_ID": seaweed.keys.access_key_id,
        "AWS_SECRET_ACCESS_KEY": seaweed.keys.secret_access_key,
        "AWS_REGION": "us-east-1",
    }
    program = Path(sysconfig.get_path("scripts")) / "seawall"
    if not program.exists():
        pytest.skip("seawall is not installed in this environment, so there is no command to type")
    for command in commands:
        typed = command.replace("/mnt/", f"{tmp_path}/mnt/").replace("s3://my-bucket/seawall", s3_url)
        assert BUCKET in s3_url
        words = [str(program), *shlex.split(typed)[1:]]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, f"{typed}\n{done.stdout}{done.stderr}"
    assert tree(tmp_path / "mnt" / "restored") == tree(saved)
