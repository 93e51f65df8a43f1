"""``seawall inspect``: what is at this path, and could it be restored from?"""

from pathlib import Path
from typing import Annotated

import typer

from seawall.cli.options import JsonOption
from seawall.cli.output import emit, human_bytes, say


def inspect(
    path: Annotated[Path, typer.Argument(help="A checkpoint: a file or a folder.")],
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check the checksums of records and tensors, and look for non-finite values.")
    ] = False,
    layout: Annotated[str, typer.Option("--layout", help="Take it for this layout instead of looking.")] = "auto",
    commit_mark: Annotated[str, typer.Option("--commit-mark", help="The file that says a save is finished.")] = "_COMMITTED",
    json: JsonOption = False,
) -> int:
    """Judge a checkpoint without executing anything in it: ok, warn, incomplete, corrupt, hostile or unknown."""
    from seawall.checkpoint.inspect import inspect as judge
    from seawall.checkpoint.inspection import EXIT_CODE

    inspection = judge(str(path), deep=deep, commit_mark=commit_mark, layout=layout)
    if json:
        emit(inspection.as_json())
    else:
        step = "no step" if inspection.step is None else f"step {inspection.step}"
        nbytes = human_bytes(sum(tensor.nbytes for tensor in inspection.tensors))
        say(f"{inspection.verdict.word}: {inspection.layout}, {step}, {len(inspection.tensors)} tensors, {nbytes}, {inspection.path}")
        for reason in inspection.reasons:
            at = " ".join(part for part in (reason.file, reason.tensor) if part)
            say(f"  {reason.verdict.word}: {at + ': ' if at else ''}{reason.text}")
    return EXIT_CODE[inspection.verdict]
