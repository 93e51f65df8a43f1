"""Builds the distributions the way a release does, without the network."""

import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Artefacts:
    wheel: Path
    sdist: Path
    wheel_of_sdist: Path

    def names_in_wheel(self) -> set[str]:
        return set(zipfile.ZipFile(self.wheel).namelist())


def _build(source: Path, out: Path, target: str) -> Path:
    # hatchling directly: a frontend would download it again into an environment of its own.
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(out), "--target", target]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (artefact,) = out.iterdir()
    return artefact


def build_artefacts(checkout: Path, folder: Path) -> Artefacts:
    wheel = _build(checkout, folder / "wheel", "wheel")
    sdist = _build(checkout, folder / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return Artefacts(wheel, sdist, _build(unpacked, folder / "wheel-of-sdist", "wheel"))
