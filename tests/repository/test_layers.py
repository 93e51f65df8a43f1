"""The import contracts hold, and each of them fails when it should."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINK_TARGETS = ("kernels", "operators", "plugins")

# Contract id → (file, line) that must break it.
VIOLATIONS = {
    "floors": ("seawall/verify/planted.py", "import seawall.protect"),
    "testing": ("seawall/operators/planted.py", "import seawall.testing"),
    "airflow": ("seawall/protect/planted.py", "import airflow"),
    "torch": ("seawall/checkpoint/planted.py", "import torch"),
}
MORE_FLOORS = [
    ("seawall/kernels/planted.py", "import seawall.clock"),
    ("seawall/stores/planted.py", "from seawall.vault import planted"),
    ("seawall/log/planted.py", "def late() -> None:\n    import seawall.cli"),
    ("seawall/checkpoint/planted.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import seawall.verify"),
    ("seawall/cli/planted.py", "import seawall.operators"),
]


def lint_imports(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run([sys.executable, "-c", program, "--no-cache", *options], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def copy(checkout: Path, tmp_path: Path) -> Path:
    """The package and its contracts, links kept, where a file may be planted."""
    without_caches = shutil.ignore_patterns("__pycache__")
    for name in ("seawall", *LINK_TARGETS):
        shutil.copytree(checkout / name, tmp_path / name, symlinks=True, ignore=without_caches)
    shutil.copy(checkout / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold(checkout: Path) -> None:
    done = lint_imports(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Contracts: {len(VIOLATIONS)} kept, 0 broken." in done.stdout


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_each_contract_breaks_when_it_should(contract: str, copy: Path) -> None:
    name, line = VIOLATIONS[contract]
    (copy / name).write_text(line + "\n")
    done = lint_imports(copy, "--contract", contract)
    assert done.returncode == 1, done.stdout + done.stderr
    assert ".planted" in done.stdout


@pytest.mark.parametrize(("name", "line"), MORE_FLOORS)
def test_no_floor_imports_a_higher_one(name: str, line: str, copy: Path) -> None:
    """Late imports and those for the type checker count too: an import is a dependency wherever it stands."""
    if "from seawall.vault import planted" in line:
        (copy / "seawall/vault/planted.py").write_text("")
    (copy / name).write_text(line + "\n")
    assert lint_imports(copy, "--contract", "floors").returncode == 1


def test_a_new_room_must_be_given_a_floor(copy: Path) -> None:
    (copy / "seawall/attic.py").write_text("")
    done = lint_imports(copy, "--contract", "floors")
    assert done.returncode == 1
    assert "attic" in done.stdout


def test_what_may_import_airflow_may(copy: Path) -> None:
    (copy / "operators/planted.py").write_text("import airflow\nimport seawall.protect\nimport seawall.cli\n")
    (copy / "plugins/planted.py").write_text("import airflow.plugins_manager\nimport seawall.operators\n")
    done = lint_imports(copy)
    assert done.returncode == 0, done.stdout
