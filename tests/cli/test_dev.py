"""``seawall dev s3``: one server a folder, that ends when it is told to and keeps its data and credentials."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from seawall.stores.locate import open_store
from seawall.stores.s3_signing import AwsKeys
from tests.cli.conftest import Cli

READY = "Ctrl-C stops it; the data stays.\n"


def start(folder: Path) -> tuple["subprocess.Popen[str]", dict[str, str]]:
    """A server in a child process, once it says that it is ready; and the settings that it printed."""
    words = [sys.executable, "-m", "seawall.cli.entry", "dev", "s3", "--folder", str(folder)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    lines = []
    for line in child.stdout:
        lines.append(line)
        if line == READY:
            break
    else:
        raise AssertionError(f"it ended before it was ready: {lines}")
    return child, settings("".join(lines))


def settings(text: str) -> dict[str, str]:
    exported = [line.removeprefix("export ") for line in text.splitlines() if line.startswith("export ")]
    return dict(line.split("=", 1) for line in exported)


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "s3"
    assert cli("dev", "s3", "--folder", folder, "--print-env").code == 2, "nothing was ever started there"
    child, found = start(folder)
    try:
        printed = cli("dev", "s3", "--folder", folder, "--print-env")
        assert printed.code == 0 and settings(printed.out) == found
        second = cli("dev", "s3", "--folder", folder)
        assert second.code == 9, "two servers on one folder would destroy its data"
        keys = AwsKeys(found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"])
        store = open_store("s3://seawall/x", endpoint=found["AWS_ENDPOINT_URL"], keys=lambda: keys)
        store.put("kept", b"bytes")
        store.close()
        assert all(stat.S_IMODE((folder / name).stat().st_mode) == 0o600 for name in ("instance.json", "s3.json"))
    finally:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
    assert child.returncode == 0
    assert cli("dev", "s3", "--folder", folder, "--print-env").code == 7, "it is not running any more"

    again, same = start(folder)
    try:
        assert same == found, "credentials and port are those of the first start"
        store = open_store("s3://seawall/x", endpoint=same["AWS_ENDPOINT_URL"], keys=lambda: keys)
        assert store.get("kept") == b"bytes"
        store.close()
    finally:
        os.kill(again.pid, signal.SIGINT)
        again.communicate(timeout=60)
    assert again.returncode == 0
