"""The secrets scan finds what it should, says where and not what, and does not cry over the files that are here."""

import subprocess
import sys
from pathlib import Path

import pytest

# Put together here so that this file holds none of them. All are made up.
PLANTED = {
    "AWS Access Key": "aws_access_key_id = " + "AKIA" + "QYLPMN5HHHFPZAM2",
    "Private Key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n",
    "GitHub Token": 'token = "' + "ghp_" + "a1B2c3D4e5" * 3 + 'F6g7h8"',
    "PyPI Token": "password: " + "pypi-" + "AgEIcHlwaS5vcmc" + "CJDA1MTQ" * 9,
    "Basic Auth Credentials": "url = " + "https://admin:" + "hunter2secret" + "@db.example.net/x",
    "Slack Token": "slack = '" + "xoxb-" + "123456789012-1234567890123-" + "AbCdEfGhIjKlMnOpQrStUvWx'",
}


def scan(checkout: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "tools/scan_secrets.py"), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("kind", PLANTED)
def test_it_finds_a_planted_secret(checkout: Path, kind: str, tmp_path: Path) -> None:
    planted = tmp_path / "settings.txt"
    planted.write_text("nothing here\n" + PLANTED[kind] + "\n")
    done = scan(checkout, planted)
    assert done.returncode == 1
    assert f"{planted}:2: {kind}" in done.stdout
    secret = PLANTED[kind].split()[-1].strip("'\"")
    assert secret not in done.stdout, "a scan whose log holds the secret has leaked it"


def test_it_passes_what_only_looks_odd(checkout: Path, tmp_path: Path) -> None:
    harmless = tmp_path / "harmless.py"
    harmless.write_text('key = "3b7e151628aed2a6abf7158809cf4f3c"\npassword = os.environ["X"]\nurl = "s3://bucket/prefix"\n')
    assert scan(checkout, harmless).returncode == 0


def test_this_checkout_holds_none(checkout: Path, tracked: dict[str, str]) -> None:
    done = scan(checkout)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("no secrets in ")


def test_a_new_file_is_scanned_before_it_is_added(checkout: Path, tmp_path: Path) -> None:
    """A scan of tracked files alone would see a secret one commit too late. Vectors may hold keys; ignored files stay out."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/scan_secrets.py").write_bytes((checkout / "tools/scan_secrets.py").read_bytes())
    (tmp_path / ".gitignore").write_text(".state/\n")
    for folder in ("tests/vectors", ".state", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "keyring.txt").write_text(PLANTED["Private Key"])
    done = scan(tmp_path)
    assert done.returncode == 1
    found = [line for line in done.stdout.splitlines() if line.endswith("Private Key")]
    assert found == [f"{tmp_path / 'docs/keyring.txt'}:1: Private Key"]
