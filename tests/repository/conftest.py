"""What the tests about the repository itself share: the checkout, what git tracks in it, and the built artefacts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.artefacts import Artefacts, build_artefacts

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root folder of the repository that these tests lie in."""
    return CHECKOUT


@pytest.fixture(scope="session")
def tracked(checkout: Path) -> dict[str, str]:
    """What git tracks: name relative to the checkout → mode ("100644", "100755", "120000" for a link)."""
    if not (checkout / ".git").exists():
        pytest.skip("not a git checkout (an unpacked sdist): what git tracks cannot be asked for")
    listing = subprocess.run(["git", "ls-files", "--stage", "-z"], cwd=checkout, check=True, capture_output=True).stdout.decode()
    entries = (line.split("\t", 1) for line in listing.split("\0") if line)
    return {name: stage.split()[0] for stage, name in entries}


@pytest.fixture(scope="session")
def artefacts(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Artefacts:
    """Wheel and sdist of this tree, and the wheel that is built from the unpacked sdist."""
    return build_artefacts(checkout, tmp_path_factory.mktemp("artefacts"))


@pytest.fixture
def clean_environment() -> dict[str, str]:
    """Variables for a child that must not see this environment's packages or settings for Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "PYTEST"))}
    kept["PATH"] = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if Path(part) != Path(sys.executable).parent)
    return kept
