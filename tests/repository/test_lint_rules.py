"""The rules of ruff that carry a law of the design find what they are there for, and only there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# (file the code would lie in, code, rule that must find it)
FOUND = [
    ("seawall/stores/planted.py", "import kernels\n", "TID251"),
    ("seawall/stores/planted.py", "from kernels.crc64 import crc64nvme\n", "TID251"),
    ("dags/planted.py", "from operators import sync\n", "TID251"),
    ("operators/planted.py", "import plugins\n", "TID251"),
    ("seawall/checkpoint/planted.py", "import pickle\n\n\ndef read(b: bytes) -> object:\n    return pickle.loads(b)\n", "TID251"),
    ("seawall/checkpoint/planted.py", "from pickle import load\n", "TID251"),
    ("seawall/checkpoint/planted.py", "from pickle import Unpickler\n", "TID251"),
    ("seawall/training/planted.py", "def read(p: str) -> object:\n    import torch\n\n    return torch.load(p)\n", "TID251"),
    ("seawall/checkpoint/planted.py", "def read() -> None:\n    from torch import load\n", "TID251"),
    ("seawall/checkpoint/planted.py", "import marshal\n\nX = marshal.loads(b'')\n", "TID251"),
    ("seawall/stores/planted.py", "import requests\n", "TID251"),
    ("seawall/stores/planted.py", "import boto3\n", "TID253"),
    ("seawall/stores/planted.py", "from botocore.config import Config\n", "TID253"),
    ("seawall/vault/planted.py", "import numpy as np\n", "TID253"),
    ("dags/planted.py", "import torch\n", "TID253"),
    ("seawall/protect/planted.py", "print(1)\n", "T201"),
    ("seawall/protect/planted.py", "from datetime import datetime\n\nNOW = datetime.now()\n", "DTZ005"),
    ("seawall/protect/planted.py", "try:\n    X = 1\nexcept Exception:\n    X = 2\n", "BLE001"),
    ("seawall/protect/planted.py", "class Broken(Exception):\n    pass\n", "N818"),
    ("seawall/protect/planted.py", "from . import sync\n", "TID252"),
    ("seawall/protect/planted.py", "X: int = 'a'  # type: ignore\n", "PGH003"),
]
ALLOWED = [
    ("seawall/stores/planted.py", "from seawall.kernels import crc64 as crc64\n"),
    ("seawall/stores/planted.py", "def client() -> object:\n    import boto3\n\n    return boto3\n"),
    ("seawall/vault/planted.py", "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import zstandard  # noqa: F401\n"),
    ("seawall/cli/planted.py", "print(1)\n"),
    ("tests/checkpoint/planted.py", "import pickle\n\nimport numpy\n\nX = pickle.loads(b'N.'), numpy\n"),
]


def rules_that_fire(checkout: Path, name: str, code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "json", "--stdin-filename", name, "-"],
        cwd=checkout,
        input=code,
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr
    return {finding["code"] for finding in json.loads(done.stdout)}


@pytest.mark.parametrize(("name", "code", "rule"), FOUND)
def test_it_is_found(checkout: Path, name: str, code: str, rule: str) -> None:
    assert rule in rules_that_fire(checkout, name, code)


@pytest.mark.parametrize(("name", "code"), ALLOWED)
def test_it_is_allowed(checkout: Path, name: str, code: str) -> None:
    assert rules_that_fire(checkout, name, code) == set()
