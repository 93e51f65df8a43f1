"""The command line in this process, on a site of two file stores: what a person types, and what a program reads."""

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seawall.cli.main import main
from tests.protect.little_site import write_checkpoint

RUN = "gpt"


@dataclass(frozen=True)
class Outcome:
    """One command that ended."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as the one object that ``--json`` promises."""
        document = json.loads(self.raw)
        assert isinstance(document, dict)
        return document


def seawall(*arguments: object) -> Outcome:
    """Run one command."""
    raw, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    out.flush()
    return Outcome(code, raw.getvalue(), err.getvalue())


@dataclass(frozen=True)
class Desk:
    """A folder with seawall.toml, keys, stores ``a`` and ``c``, and a run folder."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "site" / "seawall.toml"

    @property
    def checkpoints(self) -> Path:
        """Where training writes."""
        return self.folder / "run"

    def store(self, name: str) -> Path:
        """The folder of a file store."""
        return self.folder / name

    def __call__(self, command: str, *arguments: object, code: int | None = 0) -> Outcome:
        """Run a command with this site's configuration; anything but ``code`` fails the test."""
        done = seawall(*command.split(), *arguments, "--config", self.config)
        assert code is None or done.code == code, (done.code, done.out, done.err)
        return done

    def save(self, step: int, files: dict[str, bytes] | None = None) -> Path:
        """What training does: a folder, the files, the commit mark last."""
        return write_checkpoint(self.checkpoints / f"step_{step}", step, files=files)

    def stored(self) -> dict[str, bytes]:
        """Every object of both stores."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for name in "ac"
            for path in sorted(self.store(name).rglob("*"))
            if path.is_file()
        }

    def objects(self, name: str, pattern: str) -> list[Path]:
        """Stored objects of the run's sealings in one store."""
        return sorted(self.store(name).glob(f"runs/{RUN}/sealings/*/{pattern}"))

    def damage(self, name: str, pattern: str, at: int) -> Path:
        """Flip a bit in the one object that fits."""
        (path,) = self.objects(name, pattern)
        raw = bytearray(path.read_bytes())
        raw[at] ^= 1
        path.chmod(0o600)
        path.write_bytes(bytes(raw))
        return path


def new_desk(folder: Path, stores: Sequence[str] = ("a", "c")) -> Desk:
    """``seawall init`` and ``seawall run open``."""
    desk = Desk(folder)
    desk.checkpoints.mkdir(parents=True)
    options = [option for name in stores for option in ("--store", f"{name}=file://{folder / name}")]
    done = seawall("init", *options, "--folder", folder / "site")
    assert done.code == 0, done.err
    desk("run open", RUN, "--path", desk.checkpoints)
    return desk
