"""The library runs where neither Airflow nor torch is installed, and starts without loading what it may not need."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Rooms that import Airflow or torch by their nature.
OUTSIDE_THE_CORE = {"operators", "plugins", "training"}

CHILD = """
import importlib, json, sys

class Refuse:
    '''Acts as if the forbidden packages were not installed, and remembers who asked.'''
    asked = []
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('airflow', 'torch'):
            Refuse.asked.append(name)
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
        return None

sys.meta_path.insert(0, Refuse())
failed = {}
for name in json.loads(sys.argv[1]):
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = repr(error)
print(json.dumps({'failed': failed, 'asked': Refuse.asked, 'loaded': sorted({name.split('.')[0] for name in sys.modules})}))
"""


def core_modules(checkout: Path) -> list[str]:
    """Names of all modules of the core but ``__main__``, which runs when it is imported."""
    names = set()
    for folder, prefix in ((checkout / "seawall", ()), (checkout / "kernels", ("seawall",))):
        for path in folder.rglob("*.py"):
            parts = (*prefix, *path.relative_to(checkout).with_suffix("").parts)
            names.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    rooms = {name: name.split(".")[1:2] for name in names if not name.endswith(".__main__")}
    return sorted(name for name, room in rooms.items() if not OUTSIDE_THE_CORE.intersection(room))


def import_in_child(checkout: Path, names: list[str]) -> dict[str, list[str] | dict[str, str]]:
    done = subprocess.run([sys.executable, "-c", CHILD, json.dumps(names)], cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said: dict[str, list[str] | dict[str, str]] = json.loads(done.stdout)
    return said


def test_every_core_module_imports_without_airflow_and_torch(checkout: Path) -> None:
    names = core_modules(checkout)
    assert {"seawall", "seawall.errors", "seawall.kernels"} <= set(names)
    said = import_in_child(checkout, names)
    assert said["failed"] == {}
    assert said["asked"] == [], "an import that is tried and caught still costs the search, and hides what is needed"


def test_the_child_does_refuse(checkout: Path) -> None:
    """The control: without it the test above could pass because nothing is refused."""
    said = import_in_child(checkout, ["torch", "airflow.sdk"])
    assert set(said["failed"]) == {"torch", "airflow.sdk"}


@pytest.mark.parametrize("name", ["seawall", "seawall.errors", "seawall.kernels", "seawall.operators", "seawall.plugins", "seawall.cli"])
def test_these_load_nothing_heavy(checkout: Path, name: str) -> None:
    loaded = set(import_in_child(checkout, [name])["loaded"])
    assert loaded & {"boto3", "botocore", "numpy", "awscrt", "zstandard", "cryptography", "pydantic", "rich", "typer"} == set()
