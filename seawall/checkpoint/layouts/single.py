"""One file that is a checkpoint by itself: torch zip, old torch stream, safetensors; or a recognised stranger."""

from contextlib import suppress

from seawall.checkpoint.facts import step_in_name, step_of
from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.kinds import FOREIGN, WEIGHT_ENDINGS, kind_of
from seawall.checkpoint.look import Look
from seawall.errors import SeawallError


def inspect_file(look: Look, file: str) -> None:
    """Judge ``file`` alone."""
    look.found.files = [file]
    content = look.read(file, expected=file.endswith(WEIGHT_ENDINGS))
    if content is None:
        look.found.layout = expected_layout(look, file)
        return
    if not content.ours:
        look.found.layout = "unknown"
        look.found.add(
            Verdict.UNKNOWN, f"this is {FOREIGN.get(content.kind, 'a ' + content.kind + ' file')} and not a layout that seawall reads", file
        )
        return
    look.found.layout = content.kind
    look.take(content)
    step = step_of(content)
    look.found.step = step if step is not None else step_in_name(file.rpartition(".")[0])


def expected_layout(look: Look, file: str) -> str:
    """The layout of a file that could not be read, by its first bytes, else by its ending."""
    with suppress(SeawallError), look.folder.open(file) as source:
        kind = kind_of(source)
        if kind in ("torch-zip", "torch-legacy", "safetensors"):
            return kind
    return "safetensors" if file.endswith(".safetensors") else "torch-zip"
