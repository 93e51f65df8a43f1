"""The rows of all checkpoint cases, read off the generator's source: so that collecting tests does not import torch."""

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).resolve().parents[1] / "cases"
FIELDS = ("name", "layout", "expected", "kind", "why")
SHORT = {
    "zip_case": "torch-zip",
    "st_case": "safetensors",
    "shards_case": "safetensors-sharded",
    "dcp_case": "dcp",
    "hf_case": "hf-trainer",
}
"""Decorators that fix the layout, and the targets that the first two assume."""
TARGETS = {"zip_case": "model.pt", "st_case": "model.safetensors", "hf_case": "checkpoint-200"}


@dataclass(frozen=True)
class Case:
    name: str
    layout: str
    expected: str
    target: str
    also: tuple[str, ...]
    blame: tuple[str, ...]


def _row(call: ast.Call) -> Case:
    assert isinstance(call.func, ast.Name)
    given: dict[str, Any] = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg and word.arg != "claims"}
    names = [field for field in FIELDS if not (field == "layout" and call.func.id in SHORT)]
    given.update({field: ast.literal_eval(value) for field, value in zip(names, call.args, strict=False)})
    target = given.get("target", TARGETS.get(call.func.id, "."))
    layout = given.get("layout", SHORT.get(call.func.id, ""))
    return Case(given["name"], layout, given["expected"], target, tuple(given.get("also", ())), tuple(given.get("blame", ())))


def all_cases() -> list[Case]:
    """Every case of every module, in the order of the files."""
    found = []
    for module in sorted(CASES.glob("*cases*.py")):
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id in ("case", *SHORT):
                        found.append(_row(decorator))
    return found
