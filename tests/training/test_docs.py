"""Every block of code in docs/training.md is run as it stands, with paths of this test in the place of its own."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from seawall.training.steps import step_states
from seawall.vault.signing import SigningKey

DOCUMENT = Path(__file__).parents[2] / "docs" / "training.md"


@pytest.fixture
def blocks(tmp_path: Path) -> list[str]:
    credentials = tmp_path / "airflow.json"
    credentials.write_text('{"token": "t"}')
    credentials.chmod(0o600)
    (tmp_path / "site-c").mkdir()
    text = DOCUMENT.read_text()
    for its, ours in {
        "/mnt/ckpt/gpt": str(tmp_path / "checkpoints"),
        "file:///mnt/site-c": (tmp_path / "site-c").as_uri(),
        "/mnt/health": str(tmp_path / "health"),
        "/etc/seawall/airflow.json": str(credentials),
        "ed25519:…": SigningKey.generate("root").public.text(),
    }.items():
        assert its in text
        text = text.replace(its, ours)
    return re.findall(r"```python\n(.*?)```", text, re.S)


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """What a trainer has, and what the blocks leave open is closed."""
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(model.parameters())

    def train_step() -> float:
        optimizer.zero_grad()
        loss = model(torch.ones(4)).square().sum()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    found: dict[str, Any] = {"model": model, "optimizer": optimizer, "train_step": train_step, "rank": 0, "Path": Path}
    with ExitStack() as stack:
        yield found
        for name in ("notifier", "heartbeat", "checkpointer"):
            if name in found:
                stack.callback(found[name].close)


def test_ten_lines(blocks: list[str], names: dict[str, Any], tmp_path: Path) -> None:
    exec(blocks[0], {**names, "resume_from": None, "last_step": 250})
    assert [state.step for state in step_states(tmp_path / "checkpoints") if state.complete] == [100, 200]
    after = {name: value.clone() for name, value in names["model"].state_dict().items()}
    torch.nn.init.zeros_(names["model"].weight)
    exec(blocks[0], {**names, "resume_from": tmp_path / "checkpoints", "last_step": 300})
    assert [state.step for state in step_states(tmp_path / "checkpoints") if state.complete] == [100, 200, 300]
    exec(blocks[0], {**names, "resume_from": tmp_path / "checkpoints" / "step_00000200", "last_step": 250})
    # From step 200 to 250 once more: weights and the optimizer's moments came back.
    assert all(torch.equal(value, after[name]) for name, value in names["model"].state_dict().items())


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_other_blocks(blocks: list[str], names: dict[str, Any], number: int) -> None:
    names.update(step=1, loss=2.5, norm=1.0)
    if number != 2:
        exec("from seawall.training.checkpointer import Checkpointer", names)
    exec(blocks[number], names)
    assert len(blocks) == 4
