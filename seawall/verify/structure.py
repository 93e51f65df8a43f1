"""Comparing the structure of a rebuilt checkpoint with its inventory: names, shapes, dtypes and places of all tensors."""

import os
from pathlib import Path

from seawall.vault.inventory import Inventory

_MAX_PROBLEMS = 100
_STRUCTURED = ("ok", "warn")
"""Verdicts at save time whose tensors an inventory records; others were sealed as plain files."""

Shape = tuple[str, tuple[int, ...], tuple[tuple[str, int, int | None, tuple[int, ...], tuple[int, ...]], ...]]


def why_unrecorded(inventory: Inventory) -> str:
    """Why there is no structure to compare with: what was sealed as plain files has none. Empty when there is one."""
    verdict = inventory.notes.get("verdict", "ok")
    return "" if verdict in _STRUCTURED else f"it was sealed as plain files, because its inspection said {verdict}"


def differences(tree: Path, inventory: Inventory) -> list[tuple[str, str]]:
    """(tensor or file, why) for everything that differs; empty when the structure is the one of save time."""
    # Only a folder that is known by its mark alone may have one of another name.
    mark = inventory.commit_mark if inventory.layout == "opaque" else None
    # Only here, because proofs are read by commands that look into no checkpoint: the parsers of all layouts take long to import.
    from seawall.checkpoint.inspect import inspect
    from seawall.checkpoint.inspection import Verdict

    inspection = inspect(str(tree), layout=inventory.layout, commit_mark=mark or "_COMMITTED")
    # Frameworks with a pointer keep the checkpoint in a folder below the one that the pointer lies in.
    below = os.path.relpath(inspection.path, os.path.realpath(tree))
    prefix = "" if below == "." else below + "/"
    problems = [(reason.tensor or reason.file, reason.text) for reason in inspection.reasons if reason.verdict > Verdict.WARN]
    # An inventory keeps a link as a link: what is read through one belongs to the file that it leads to.
    links = {link.name for link in inventory.links}
    found: dict[str, Shape] = {
        tensor.name: (
            tensor.dtype,
            tensor.shape,
            tuple((prefix + p.file, p.nbytes, p.start, p.offsets, p.shape) for p in tensor.pieces if prefix + p.file not in links),
        )
        for tensor in inspection.tensors
    }
    expected: dict[str, Shape] = {
        tensor.name: (
            tensor.dtype,
            tensor.shape,
            tuple((inventory.files[p.file].name, p.nbytes, p.start, p.offsets, p.shape) for p in tensor.pieces),
        )
        for tensor in inventory.tensors
    }
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            problems.append((name, "the tensor is not there"))
        elif name not in expected:
            problems.append((name, "the tensor was not there at save time"))
        elif found[name] != expected[name]:
            problems.append((name, f"dtype, shape or place differ: {found[name][:2]} now, {expected[name][:2]} at save time"))
    return problems[:_MAX_PROBLEMS]
